//! The snapshot of a query that is about to be started. State of this backend.

use pgrx::pg_sys;

use super::error_passing::direct;
use super::query_desc::QueryDesc;
use super::server;

/// Gives a query that has just been planned a snapshot of this moment, where the isolation level gives each statement one of its own. The server plans before
/// it takes the snapshot: a plan may rest on an index, a constraint or a partition that an earlier snapshot does not go with.
///
/// # Safety
/// No frame between here and PostgreSQL may have pending destructors. The query must not have been started, and be run by a portal that has just pushed its
/// snapshot, or by somebody who has pushed another one.
pub unsafe fn renew(desc: QueryDesc<'_>) {
    // SAFETY: plain state of the backend; the portal pops whatever is on top when the query has been started (pquery.c, `PortalStart`), and the query owns
    // the registration of its snapshot.
    unsafe {
        let has_own = pg_sys::XactIsoLevel < pg_sys::XACT_REPEATABLE_READ as i32;
        if !has_own || !std::ptr::eq(direct!(server::GetActiveSnapshot()), desc.snapshot()) {
            return;
        }
        let current = direct!(server::GetTransactionSnapshot());
        let registered = direct!(server::RegisterSnapshot(current));
        let earlier = desc.set_snapshot(registered);
        direct!(server::UnregisterSnapshot(earlier));
        direct!(server::PopActiveSnapshot());
        direct!(server::PushActiveSnapshot(registered));
    }
}
