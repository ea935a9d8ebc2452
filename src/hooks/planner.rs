//! The planner hook. Keeps nothing.

use std::cell::Cell;
use std::ffi::{c_char, c_int};

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::previous::{PREVIOUS, active};
use crate::fragments::{self, Combination, shown_clock};
use crate::lookup::{self, Call, Planning};
use crate::pg::error_passing::{edge, with_cleanup};
use crate::session;

/// `planner_hook`: plans a query, or finds that it need not be planned. What planning raises jumps over this frame.
///
/// # Safety
/// Called by the server.
pub unsafe extern "C-unwind" fn plan(
    query: *mut pg_sys::Query,
    text: *const c_char,
    options: c_int,
    params: pg_sys::ParamListInfo,
) -> *mut pg_sys::PlannedStmt {
    // SAFETY: PostgreSQL's own arguments, passed on unchanged.
    unsafe {
        let call = Call::of_hook(query, text, options, params);
        if !lookup::concerns(&call) || !session::plans_matter() {
            return direct!((PREVIOUS.planner)(query, text, options, params));
        }
        if active() { plan_concerned(call) } else { plan_unwatched(call) }
    }
}

/// Has the next hook in line plan this query instead of that of the call. What planning raises jumps over this frame.
///
/// # Safety
/// The query must be a valid one, and the call that of a hook that is under way.
unsafe fn next(call: Call<'_>, query: *mut pg_sys::Query) -> *mut pg_sys::PlannedStmt {
    let (_, text, options, params) = call.arguments();
    // SAFETY: the caller's promise; the call is plain data.
    unsafe {
        let plan = direct!((PREVIOUS.planner)(query, text, options, params));
        if call.has_bodies() {
            edge(|| call.note_bodies(plan));
        }
        plan
    }
}

/// Plans a query in the place of that of a call, for which no placeholder may stand: by way of all planner hooks, since
/// some libraries' come before ours. What planning raises jumps over this frame.
///
/// # Safety
/// As `next`.
pub unsafe fn plan_anew(query: *mut pg_sys::Query, call: Call<'_>) -> *mut pg_sys::PlannedStmt {
    let (_, text, options, params) = call.arguments();
    let plan = Cell::new(std::ptr::null_mut());
    session::set_must_plan(true);
    // SAFETY: the caller's promise.
    unsafe {
        with_cleanup(
            || plan.set(direct!(pg_sys::planner(query, text, options, params))),
            || session::set_must_plan(false),
        );
    }
    plan.get()
}

/// Plans a query while the cache is off. The plan says so if it may be kept. What planning raises jumps over this
/// frame.
///
/// # Safety
/// As `next`.
#[inline(never)]
unsafe fn plan_unwatched(call: Call<'_>) -> *mut pg_sys::PlannedStmt {
    // SAFETY: the caller's promise; what is kept over the call is plain data.
    unsafe {
        let may_be_kept = lookup::may_be_kept(&call);
        let plan = next(call, call.arguments().0);
        if may_be_kept {
            edge(|| lookup::leave_unchecked(plan, None));
        }
        plan
    }
}

/// Plans a query that concerns the cache, or finds that it need not be planned. What planning raises jumps over this
/// frame.
///
/// # Safety
/// As `next`.
#[inline(never)]
unsafe fn plan_concerned(mut call: Call<'_>) -> *mut pg_sys::PlannedStmt {
    // SAFETY: the caller's promise; what is kept over the calls is plain data.
    unsafe {
        let planning = edge(|| lookup::before_planning(&mut call));
        if let Planning::Ready(placeholder) = planning {
            return placeholder;
        }
        let with_clock = plan_clock_free(call, &planning);
        if !with_clock.is_null() {
            return with_clock;
        }
        let combination = match &planning {
            Planning::Eligible(eligible) => edge(|| fragments::combine(&call, eligible)),
            Planning::Refused(Reason::MovingClock) => edge(|| fragments::combine_moving(&call)),
            _ => None,
        };
        let is_undecided = match &planning {
            Planning::Eligible(eligible) if combination.is_none() => edge(|| fragments::is_undecided(&call, eligible)),
            _ => false,
        };
        let combined = combination.map_or(std::ptr::null_mut(), |combination| plan_combined(call, combination));
        let plan = if combined.is_null() { next(call, call.arguments().0) } else { combined };
        match planning {
            Planning::Eligible(eligible) => edge(|| lookup::after_planning(plan, eligible)),
            Planning::Refused(reason) => edge(|| lookup::refuse(plan, reason)),
            Planning::Unchecked(form) => edge(|| lookup::leave_unchecked(plan, Some(form))),
            Planning::Ignored | Planning::Ready { .. } => {}
        }
        // The server plans it anew when a transaction has ended since (plancache.c).
        (*plan).transientPlan |= is_undecided;
        plan
    }
}

/// Plans a query whose answer moves with the clock by way of its clock-free part; null for any other. What planning
/// raises jumps over this frame.
///
/// # Safety
/// As `plan_combined`.
unsafe fn plan_clock_free(call: Call<'_>, planning: &Planning) -> *mut pg_sys::PlannedStmt {
    let none = std::ptr::null_mut();
    if !matches!(planning, Planning::Refused(Reason::MovingClock) | Planning::Eligible(_)) {
        return none;
    }
    // SAFETY: the caller's promise; what is kept over the calls is plain data.
    unsafe {
        let Some(part) = edge(|| shown_clock::part(&call, planning)) else { return none };
        let combination = edge(|| shown_clock::combine(part, &call));
        let of_part = call.of_other(part.query(), part.options);
        let combined = combination.map_or(none, |combination| plan_combined(of_part, combination));
        let plan = if combined.is_null() { next(of_part, part.query()) } else { combined };
        if edge(|| shown_clock::plan(part, plan, call.arguments().3)) { plan } else { none }
    }
}

/// Plans a combined query in the place of that of a call. Null if the latter is to be planned after all. What planning
/// raises jumps over this frame.
///
/// # Safety
/// As `next`. No frame between here and PostgreSQL may have pending destructors.
unsafe fn plan_combined(call: Call<'_>, combination: Combination) -> *mut pg_sys::PlannedStmt {
    let plan = Cell::new(std::ptr::null_mut());
    // SAFETY: the caller's promise.
    unsafe {
        with_cleanup(|| plan.set(next(call, combination.query)), fragments::end);
        let plan = plan.get();
        let is_made = edge(|| fragments::add_dependencies(combination, plan));
        if is_made { plan } else { std::ptr::null_mut() }
    }
}
