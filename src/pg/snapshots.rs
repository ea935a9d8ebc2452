//! The snapshot of a query that is about to be started. State of this backend.

use pgrx::pg_sys;

use super::error_passing::kept;
use super::query_desc::QueryDesc;
use super::server;

/// Does the isolation level give each statement a snapshot of its own?
pub fn are_of_statements() -> bool {
    // SAFETY: a plain global of the backend.
    unsafe { pg_sys::XactIsoLevel < pg_sys::XACT_REPEATABLE_READ as i32 }
}

/// Gives a query that was planned, or has waited, a snapshot of this moment, where each statement has one of its own. The server plans before it takes the
/// snapshot, and starts at once: a plan may rest on an index, a constraint or a partition that an earlier snapshot does not go with, and what no lock
/// holds may have been truncated since. What the server raises unwinds this frame.
///
/// # Safety
/// The query must not have been started, and be run by a portal that has just pushed its snapshot, or by somebody who has pushed another one.
pub unsafe fn renew(desc: QueryDesc<'_>) {
    // SAFETY: the portal pops whatever is on top when the query has been started (pquery.c, `PortalStart`), and the query owns the registration of its
    // snapshot.
    unsafe {
        if !are_of_statements() || !std::ptr::eq(kept!(server::GetActiveSnapshot()), desc.snapshot()) {
            return;
        }
        let current = kept!(server::GetTransactionSnapshot());
        let registered = kept!(server::RegisterSnapshot(current));
        let earlier = desc.set_snapshot(registered);
        kept!(server::UnregisterSnapshot(earlier));
        kept!(server::PopActiveSnapshot());
        kept!(server::PushActiveSnapshot(registered));
    }
}
