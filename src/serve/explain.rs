//! What EXPLAIN shows of a hit.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::hold::Hold;
use crate::pg::backend;
use crate::shmem;

/// Adds the facts of a held entry to `EXPLAIN (ANALYZE)`.
pub fn show(hold: &Hold, explain: &mut pg_sys::ExplainState) {
    let (true, Some(store), Some(pin)) = (explain.analyze, shmem::store(), hold.pin()) else { return };
    let view = store.view(pin);
    let mut integer = |label: &CStr, value: i64| {
        // SAFETY: EXPLAIN's own state, and a literal.
        unsafe { kept!(pg_sys::ExplainPropertyInteger(label.as_ptr(), std::ptr::null(), value, explain)) };
    };
    integer(c"Cached Rows", view.rows() as i64);
    integer(c"Batches", i64::from(view.chunk_count()));
    integer(c"Bytes", view.bytes() as i64);
    let age = backend::now() - view.created_at();
    let mut milliseconds = |label: &CStr, micros: f64| {
        // SAFETY: EXPLAIN's own state, and literals.
        unsafe { kept!(pg_sys::ExplainPropertyFloat(label.as_ptr(), c"ms".as_ptr(), micros / 1000.0, 3, explain)) };
    };
    milliseconds(c"Age", age as f64);
    if !store.is_current(pin) {
        let known_good = backend::now() - view.known_good();
        milliseconds(c"Staleness", known_good as f64);
    }
    milliseconds(c"Execution Time Saved", view.execution_micros() as f64);
}
