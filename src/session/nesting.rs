//! How deep the present statement is nested in others: whether it is the one that the client sent. State of this backend; no lock.
//!
//! Levels are counted around ExecutorRun, ExecutorFinish and utility statements; the hooks undo that on the error path too
//! (`error_passing::with_cleanup`). Functions also run outside of these: for the arguments of an EXECUTE, while a plan is made, at the
//! commit. The server's error context tells of them.

use std::cell::Cell;

use pgrx::pg_sys;

use crate::pg::backend_local::Local;

static DEPTH: Local<Cell<u32>> = Local::new(Cell::new(0));

/// The error context of the utility statement of the client that is under way, if one wraps a query.
static CONTEXT: Local<Cell<Option<usize>>> = Local::new(Cell::new(None));

/// Enters a level of nested statements. Every path out must leave it again.
pub fn enter_level() {
    DEPTH.set(DEPTH.get() + 1);
}

/// Leaves a level of nested statements.
pub fn leave_level() {
    DEPTH.set(DEPTH.get().saturating_sub(1));
}

/// Takes the present error context for that of a utility statement of the client. Returns what to give to `set_context` at its end.
pub fn enter_context() -> Option<usize> {
    CONTEXT.replace(Some(error_context() as usize))
}

/// Ends what `enter_context` has begun.
pub fn set_context(outer: Option<usize>) {
    CONTEXT.set(outer);
}

/// How many statements the present one is nested in.
pub fn depth() -> u32 {
    DEPTH.get()
}

/// Is the statement that starts now the one the client sent?
pub fn at_top_level() -> bool {
    DEPTH.get() == 0 && !in_function()
}

/// Where the functions under way have noted how to describe themselves in an error, the innermost first.
fn error_context() -> *mut pg_sys::ErrorContextCallback {
    // SAFETY: a plain global of the backend.
    unsafe { pg_sys::error_context_stack }
}

/// Does a function run, though no statement is being executed? SPI, the procedural languages and SQL functions tell the error
/// context where they are before they run a query, as long as it runs. The server itself says at most one thing there, of the
/// parameters of a message, and nothing between a statement that wraps a query and that query.
fn in_function() -> bool {
    let innermost = error_context();
    match CONTEXT.get() {
        Some(own) => innermost as usize != own,
        // SAFETY: notes live on the stack of the functions that are under way.
        None => unsafe { innermost.as_ref() }.is_some_and(|note| !note.previous.is_null()),
    }
}
