//! The way back from a plan that is combined of parts: they must not be planned if somebody has changed definitions after the statement's plan was made. Its
//! snapshot may see rows of which the new definitions know nothing, such as the duplicates that were removed before a unique index was made. No row has been
//! given yet, so another plan runs: the server's own one, if it was made before the snapshot was taken. If there is none, the query is planned as the server
//! would, and then gets the snapshot that it would have got in this order. Keeps nothing.

use pgrx::pg_sys::{self, NodeTag};

use super::exchange::exchange;
use crate::pg::error_passing::kept;
use crate::pg::newer_snapshot;
use crate::pg::query_desc::QueryDesc;
use crate::pg::server;
use crate::pg::tree_making::copy;

/// Runs this instead of a combined plan that was started: puts it in its place. Returns a descriptor that holds the combined one. What the server raises unwinds
/// this frame, and fails the portal.
///
/// # Safety
/// `instead` must be a plan of the query or the query itself, valid as long as its descriptor, and the query must not have run.
pub unsafe fn exchange_for(query: QueryDesc<'_>, instead: *mut pg_sys::Node) -> Option<*mut pg_sys::QueryDesc> {
    // SAFETY: the caller's promise. The memory of the descriptor outlives the execution, and with it the plan.
    unsafe {
        if instead.is_null() {
            return None;
        }
        let caller = pg_sys::MemoryContextSwitchTo(query.own_context());
        let desc = query.as_ptr();
        let plan = if (*instead).type_ == NodeTag::T_PlannedStmt {
            instead.cast()
        } else {
            let plan = plan_anew(instead, (*(*desc).estate).es_sourceText);
            renew_snapshot((*desc).estate, &raw mut (*desc).snapshot);
            plan
        };
        let combined = exchange(query, plan, query.params(), |_started| true);
        pg_sys::MemoryContextSwitchTo(caller);
        combined
    }
}

/// The server's own plan of a query, in the current memory context. Other libraries have seen it planned.
///
/// # Safety
/// A valid query that nobody has planned, and the text of its statement.
pub unsafe fn plan_anew(query: *mut pg_sys::Node, text: *const std::ffi::c_char) -> *mut pg_sys::PlannedStmt {
    // SAFETY: the caller's promise; a copy is planned.
    unsafe {
        let (query, options) = (copy(query).cast(), pg_sys::CURSOR_OPT_PARALLEL_OK as i32);
        kept!(server::standard_planner(query, text, options, std::ptr::null_mut()))
    }
}

/// Puts a new snapshot in the place of the one that a statement has registered in `place`, if it is one of the simple protocol, which has read nothing: the
/// server plans such a statement before it takes the snapshot. The plans of EXPLAIN are made under its snapshot.
///
/// # Safety
/// `state` must be that of the statement, which is being run.
pub unsafe fn renew_snapshot(state: *mut pg_sys::EState, place: *mut pg_sys::Snapshot) {
    // SAFETY: the caller's promise. The portal runs the statement.
    unsafe {
        let Some(portal) = pg_sys::ActivePortal.as_ref() else { return };
        let runs = portal.strategy == pg_sys::PortalStrategy::PORTAL_ONE_SELECT
            && portal.queryDesc.as_ref().is_some_and(|desc| std::ptr::eq(desc.estate, state));
        if runs {
            newer_snapshot::take(place);
        }
    }
}
