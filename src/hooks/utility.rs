//! The hook of utility statements. Keeps nothing.

use std::ffi::c_char;

use pgrx::pg_sys;

use super::previous::PREVIOUS;
use super::utility_scope::{self, Utility};
use crate::pg::error_passing::{edge, with_outcome};

/// `ProcessUtility_hook`.
///
/// # Safety
/// Called by the server.
pub unsafe extern "C-unwind" fn process(
    plan: *mut pg_sys::PlannedStmt,
    text: *const c_char,
    read_only: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    params: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
    receiver: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    // SAFETY: PostgreSQL's own arguments, passed on unchanged.
    unsafe {
        let utility = Utility::of_hook(plan, text);
        if utility.only_steers_transaction() {
            edge(|| utility_scope::note_steering(utility));
            direct!((PREVIOUS.utility)(plan, text, read_only, context, params, environment, receiver, completion));
        } else {
            process_in_scope(plan, text, read_only, context, params, environment, receiver, completion);
        }
    }
}

/// Runs a statement that may run others, or change what the cache rests on.
///
/// # Safety
/// As `process`.
#[expect(clippy::too_many_arguments, reason = "those of the hook")]
#[inline(never)]
unsafe fn process_in_scope(
    plan: *mut pg_sys::PlannedStmt,
    text: *const c_char,
    read_only: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    params: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
    receiver: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    // SAFETY: PostgreSQL's own arguments, passed on unchanged; a scope is plain data.
    unsafe {
        let next = PREVIOUS.utility;
        let scope = edge(|| utility_scope::enter(Utility::of_hook(plan, text)));
        with_outcome(
            || {
                let plan = scope.statement(plan);
                direct!(next(plan, text, read_only, context, params, environment, receiver, completion));
            },
            |raised| utility_scope::leave(scope, raised),
        );
        if scope.has_aftermath() {
            edge(|| utility_scope::succeed(scope));
        }
    }
}
