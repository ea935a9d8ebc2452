//! How deep the present statement is nested in others: whether it is the one that the client sent. State of this
//! backend; no lock.
//!
//! Levels are counted around ExecutorRun, ExecutorFinish and utility statements. The hooks leave the level of a utility
//! statement after an error too, and that of a run inside a subtransaction (`error_passing::with_cleanup`). An error
//! that leaves any other run fails the whole transaction, and `transaction_failed` leaves its level. Functions also run
//! outside of these: for the arguments of an EXECUTE, while a plan is made, at the commit. The server's error context
//! shows that.

use std::cell::Cell;

use pgrx::pg_sys;

use crate::pg::backend_local::Local;

/// Levels of nested statements.
static DEPTH: Local<Cell<u32>> = Local::new(Cell::new(0));

/// Levels of the innermost utility statement under way: what `DEPTH` is between the runs inside it.
static UTILITY_DEPTH: Local<Cell<u32>> = Local::new(Cell::new(0));

/// The error context of the utility statement of the client that is under way, if one wraps a query.
static CONTEXT: Local<Cell<Option<usize>>> = Local::new(Cell::new(None));

/// Enters a level of nested statements, in which a plan runs. Returns what to give to `leave_level` at its end.
#[inline]
pub fn enter_level() -> u32 {
    let outer = DEPTH.get();
    DEPTH.set(outer + 1);
    outer
}

/// Leaves a level of nested statements, and all inside it that an error has ended.
#[inline]
pub fn leave_level(outer: u32) {
    DEPTH.set(outer);
}

/// Levels around a utility statement.
#[derive(Clone, Copy)]
pub struct Outside {
    depth: u32,
    utility_depth: u32,
}

/// Enters a level of nested statements, in which a utility statement runs. Returns what to give to `leave_utility` at
/// its end, after an error too.
pub fn enter_utility() -> Outside {
    let depth = enter_level();
    Outside { depth, utility_depth: UTILITY_DEPTH.replace(depth + 1) }
}

/// Leaves the level of a utility statement, and all inside it that an error has ended.
pub fn leave_utility(outside: Outside) {
    leave_level(outside.depth);
    UTILITY_DEPTH.set(outside.utility_depth);
}

/// The transaction has failed or was rolled back: no plan runs any more, since only a utility statement (CALL, DO) may
/// end a transaction inside it.
pub fn transaction_failed() {
    DEPTH.set(UTILITY_DEPTH.get());
}

/// Notes that the present error context is that of a utility statement of the client. Returns what to give to
/// `set_context` at its end.
pub fn enter_context() -> Option<usize> {
    CONTEXT.replace(Some(error_context() as usize))
}

/// Restores the context that `enter_context` has returned.
pub fn set_context(outer: Option<usize>) {
    CONTEXT.set(outer);
}

/// How many statements the present one is nested in.
pub fn depth() -> u32 {
    DEPTH.get()
}

/// Returns true if the statement that starts now is the one that the client sent.
#[inline]
pub fn at_top_level() -> bool {
    DEPTH.get() == 0 && !in_function()
}

/// The notes of the functions under way on how to describe themselves in an error, the innermost first.
fn error_context() -> *mut pg_sys::ErrorContextCallback {
    // SAFETY: a plain global of the backend.
    unsafe { pg_sys::error_context_stack }
}

/// Returns true if a function runs outside of the execution of a statement. SPI, the procedural languages and SQL
/// functions add a note to the error context for as long as they run a query. The server itself adds at most one note
/// (about the parameters of a message), and none between a statement that wraps a query and that query.
fn in_function() -> bool {
    let innermost = error_context();
    match CONTEXT.get() {
        Some(own) => innermost as usize != own,
        // SAFETY: notes live on the stack of the functions that are under way.
        None => unsafe { innermost.as_ref() }.is_some_and(|note| !note.previous.is_null()),
    }
}
