//! The way back from a hit: when a guarded scan finds that its answer does not hold any more, or may not while the
//! portal is suspended, it runs the real plan in its own place.
//!
//! Much of what the server does is done when a plan is started: rights to functions are checked, partitions are left
//! out, functions and types are found. The real plan is started when it is needed. State of one scan of this backend.

use std::ffi::c_int;

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::hit::note_hit;
use super::hold::Hold;
use crate::pg::compat;
use crate::pg::error_passing::{edge, with_cleanup};
use crate::pg::server;
use crate::report::{decision_log, tally};
use crate::session::{self, Status};
use crate::shmem;

/// Asks the guard of a hit, once. Counts the hit if the answer holds; if not, lets the entry go: the real plan has to
/// run. Returns that plan, and the role that it is started as: the one that had started the statement.
pub fn needed(hold: &mut Hold) -> Option<(*mut pg_sys::PlannedStmt, pg_sys::Oid)> {
    let (guard, store) = (hold.take_guard()?, shmem::store()?);
    let pin = hold.pin()?;
    if guard.holds(&store, pin) {
        // SAFETY: the plan of the query that was hit lives as long as its portal.
        let plan = unsafe { &*guard.plan };
        note_hit(&store, pin, None, compat::query_id(plan));
        return None;
    }
    hold.release();
    // SAFETY: as above.
    let plan = unsafe { &*guard.plan };
    tally::count_bypass(&store, Reason::SettingsInCursor, compat::query_id(plan));
    let status = Status::Bypass(Reason::SettingsInCursor);
    session::set_status_of(guard.started.statement, status);
    decision_log::note(status, plan);
    Some((guard.plan, guard.started.role))
}

/// Starts the real plan under the snapshot and with the parameters of the scan, when its first row is asked for.
/// `flags` are those of the scan.
///
/// The same as when the scan was started are the snapshot, which the portal has registered; the parameters; and the
/// tables and indexes of a cursor, which the scan holds open. What may have changed:
///
/// * Rights. Those to tables were checked when the scan was started, since its plan has the range table of the real
///   one; they are not checked again. Those to functions are checked for the same role as they would have been then: a
///   right that it has lost in between raises the error that a new statement would get. Starting the plan as a role
///   that has all rights would spare that error, and is not done: nothing that belongs to the cache runs with rights
///   that its user lacks.
/// * Settings and definitions. They are those of the moment at which the first row is computed.
///
/// # Safety
/// `state` must be the executor state of the scan, the plan a valid one for the same query. What the plan raises jumps
/// over this frame: no frame between here and PostgreSQL may have pending destructors.
pub unsafe fn start(
    state: *const pg_sys::EState,
    plan: *mut pg_sys::PlannedStmt,
    flags: c_int,
    role: pg_sys::Oid,
) -> *mut pg_sys::QueryDesc {
    // SAFETY: the caller vouches for state and plan, and that errors may jump. The copy of the plan, in the query's
    // memory, lives as long as what is started. Setting the role changes two variables, and cannot raise; an abort of
    // the transaction sets them back as well. Other libraries have seen this execution start already, so they are not
    // told again.
    unsafe {
        let (mut user, mut restrictions) = (pg_sys::InvalidOid, 0);
        server::GetUserIdAndSecContext(&raw mut user, &raw mut restrictions);
        let plan = edge(|| {
            let caller = pg_sys::MemoryContextSwitchTo((*state).es_query_cxt);
            let plan = compat::unchecked_plan(plan);
            pg_sys::MemoryContextSwitchTo(caller);
            plan
        });
        let query_desc = direct!(pg_sys::CreateQueryDesc(
            plan,
            (*state).es_sourceText,
            (*state).es_snapshot,
            std::ptr::null_mut(),
            pg_sys::None_Receiver,
            (*state).es_param_list_info,
            std::ptr::null_mut(),
            0,
        ));
        let restricted =
            restrictions | (pg_sys::SECURITY_LOCAL_USERID_CHANGE | pg_sys::SECURITY_RESTRICTED_OPERATION) as c_int;
        with_cleanup(
            || {
                server::SetUserIdAndSecContext(role, restricted);
                compat::start_unshown(query_desc, flags);
            },
            || server::SetUserIdAndSecContext(user, restrictions),
        );
        query_desc
    }
}

/// Takes a plan that `start` has started back to its start. Raises as `start` does.
///
/// # Safety
/// `query_desc` must come from `start`; as there, no destructors may be pending.
pub unsafe fn rewind(query_desc: *mut pg_sys::QueryDesc) {
    // SAFETY: `start` has made the nodes.
    unsafe { direct!(pg_sys::ExecReScan((*query_desc).planstate)) };
}
