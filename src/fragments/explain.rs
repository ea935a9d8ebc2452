//! What EXPLAIN shows of a statement that is combined of parts.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::parts::Parts;

/// Adds how many parts are stored, and how many were, or would be, computed.
pub fn show(parts: &Parts, explain: &mut pg_sys::ExplainState) {
    let counts = parts.counts();
    let mut integer = |label: &CStr, value: usize| {
        // SAFETY: EXPLAIN's own state, and a literal.
        unsafe { kept!(pg_sys::ExplainPropertyInteger(label.as_ptr(), std::ptr::null(), value as i64, explain)) };
    };
    integer(c"Stored Parts", counts.stored);
    integer(c"Computed Parts", counts.computed);
}
