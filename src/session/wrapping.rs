//! The utility statement of the client that wraps the query under way: EXPLAIN, DECLARE CURSOR, EXECUTE, COPY. State of
//! this backend; no lock.

use std::cell::Cell;
use std::ffi::{CStr, c_char};

use arrow_cache_core::formats::wire::RowShape;

use super::nesting::{at_top_level, enter_context, set_context};
use crate::pg::backend_local::Local;

/// The statement, if there is one.
static CURRENT: Local<Cell<Option<Wrapper>>> = Local::new(Cell::new(None));

/// A utility statement that wraps a query.
#[derive(Clone, Copy)]
pub enum Wrapper {
    /// EXPLAIN, which shows the query.
    Explain(WrappedText),
    /// DECLARE CURSOR, which leaves its rows to later statements, unless `is_held_at_once`: then it is read to its end,
    /// and held, before another statement of the client runs.
    Cursor { text: WrappedText, is_held_at_once: bool },
    /// EXECUTE, whose query has a text of its own.
    Execute,
    /// COPY of a query, which it plans, starts and reads without a portal. What it makes of a row, if it sends that to
    /// the client and has no option that changes more of it.
    Copy { text: WrappedText, to_client: Option<RowShape> },
    /// COPY of a query as Arrow, which takes its rows another way.
    Arrow,
}

/// Where the text of a utility statement lies. The parser does not tell this for the query that the statement wraps.
#[derive(Clone, Copy)]
pub struct WrappedText {
    /// The text the utility statement is part of.
    pub source: *const c_char,
    /// Its place in that text.
    pub location: i32,
    /// Its length.
    pub length: i32,
}

/// What is around a utility statement that wraps a query.
#[derive(Clone, Copy)]
pub struct Wrapping {
    context: Option<usize>,
    outer: Option<Wrapper>,
}

/// Enters a utility statement of the client that wraps a query of the client. Returns what to give to `leave_wrapping`
/// at its end, after an error too.
pub fn enter_wrapping(wrapper: Wrapper) -> Wrapping {
    Wrapping { context: enter_context(), outer: CURRENT.replace(Some(wrapper)) }
}

/// Leaves a utility statement that wraps a query.
pub fn leave_wrapping(outer: Wrapping) {
    set_context(outer.context);
    CURRENT.set(outer.outer);
}

/// The text of the statement, if it holds the query's.
#[inline]
fn text() -> Option<WrappedText> {
    match CURRENT.get()? {
        Wrapper::Explain(text) | Wrapper::Cursor { text, .. } | Wrapper::Copy { text, .. } => Some(text),
        Wrapper::Execute | Wrapper::Arrow => None,
    }
}

/// Location and length of the wrapping utility statement, if `source` is its text.
pub fn wrapped_text(source: *const c_char) -> Option<(i32, i32)> {
    let text = text()?;
    // SAFETY: both are query strings that live as long as their statements. DECLARE CURSOR runs on a copy, so the texts
    // are compared, not the pointers.
    let same = text.source == source || unsafe { CStr::from_ptr(text.source) == CStr::from_ptr(source) };
    same.then_some((text.location, text.length))
}

/// Returns true if an EXECUTE is under way.
pub fn executing_prepared() -> bool {
    matches!(CURRENT.get(), Some(Wrapper::Execute))
}

/// Returns true if a DECLARE CURSOR is under way.
pub fn declaring_cursor() -> bool {
    matches!(CURRENT.get(), Some(Wrapper::Cursor { .. }))
}

/// Returns true if the cursor that is declared is read to its end, and held, before another statement of the client
/// runs.
pub fn holds_cursor_at_once() -> bool {
    matches!(CURRENT.get(), Some(Wrapper::Cursor { is_held_at_once: true, .. }))
}

/// Returns true if the query that is planned or started now is that of a top-level COPY.
pub fn copying() -> bool {
    matches!(CURRENT.get(), Some(Wrapper::Copy { .. })) && at_top_level()
}

/// What a COPY of a query makes of a row for the client, if that is known.
pub fn copying_to_client() -> Option<RowShape> {
    match CURRENT.get()? {
        Wrapper::Copy { to_client, .. } => to_client,
        _ => None,
    }
}

/// Returns true if the query that is planned now is that of a top-level DECLARE CURSOR or COPY.
pub fn declaring_or_copying() -> bool {
    (declaring_cursor() && at_top_level()) || copying()
}

/// Returns true if a utility statement wraps the query, and its text holds that of the query.
#[inline]
pub fn is_wrapped() -> bool {
    text().is_some()
}

/// Returns true if an EXPLAIN is under way.
#[inline]
pub fn is_explaining() -> bool {
    matches!(CURRENT.get(), Some(Wrapper::Explain(_)))
}

/// Returns true if the statement that starts now is the subject of a top-level EXPLAIN.
pub fn explaining() -> bool {
    is_explaining() && at_top_level()
}
