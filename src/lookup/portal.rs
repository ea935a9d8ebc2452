//! The portal that runs the statement: is it the client's own, when will it be read, is its plan still good? COPY runs
//! its query without one. Reads the server's state of this backend; keeps none.
//!
//! The server points to the active portal only while that exists (pquery.c puts back what was active before, after an
//! error too).

use std::ffi::c_void;

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use crate::pg::backend;
use crate::pg::lists::nodes;
use crate::pg::query_desc::QueryDesc;
use crate::pg::server;
use crate::session;

/// The portal that is active, if there is one. Not to be kept.
pub fn active<'a>() -> Option<&'a pg_sys::PortalData> {
    // SAFETY: see above.
    unsafe { pg_sys::ActivePortal.as_ref() }
}

/// Returns true if this plan is what the active portal runs, for the statement that it was opened for, or the query of
/// its COPY. Foreign keys are checked at the commit without a portal; what a rule adds to a statement does not set its
/// tag. To be asked at the top level, where functions run no portals.
pub fn runs(planned: *mut pg_sys::PlannedStmt) -> bool {
    // SAFETY: an active portal has a list of statements, all of them plans; `planned` is one of a hook.
    let is_its = |portal: &pg_sys::PortalData| unsafe { nodes(portal.stmts).any(|own| own == planned) };
    // SAFETY: as above.
    active().is_some_and(|portal| unsafe { (*planned).canSetTag } && (is_its(portal) || session::copying()))
}

/// Returns true if this is the client's own query, in a portal that delivers its rows directly, or in a COPY. `planned`
/// is the plan that the portal knows.
///
/// # Errors
/// The reason to bypass if it is not.
#[inline]
pub fn check_statement(desc: QueryDesc<'_>, planned: *mut pg_sys::PlannedStmt) -> Result<(), Reason> {
    if desc.operation() != pg_sys::CmdType::CMD_SELECT {
        return Err(Reason::NotSelect);
    }
    if desc.plan().hasModifyingCTE {
        return Err(Reason::DataModifyingCte);
    }
    let is_statement = active().is_some_and(|portal| {
        portal.status == pg_sys::PortalStatus::PORTAL_DEFINED
            && portal.strategy == pg_sys::PortalStrategy::PORTAL_ONE_SELECT
            // SAFETY: a defined portal has a list of statements.
            && unsafe { nodes(portal.stmts) }.next() == Some(planned)
            && (is_of_client(portal) || session::executing_prepared())
    });
    if !is_statement && !session::copying() {
        return Err(Reason::NestedStatement);
    }
    if desc.has_transition_tables() {
        return Err(Reason::UnsupportedRelation);
    }
    Ok(())
}

/// Returns true if the portal runs what the client has sent. Cursors of procedural languages have portals, too, and run
/// at the top level when a deferred trigger or a function called by its own message opens them.
fn is_of_client(portal: &pg_sys::PortalData) -> bool {
    // SAFETY: a plain global of the backend.
    let (source, sent) = (portal.sourceText, unsafe { pg_sys::debug_query_string });
    !source.is_null()
        && !sent.is_null()
        // SAFETY: both are query strings.
        && (std::ptr::eq(source, sent) || unsafe { server::strcmp(source, sent) } == 0)
}

/// Returns true if the portal has a name. EXECUTE names its portal too, but hides it, and reads it at once.
fn is_named(portal: &pg_sys::PortalData) -> bool {
    // SAFETY: a portal's name is a C string.
    let named = unsafe { *portal.name != 0 };
    named && portal.visible
}

/// Returns true if this is the start of a cursor or a named portal, between whose start and reading settings may
/// change. The plan would notice, a stored answer would not.
pub fn may_be_read_later() -> bool {
    let named =
        active().is_some_and(|portal| portal.status == pg_sys::PortalStatus::PORTAL_DEFINED && is_named(portal));
    session::declaring_cursor() || (named && session::at_top_level())
}

/// As `may_be_read_later`, if another statement could update the row that is read (WHERE CURRENT OF). In a read-only
/// transaction none can: the server refuses it when it starts, and a transaction that has taken a snapshot never
/// becomes writable again. A subtransaction may be read-only by itself, and leave the portal to a transaction that is
/// not. Nor is the row of a cursor updated that is held (execCurrent.c).
pub fn may_be_updated() -> bool {
    may_be_read_later() && !backend::is_read_only_transaction() && !session::holds_cursor_at_once()
}

/// Returns true if the query under way runs in a cursor or a named portal, whose rows may be fetched with other
/// statements in between.
pub fn is_fetched_from() -> bool {
    active().is_some_and(is_named)
}

/// How many rows lie before those that the next run of a query gives, if it runs forward; `None` if the active portal
/// does not run it.
pub fn rows_before(query: QueryDesc<'_>) -> Option<u64> {
    let portal = active().filter(|portal| std::ptr::eq(portal.queryDesc, query.as_ptr()))?;
    // The copy that is made of a cursor WITH HOLD has all rows if the cursor can go backward, and the portal stays
    // where it is.
    let is_copied = !portal.holdStore.is_null() && portal.cursorOptions & pg_sys::CURSOR_OPT_SCROLL as i32 != 0;
    Some(if is_copied { 0 } else { portal.portalPos })
}

/// Returns true if the active portal runs what has come by a message of the simple protocol.
pub fn is_of_simple_protocol() -> bool {
    active().is_some_and(|portal| portal.cplan.is_null())
}

/// Returns true if this is the start of a portal that runs a cached plan. Then it may have come by a Bind of its own,
/// and will be read by an Execute.
pub fn is_bound() -> bool {
    active().is_some_and(is_starting_cached_plan)
}

/// Returns true if a Bind is under way that opens the portal without a name, which a client reads at once or not at
/// all. A Bind names its portal in the innermost context of errors (postgres.c, `exec_bind_message`).
pub fn is_bound_without_name() -> bool {
    let of_bind: unsafe extern "C-unwind" fn(*mut c_void) = server::ParamsErrorCallback;
    // SAFETY: plain globals of the backend; a context of errors with this function has this argument.
    unsafe {
        pg_sys::error_context_stack.as_ref().is_some_and(|context| {
            let is_of_bind = context.callback.is_some_and(|function| std::ptr::fn_addr_eq(function, of_bind));
            let portal = context.arg.cast::<pg_sys::ParamsErrorCbData>().as_ref().filter(|_| is_of_bind);
            portal.is_some_and(|portal| !portal.portalName.is_null() && *portal.portalName == 0)
        })
    }
}

fn is_starting_cached_plan(portal: &pg_sys::PortalData) -> bool {
    portal.status == pg_sys::PortalStatus::PORTAL_DEFINED && !portal.cplan.is_null()
}

/// How many messages about changes of definitions this backend has received.
pub fn messages_received() -> u64 {
    // SAFETY: a plain global of the backend.
    unsafe { pg_sys::SharedInvalidMessageCounter }
}

/// Returns true if the active portal runs a plan that PostgreSQL keeps and invalidates, which is still valid once all
/// invalidations sent so far are accepted. A prepared statement holds such a plan, beside the portal; one that was made
/// for this execution alone is never invalidated.
pub fn has_valid_plan() -> bool {
    active().filter(|portal| is_starting_cached_plan(portal)).is_some_and(|portal| {
        // SAFETY: called inside a transaction; a portal that runs a cached plan holds it meanwhile.
        unsafe {
            (*portal.cplan).refcount > 1 && {
                kept!(pg_sys::AcceptInvalidationMessages());
                (*portal.cplan).is_valid
            }
        }
    })
}
