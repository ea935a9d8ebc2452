//! The snapshot of a statement as the protocol sees it. Reads the server's state; keeps none.

use arrow_cache_core::{Reason, SnapshotView};
use pgrx::pg_sys;

use crate::pg::{backend, compat};
use crate::shmem::SharedStore;

/// The snapshot in the form that the protocol needs.
///
/// # Errors
/// The reason to bypass when the cache cannot reason about it.
#[inline]
pub fn view<'s>(store: &SharedStore, snapshot: Option<&'s pg_sys::SnapshotData>) -> Result<SnapshotView<'s>, Reason> {
    // SAFETY: a plain global of the backend.
    if unsafe { pg_sys::XactIsoLevel } == pg_sys::XACT_SERIALIZABLE as i32 {
        return Err(Reason::Serializable);
    }
    if backend::is_in_recovery() {
        return Err(Reason::Recovery);
    }
    let usable = |snapshot: &&pg_sys::SnapshotData| {
        snapshot.snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC && !snapshot.takenDuringRecovery
    };
    let snapshot = snapshot.filter(usable).ok_or(Reason::Snapshot)?;
    let next = compat::next_full_transaction_id();
    store.versions().ensure_floor(next);
    let running: &[u32] = if snapshot.xcnt == 0 {
        &[]
    } else {
        // SAFETY: the server keeps `xcnt` ids in `xip`, as long as the snapshot.
        unsafe { std::slice::from_raw_parts(snapshot.xip.cast(), snapshot.xcnt as usize) }
    };
    Ok(SnapshotView::new(next, snapshot.xmin.into_inner(), snapshot.xmax.into_inner(), running))
}
