//! The snapshot of a statement as the protocol sees it. Reads the server's state; keeps none.

use arrow_cache_core::{Reason, SnapshotView};
use pgrx::pg_sys;

use crate::error;
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
    if compat::snapshots_grow_old() {
        // Executing may raise `snapshot too old`.
        return Err(Reason::Snapshot);
    }
    let in_recovery = backend::is_in_recovery();
    if in_recovery {
        check_replay(store)?;
    }
    let usable = |snapshot: &&pg_sys::SnapshotData| {
        snapshot.snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC && snapshot.takenDuringRecovery == in_recovery
    };
    // A snapshot that was exported in recovery loses its ids when the server has lost sight of sub-transactions.
    let complete = |snapshot: &&pg_sys::SnapshotData| {
        !(in_recovery && snapshot.suboverflowed && snapshot.subxcnt == 0 && snapshot.xmin != snapshot.xmax)
    };
    let snapshot = snapshot.filter(usable).filter(complete).ok_or(Reason::Snapshot)?;
    let next = compat::next_full_transaction_id();
    store.versions().ensure_floor(next);
    // In recovery all running ids stand in `subxip`, sub-transactions among them. An id at the top stays there until its end, also when the
    // server has lost sight of sub-transactions (`suboverflowed`).
    let (ids, count) =
        if in_recovery { (snapshot.subxip, snapshot.subxcnt.unsigned_abs()) } else { (snapshot.xip, snapshot.xcnt) };
    let running: &[u32] = if count == 0 {
        &[]
    } else {
        // SAFETY: the server keeps as many ids there, as long as the snapshot.
        unsafe { std::slice::from_raw_parts(ids.cast(), count as usize) }
    };
    Ok(SnapshotView::new(next, snapshot.xmin.into_inner(), snapshot.xmax.into_inner(), running))
}

/// Does replay tell of every change? To be asked when the snapshot has been taken: what made replay stop telling is not visible to it, or
/// is found here.
///
/// # Errors
/// It does not.
#[inline]
fn check_replay(store: &SharedStore) -> Result<(), Reason> {
    if store.replay().fault().is_none() { Ok(()) } else { Err(tell_fault(store)) }
}

/// The reason to bypass when replay does not tell of every change. The first to find out tells the log why.
#[cold]
fn tell_fault(store: &SharedStore) -> Reason {
    if let Some(fault) = store.replay().take_untold() {
        error::log(format!("the cache is switched off until the server is restarted: {}", fault.sentence()));
    }
    Reason::Recovery
}
