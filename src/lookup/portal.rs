//! The portal that runs the statement: is it the client's own, when will it be read, is its plan still good? Reads the
//! server's state of this backend; keeps none.

use std::ffi::CStr;

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use crate::pg::lists::nodes;
use crate::session;

/// Is this the client's own query, in a portal that delivers its rows directly? `planned` is the plan that the portal knows.
///
/// # Errors
/// The reason to bypass if it is not.
///
/// # Safety
/// `query_desc` must be valid.
pub unsafe fn check_statement(
    query_desc: *const pg_sys::QueryDesc,
    planned: *mut pg_sys::PlannedStmt,
) -> Result<(), Reason> {
    // SAFETY: as the caller promises; a defined portal has a list of statements.
    unsafe {
        if (*query_desc).operation != pg_sys::CmdType::CMD_SELECT {
            return Err(Reason::NotSelect);
        }
        if (*(*query_desc).plannedstmt).hasModifyingCTE {
            return Err(Reason::DataModifyingCte);
        }
        let portal = pg_sys::ActivePortal;
        let own = !portal.is_null()
            && (*portal).status == pg_sys::PortalStatus::PORTAL_DEFINED
            && (*portal).strategy == pg_sys::PortalStrategy::PORTAL_ONE_SELECT
            && nodes((*portal).stmts).next() == Some(planned)
            && (is_of_client(portal) || session::executing_prepared());
        if !own {
            return Err(Reason::NestedStatement);
        }
        if !(*query_desc).queryEnv.is_null() {
            return Err(Reason::TransitionTable);
        }
        if (*portal).cursorOptions & pg_sys::CURSOR_OPT_HOLD as i32 != 0 {
            return Err(Reason::HoldableCursor);
        }
    }
    Ok(())
}

/// Does the portal run what the client has sent? Cursors of procedural languages have portals, too, and run at the top
/// level when a deferred trigger or a function called by its own message opens them.
///
/// # Safety
/// `portal` must be valid.
unsafe fn is_of_client(portal: pg_sys::Portal) -> bool {
    // SAFETY: as the caller promises; both are query strings or null.
    unsafe {
        let (source, sent) = ((*portal).sourceText, pg_sys::debug_query_string);
        !source.is_null()
            && !sent.is_null()
            && (std::ptr::eq(source, sent) || CStr::from_ptr(source) == CStr::from_ptr(sent))
    }
}

/// Is this the start of a cursor or a named portal, between whose start and reading settings may change? The plan
/// would notice, a stored answer would not.
///
/// # Safety
/// Called in ExecutorStart, or with no portal active.
pub unsafe fn may_be_read_later() -> bool {
    // SAFETY: a portal's name is a C string.
    unsafe {
        let portal = pg_sys::ActivePortal;
        let named = !portal.is_null()
            && (*portal).status == pg_sys::PortalStatus::PORTAL_DEFINED
            && *(*portal).name != 0
            // EXECUTE names its portal too, hides it, and reads it at once.
            && (*portal).visible;
        session::declaring_cursor() || (named && session::at_top_level())
    }
}

/// Does the query under way run in a cursor or a named portal, whose rows may be fetched with other statements in between?
pub fn is_fetched_from() -> bool {
    // SAFETY: the active portal is valid, and its name a C string. EXECUTE names its portal too, and hides it.
    unsafe { pg_sys::ActivePortal.as_ref() }.is_some_and(|portal| unsafe { *portal.name != 0 } && portal.visible)
}

/// Is this the start of a portal that runs a cached plan? Then it may have come by a Bind of its own, and will be read
/// by an Execute.
pub fn is_bound() -> bool {
    // SAFETY: a portal that is being started is valid.
    unsafe { pg_sys::ActivePortal.as_ref() }
        .is_some_and(|portal| portal.status == pg_sys::PortalStatus::PORTAL_DEFINED && !portal.cplan.is_null())
}

/// How many messages about changes of definitions this backend has received.
pub fn messages_received() -> u64 {
    // SAFETY: a plain global of the backend.
    unsafe { pg_sys::SharedInvalidMessageCounter }
}

/// The plan that the active portal runs, if it is one that PostgreSQL keeps and invalidates: a prepared statement holds
/// it, beside the portal. One that was made for this execution alone is never invalidated.
///
/// # Safety
/// As `may_be_read_later`.
unsafe fn kept_plan() -> Option<*mut pg_sys::CachedPlan> {
    // SAFETY: a portal that runs a cached plan keeps it alive.
    unsafe { is_bound().then(|| (*pg_sys::ActivePortal).cplan).filter(|plan| (**plan).refcount > 1) }
}

/// Does the active portal run a kept plan that is still valid, once all invalidations sent so far are accepted?
///
/// # Safety
/// As `may_be_read_later`.
pub unsafe fn has_valid_plan() -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        kept_plan().is_some_and(|plan| {
            pg_sys::AcceptInvalidationMessages();
            (*plan).is_valid
        })
    }
}

/// Has the statement planned anew at its next execution, as an invalidation would.
///
/// # Safety
/// As `may_be_read_later`.
pub unsafe fn ask_for_new_plan() {
    // SAFETY: as the caller promises.
    unsafe {
        if let Some(plan) = kept_plan() {
            (*plan).is_valid = false;
        }
    }
}
