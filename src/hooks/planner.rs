//! The planner hook. Keeps nothing.

use std::cell::Cell;
use std::ffi::{c_char, c_int};

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::previous::{PREVIOUS, Planner, active};
use crate::fragments::{self, Combination, shown_clock};
use crate::lookup::{self, Call, Placeholder, Planning};
use crate::pg::compat;
use crate::pg::error_passing::{edge, with_cleanup};
use crate::pg::lists::oids;
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
        if !lookup::concerns(&Call::of_hook(query, text, options, params)) || !session::plans_matter() {
            return direct!((PREVIOUS.planner)(query, text, options, params));
        }
        if !active() {
            return plan_unwatched(query, text, options, params);
        }
        plan_concerned(query, text, options, params)
    }
}

/// Plans a query while the cache is off. The plan says so if it may be kept. What planning raises jumps over this
/// frame.
///
/// # Safety
/// As `plan`.
#[inline(never)]
unsafe fn plan_unwatched(
    query: *mut pg_sys::Query,
    text: *const c_char,
    options: c_int,
    params: pg_sys::ParamListInfo,
) -> *mut pg_sys::PlannedStmt {
    // SAFETY: the caller's promise; what is kept over the call is plain data.
    unsafe {
        let may_be_kept = lookup::may_be_kept(&Call::of_hook(query, text, options, params));
        let plan = direct!((PREVIOUS.planner)(query, text, options, params));
        if may_be_kept {
            edge(|| lookup::leave_unchecked(plan, None));
        }
        plan
    }
}

/// Plans a query that concerns the cache, or finds that it need not be planned. What planning raises jumps over this frame.
///
/// # Safety
/// As `plan`.
#[inline(never)]
unsafe fn plan_concerned(
    query: *mut pg_sys::Query,
    text: *const c_char,
    options: c_int,
    params: pg_sys::ParamListInfo,
) -> *mut pg_sys::PlannedStmt {
    // SAFETY: the caller's promise; what is kept over the calls is plain data.
    unsafe {
        let next = PREVIOUS.planner;
        let planning = edge(|| lookup::before_planning(&Call::of_hook(query, text, options, params)));
        if let Planning::Ready(placeholder) = planning {
            if stands_in(placeholder) {
                return placeholder.plan;
            }
            // By way of all planner hooks, as when a placeholder has to give way at the start.
            let plan = Cell::new(std::ptr::null_mut());
            session::set_must_plan(true);
            with_cleanup(
                || plan.set(direct!(pg_sys::planner(query, text, options, params))),
                || session::set_must_plan(false),
            );
            return plan.get();
        }
        let with_clock = plan_clock_free(next, query, text, options, params, &planning);
        if !with_clock.is_null() {
            return with_clock;
        }
        let combination = match &planning {
            Planning::Eligible(eligible) => {
                edge(|| fragments::combine(&Call::of_hook(query, text, options, params), eligible))
            }
            Planning::Refused(Reason::MovingClock) => {
                edge(|| fragments::combine_moving(&Call::of_hook(query, text, options, params)))
            }
            _ => None,
        };
        let is_undecided = match &planning {
            Planning::Eligible(eligible) if combination.is_none() => {
                edge(|| fragments::is_undecided(&Call::of_hook(query, text, options, params), eligible))
            }
            _ => false,
        };
        let combined = combination
            .map_or(std::ptr::null_mut(), |combination| plan_combined(next, combination, text, options, params));
        let plan = if combined.is_null() { direct!(next(query, text, options, params)) } else { combined };
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

/// Locks what planning would lock, as far as the answer needs it, before the snapshot is taken; says whether the
/// placeholder may stand for its plan then. It waits for no lock: planning takes locks in another order, and looks at
/// the query before it waits. So what is not to be had at once is left to planning, and so is an ERROR about a full
/// table of locks.
///
/// # Safety
/// As `plan`.
unsafe fn stands_in(placeholder: Placeholder) -> bool {
    let Placeholder { plan, locks, indexes } = placeholder;
    let mode = pg_sys::AccessShareLock as c_int;
    // SAFETY: the caller's promise.
    unsafe {
        let all = || oids(locks).chain(oids(indexes));
        let mut taken = 0;
        for relation in all() {
            if !compat::lock_at_once(relation) {
                break;
            }
            taken += 1;
        }
        // Locking has told the session what others have changed.
        if taken == all().count() && (locks.is_null() || edge(|| lookup::still_stands(plan))) {
            return true;
        }
        for relation in all().take(taken) {
            direct!(pg_sys::UnlockRelationOid(relation, mode));
        }
        false
    }
}

/// Plans a query whose answer moves with the clock by way of its clock-free part; null for any other. What planning
/// raises jumps over this frame.
///
/// # Safety
/// As `plan_combined`.
unsafe fn plan_clock_free(
    next: Planner,
    query: *mut pg_sys::Query,
    text: *const c_char,
    options: c_int,
    params: pg_sys::ParamListInfo,
    planning: &Planning,
) -> *mut pg_sys::PlannedStmt {
    let none = std::ptr::null_mut();
    if !matches!(planning, Planning::Refused(Reason::MovingClock) | Planning::Eligible(_)) {
        return none;
    }
    // SAFETY: the caller's promise; what is kept over the calls is plain data.
    unsafe {
        let Some(part) = edge(|| shown_clock::part(&Call::of_hook(query, text, options, params), planning)) else {
            return none;
        };
        let combination = edge(|| shown_clock::combine(part, &Call::of_hook(query, text, options, params)));
        let combined = combination
            .map_or(std::ptr::null_mut(), |combination| plan_combined(next, combination, text, part.options, params));
        let plan = if combined.is_null() { direct!(next(part.query(), text, part.options, params)) } else { combined };
        if edge(|| shown_clock::plan(part, plan, params)) { plan } else { none }
    }
}

/// Plans a combined query in the place of the client's. Null if the client's is to be planned after all. What planning
/// raises jumps over this frame.
///
/// # Safety
/// The arguments must be those of the hook. No frame between here and PostgreSQL may have pending destructors.
unsafe fn plan_combined(
    next: Planner,
    combination: Combination,
    text: *const c_char,
    options: c_int,
    params: pg_sys::ParamListInfo,
) -> *mut pg_sys::PlannedStmt {
    let mut plan: *mut pg_sys::PlannedStmt = std::ptr::null_mut();
    let place = &raw mut plan;
    // SAFETY: the caller's promise.
    unsafe {
        with_cleanup(
            || place.write(direct!(next(combination.query, text, options, params))),
            || fragments::end(combination),
        );
        if edge(|| fragments::add_dependencies(combination, plan)) { plan } else { std::ptr::null_mut() }
    }
}
