//! Scanning an index: `index_beginscan` takes a place for statistics since 18.

use std::ffi::c_int;

use pgrx::pg_sys;

/// Begins to scan an index by keys. What it raises jumps over this frame.
///
/// # Safety
/// Both must be open, the index one of the table, and the snapshot registered or active.
pub unsafe fn begin_index_scan(
    table: pg_sys::Relation,
    index: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
    key_count: c_int,
) -> pg_sys::IndexScanDesc {
    // SAFETY: the caller's promise; nobody asks for statistics of the scan.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        {
            direct!(pg_sys::index_beginscan(table, index, snapshot, key_count, 0))
        }
        #[cfg(feature = "pg18")]
        {
            direct!(pg_sys::index_beginscan(table, index, snapshot, std::ptr::null_mut(), key_count, 0))
        }
    }
}
