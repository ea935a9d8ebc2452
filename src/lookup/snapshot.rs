//! The snapshot of a statement as the protocol sees it. Reads the server's state; keeps none.

use arrow_cache_core::{Reason, SnapshotView};
use pgrx::pg_sys;

use crate::pg::{backend, compat};
use crate::shmem::SharedStore;

/// The snapshot in the form the protocol needs.
///
/// # Errors
/// The reason to bypass when the cache cannot reason about it.
///
/// # Safety
/// `snapshot` must be registered for as long as the result is used.
pub unsafe fn view<'a>(store: &SharedStore, snapshot: pg_sys::Snapshot) -> Result<SnapshotView<'a>, Reason> {
    // SAFETY: as the caller promises; `xip` holds `xcnt` ids.
    unsafe {
        if pg_sys::XactIsoLevel == pg_sys::XACT_SERIALIZABLE as i32 {
            return Err(Reason::Serializable);
        }
        if backend::is_in_recovery() {
            return Err(Reason::Recovery);
        }
        if snapshot.is_null()
            || (*snapshot).snapshot_type != pg_sys::SnapshotType::SNAPSHOT_MVCC
            || (*snapshot).takenDuringRecovery
        {
            return Err(Reason::Snapshot);
        }
        let next = compat::next_full_transaction_id();
        store.versions().ensure_floor(next);
        let running: &[u32] = if (*snapshot).xcnt == 0 {
            &[]
        } else {
            std::slice::from_raw_parts((*snapshot).xip.cast(), (*snapshot).xcnt as usize)
        };
        Ok(SnapshotView::new(next, (*snapshot).xmin.into_inner(), (*snapshot).xmax.into_inner(), running))
    }
}
