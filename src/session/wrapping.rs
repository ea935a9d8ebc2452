//! The utility statement of the client that wraps the query under way: EXPLAIN, DECLARE CURSOR, EXECUTE, COPY to Arrow.
//! State of this backend; no lock.

use std::cell::Cell;
use std::ffi::{CStr, c_char};

use super::nesting::{at_top_level, enter_context, set_context};
use crate::pg::backend_local::Local;

/// The statement is an EXPLAIN.
static EXPLAINING: Local<Cell<bool>> = Local::new(Cell::new(false));
/// The text of the statement, if it holds the query's.
static WRAPPED: Local<Cell<Option<WrappedText>>> = Local::new(Cell::new(None));
/// The statement is an EXECUTE.
static EXECUTING_PREPARED: Local<Cell<bool>> = Local::new(Cell::new(false));

/// Where the text of a utility statement lies. The parser does not tell this for the query that the statement wraps.
#[derive(Clone, Copy)]
pub struct WrappedText {
    /// The text the utility statement is part of.
    pub source: *const c_char,
    /// Its place in that text.
    pub location: i32,
    /// Its length.
    pub length: i32,
    /// It declares a cursor that is read to its end, and held, before another statement of the client runs.
    pub holds_at_once: bool,
}

/// What the innermost utility statement under way means for the queries inside it.
#[derive(Clone, Copy)]
pub struct Wrapping {
    context: Option<usize>,
    wrapped: Option<WrappedText>,
    explaining: bool,
    executing_prepared: bool,
}

/// Enters a utility statement of the client that wraps a query of the client. Returns what to give to `leave_wrapping`
/// at its end, after an error too.
pub fn enter_wrapping(text: Option<WrappedText>, explaining: bool) -> Wrapping {
    Wrapping {
        context: enter_context(),
        wrapped: WRAPPED.replace(text),
        explaining: EXPLAINING.replace(explaining),
        executing_prepared: EXECUTING_PREPARED.replace(false),
    }
}

/// Enters an EXECUTE of the client. Returns what to give to `leave_wrapping` at its end, after an error too.
pub fn enter_execute() -> Wrapping {
    Wrapping {
        context: enter_context(),
        wrapped: WRAPPED.get(),
        explaining: EXPLAINING.get(),
        executing_prepared: EXECUTING_PREPARED.replace(true),
    }
}

/// Returns true if an EXECUTE is under way.
pub fn executing_prepared() -> bool {
    EXECUTING_PREPARED.get()
}

/// Leaves a utility statement that wraps a query.
pub fn leave_wrapping(outer: Wrapping) {
    set_context(outer.context);
    WRAPPED.set(outer.wrapped);
    EXPLAINING.set(outer.explaining);
    EXECUTING_PREPARED.set(outer.executing_prepared);
}

/// Location and length of the wrapping utility statement, if `source` is its text.
pub fn wrapped_text(source: *const c_char) -> Option<(i32, i32)> {
    let wrapped = WRAPPED.get()?;
    // SAFETY: both are query strings that live as long as their statements. DECLARE CURSOR runs on a copy, so the texts
    // are compared, not the pointers.
    let same = wrapped.source == source || unsafe { CStr::from_ptr(wrapped.source) == CStr::from_ptr(source) };
    same.then_some((wrapped.location, wrapped.length))
}

/// Returns true if a DECLARE CURSOR is under way.
pub fn declaring_cursor() -> bool {
    WRAPPED.get().is_some() && !EXPLAINING.get()
}

/// Returns true if the cursor that is declared is read to its end, and held, before another statement of the client
/// runs.
pub fn holds_cursor_at_once() -> bool {
    WRAPPED.get().is_some_and(|wrapped| wrapped.holds_at_once)
}

/// Returns true if a utility statement wraps the query, and its text holds that of the query.
#[inline]
pub fn is_wrapped() -> bool {
    WRAPPED.get().is_some()
}

/// Returns true if an EXPLAIN is under way.
#[inline]
pub fn is_explaining() -> bool {
    EXPLAINING.get()
}

/// Returns true if the statement that starts now is the subject of a top-level EXPLAIN.
pub fn explaining() -> bool {
    EXPLAINING.get() && at_top_level()
}
