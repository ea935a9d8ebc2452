//! What EXPLAIN says of a hit.

use pgrx::pg_sys;

use super::scan::CachedScanState;
use crate::shmem;

/// Adds the entry's facts to `EXPLAIN (ANALYZE)`.
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn show(
    node: *mut pg_sys::CustomScanState,
    _ancestors: *mut pg_sys::List,
    explain: *mut pg_sys::ExplainState,
) {
    // SAFETY: the node is ours; EXPLAIN runs before ExecutorEnd, so the entry is still pinned.
    unsafe {
        if !(*explain).analyze {
            return;
        }
        let hold = &*(*node.cast::<CachedScanState>()).hold;
        let (Some(store), Some(pin)) = (shmem::store(), hold.pin()) else { return };
        let view = store.view(&pin);
        let integer = |label: &std::ffi::CStr, unit: Option<&std::ffi::CStr>, value: i64| {
            let unit = unit.map_or(std::ptr::null(), std::ffi::CStr::as_ptr);
            pg_sys::ExplainPropertyInteger(label.as_ptr(), unit, value, explain);
        };
        integer(c"Cached Rows", None, view.rows() as i64);
        integer(c"Batches", None, i64::from(view.chunk_count()));
        integer(c"Bytes", None, view.bytes() as i64);
        let age = pg_sys::GetCurrentTimestamp() - view.created_at();
        let milliseconds = |label: &std::ffi::CStr, micros: f64| {
            pg_sys::ExplainPropertyFloat(label.as_ptr(), c"ms".as_ptr(), micros / 1000.0, 3, explain);
        };
        milliseconds(c"Age", age as f64);
        milliseconds(c"Execution Time Saved", view.execution_micros() as f64);
    }
}
