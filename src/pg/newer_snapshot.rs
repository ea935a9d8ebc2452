//! A newer snapshot for a query that is planned later than the server plans, which takes the snapshot after that: a
//! plan that is newer than the snapshot may rest on definitions that do not hold of its rows. Keeps nothing.

use pgrx::pg_sys;

/// Puts a new snapshot in the place of the active one, which is registered in `place`, too; does nothing if another one
/// is active. In REPEATABLE READ the new one is the old one.
///
/// # Safety
/// `place` must belong to a query that has read nothing and that a portal is starting or running: the portal has made
/// the snapshot the active one, and lets go whichever is active then.
pub unsafe fn take(place: *mut pg_sys::Snapshot) {
    // SAFETY: the caller's promise. A snapshot is let go after the new one was registered.
    unsafe {
        if !kept!(pg_sys::ActiveSnapshotSet()) || kept!(pg_sys::GetActiveSnapshot()) != *place {
            return;
        }
        kept!(pg_sys::PopActiveSnapshot());
        kept!(pg_sys::PushActiveSnapshot(kept!(pg_sys::GetTransactionSnapshot())));
        let snapshot = kept!(pg_sys::RegisterSnapshot(kept!(pg_sys::GetActiveSnapshot())));
        kept!(pg_sys::UnregisterSnapshot(*place));
        *place = snapshot;
    }
}
