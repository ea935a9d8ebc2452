//! The hooks of the executor. Keep nothing but what lies on their frames, which is plain data: an error may jump over
//! it.

use std::ffi::c_int;

use pgrx::pg_sys;

use super::planner::plan_anew;
use super::previous::{PREVIOUS, active};
use crate::invalidation::{rows, targets};
use crate::lookup::{self, Call, Pending};
use crate::pg::compat::{self, RunArguments, executor_run_hook};
use crate::pg::error_passing::{edge, with_outcome};
use crate::pg::lists::nodes;
use crate::pg::newer_snapshot;
use crate::pg::query_desc::QueryDesc;
use crate::pg::{attention, backend};
use crate::{capture, copy, fragments, serve, session, settings};

/// `ExecutorStart_hook`. The plan may be swapped before the executor sees it.
///
/// Nearly all statements that get nothing from the cache pass here without a call of ours.
///
/// # Safety
/// Called by the server.
pub unsafe extern "C-unwind" fn start(query_desc: *mut pg_sys::QueryDesc, flags: c_int) {
    // SAFETY: PostgreSQL's own arguments, passed on unchanged.
    unsafe {
        let desc = QueryDesc::of_hook(query_desc);
        let is_passed = !desc.plan().transientPlan
            && attention::is_needless()
            && settings::enabled()
            && edge(|| lookup::pass_at_once(desc));
        if !is_passed {
            start_attended(query_desc, flags);
        } else if desc.plan().resultRelations.is_null() {
            direct!((PREVIOUS.start)(query_desc, flags));
        } else {
            start_change(query_desc, flags);
        }
    }
}

/// Starts a plan that changes relations, about which nothing else is to be decided.
///
/// # Safety
/// As `start`.
#[inline(never)]
unsafe fn start_change(query_desc: *mut pg_sys::QueryDesc, flags: c_int) {
    // SAFETY: the caller's promise.
    unsafe {
        direct!((PREVIOUS.start)(query_desc, flags));
        // Permissions have been checked: who was refused has changed nothing.
        if flags as u32 & pg_sys::EXEC_FLAG_EXPLAIN_ONLY == 0 {
            edge(|| targets::note_started(QueryDesc::of_hook(query_desc)));
        }
    }
}

/// Decides on a plan, and starts it.
///
/// # Safety
/// As `start`.
#[inline(never)]
unsafe fn start_attended(query_desc: *mut pg_sys::QueryDesc, flags: c_int) {
    // SAFETY: the caller's promise.
    unsafe {
        let desc = QueryDesc::of_hook(query_desc);
        let planned = desc.plan().as_ptr();
        let next = PREVIOUS.start;
        if lookup::pending(desc).is_some_and(|pending| settle(desc, flags, pending)) {
            direct!(next(query_desc, flags));
            return;
        }
        if desc.plan().transientPlan
            && let Some(call) = edge(|| fragments::planned_after_all(desc))
        {
            plan_after_all(desc, &call);
        }
        if lookup::observation::is_under_way() {
            edge(|| lookup::observation::look_at(desc));
        }
        edge(|| before_start(desc, planned, flags));
        if capture::is_prepared() {
            // A start that fails lets go what others wait for: a subtransaction may take the error back, and the
            // session go on with something else.
            with_outcome(
                || direct!(next(query_desc, flags)),
                |has_failed| {
                    if has_failed {
                        capture::forget();
                    }
                },
            );
        } else {
            direct!(next(query_desc, flags));
        }
        // Permissions have been checked: who was refused has changed nothing.
        if flags as u32 & pg_sys::EXEC_FLAG_EXPLAIN_ONLY == 0 && !desc.plan().resultRelations.is_null() {
            edge(|| targets::note_started(desc));
        }
        if capture::is_prepared() {
            edge(|| capture::begin(desc));
        }
        if copy::is_deciding() {
            edge(|| copy::after_start(desc));
        }
    }
}

/// Decides on a query that is about to be started. `planned` is the plan that its portal knows.
fn before_start(desc: QueryDesc<'_>, planned: *mut pg_sys::PlannedStmt, flags: c_int) {
    let mut task = None;
    if copy::claims(desc) {
        copy::before_start(desc);
    } else if !active() {
        lookup::skip(desc);
    } else {
        task = lookup::at_start(desc, planned, flags);
    }
    capture::prepare(desc, task);
}

/// Serves the answer that a placeholder stands for, or puts the real plan in its place; says which. What planning
/// raises jumps over this frame.
///
/// # Safety
/// No frame between here and PostgreSQL may have pending destructors.
#[inline(never)]
unsafe fn settle(desc: QueryDesc<'_>, flags: c_int, pending: &Pending<'_>) -> bool {
    // SAFETY: the query has not been started; the caller promises the rest.
    unsafe {
        let served = active() && edge(|| lookup::serve_pending(desc, flags, pending));
        if served {
            capture::prepare(desc, None);
        } else {
            plan_after_all(desc, &pending.call);
        }
        served
    }
}

/// Has the query of a call planned in the place of what stood in for its plan. What planning raises jumps over this
/// frame.
///
/// # Safety
/// The query must not be started. No frame between here and PostgreSQL may have pending destructors.
unsafe fn plan_after_all(desc: QueryDesc<'_>, call: &Call<'_>) {
    // SAFETY: the caller's promise.
    unsafe {
        // A plan shares parts with its query, and a portal that was bound outlives the message that holds the query.
        let query = edge(|| kept!(pg_sys::copyObjectImpl(call.arguments().0.cast()))).cast();
        desc.set_plan(plan_anew(query, *call));
        // Planning may have waited. The server takes the snapshot after it has planned.
        edge(|| newer_snapshot::take(&raw mut (*desc.as_ptr()).snapshot));
    }
}

executor_run_hook!(run, run_query);

/// `ExecutorRun_hook`.
///
/// # Safety
/// Called by the server.
#[inline(always)]
unsafe fn run_query(query_desc: *mut pg_sys::QueryDesc, run: RunArguments) {
    // SAFETY: PostgreSQL's own arguments, passed on unchanged.
    unsafe {
        let desc = QueryDesc::of_hook(query_desc);
        if attention::is_needless() && serve::served(desc).is_none() && !backend::is_in_subtransaction() {
            run_level(desc, run);
        } else {
            run_attended(desc, run);
        }
    }
}

/// Runs a plan on a level of its own. An error fails the transaction, which is told to `session`, so that no handler is
/// needed.
///
/// # Safety
/// As `run_query`, outside of subtransactions.
#[inline(always)]
unsafe fn run_level(desc: QueryDesc<'_>, run: RunArguments) {
    session::begin_timed();
    let outer = session::enter_level();
    // SAFETY: the caller's promise; what is kept over the call is plain data.
    unsafe { compat::call_executor_run(PREVIOUS.run, desc.as_ptr(), run) };
    session::leave_level(outer);
    lookup::timing::end_run();
}

/// Runs a query with which there may be more to do.
///
/// # Safety
/// As `run_query`.
#[inline(never)]
unsafe fn run_attended(desc: QueryDesc<'_>, run: RunArguments) {
    // SAFETY: the caller's promise.
    unsafe {
        if !copy::exports(desc) {
            return run_plan(desc, run);
        }
        // COPY runs its query once, and asks for all rows.
        let (direction, count) = edge(|| copy::before_run(desc));
        run_plan(desc, RunArguments { direction, count, ..run });
        edge(|| copy::after_run(desc));
    }
}

/// Runs a plan, and captures its rows if they are to be stored. What it raises jumps over this frame.
///
/// # Safety
/// `desc` must be the query of an ExecutorRun hook. No frame between here and PostgreSQL may have pending destructors.
unsafe fn run_plan(desc: QueryDesc<'_>, run: RunArguments) {
    // SAFETY: the caller promises that the query runs; what is kept over the calls is plain data.
    unsafe {
        if let Some(served) = serve::served(desc) {
            edge(|| served.note_run(run.direction, run.count));
        }
        if !capture::idle() {
            return run_captured(desc, run);
        }
        if !backend::is_in_subtransaction() {
            return run_level(desc, run);
        }
        session::begin_timed();
        let outer = session::enter_level();
        with_outcome(
            || compat::call_executor_run(PREVIOUS.run, desc.as_ptr(), run),
            |has_failed| leave(desc, outer, has_failed),
        );
        lookup::timing::end_run();
    }
}

/// Runs a plan, with queries under way whose rows are captured or compared: this may be one of them. What it raises
/// jumps over this frame.
///
/// # Safety
/// As `run_plan`.
#[inline(never)]
unsafe fn run_captured(desc: QueryDesc<'_>, run: RunArguments) {
    // SAFETY: the caller promises that the query runs; what is kept over the calls is plain data.
    unsafe {
        let pass = edge(|| capture::before_run(desc, run.direction, run.count));
        let outer = session::enter_level();
        with_outcome(
            || compat::call_executor_run(PREVIOUS.run, desc.as_ptr(), run),
            |has_failed| {
                leave(desc, outer, has_failed);
                pass.restore();
            },
        );
        edge(|| capture::after_run(pass));
    }
}

/// The level of a query is left. One that has failed is not ended by the server.
fn leave(desc: QueryDesc<'_>, outer: u32, has_failed: bool) {
    session::leave_level(outer);
    if has_failed {
        rows::end(desc);
    }
}

/// `ExecutorFinish_hook`.
///
/// # Safety
/// Called by the server.
pub unsafe extern "C-unwind" fn finish(query_desc: *mut pg_sys::QueryDesc) {
    // SAFETY: PostgreSQL's own argument, passed on unchanged.
    unsafe {
        if leaves_nothing(QueryDesc::of_hook(query_desc)) {
            direct!((PREVIOUS.finish)(query_desc));
        } else {
            finish_rest(query_desc);
        }
    }
}

/// Returns true if a query has certainly sent no rows to leaves, and leaves nothing to run. Reads some words and calls
/// nothing.
#[inline]
fn leaves_nothing(query: QueryDesc<'_>) -> bool {
    query.is_started() && !targets::has_routed(query) && !leaves_work(query)
}

/// Returns true if anything is left to run when a plan has returned its last row: triggers, or the rest of a WITH
/// clause.
#[inline]
fn leaves_work(query: QueryDesc<'_>) -> bool {
    let Some(state) = query.estate() else { return false };
    // SAFETY: the state of a query is valid with its lists until the query is ended.
    unsafe {
        let state = state.as_ref();
        !state.es_auxmodifytables.is_null()
            || !state.es_tuple_routing_result_relations.is_null()
            || !state.es_trig_target_relations.is_null()
            || (!state.es_opened_result_relations.is_null()
                && nodes::<pg_sys::ResultRelInfo>(state.es_opened_result_relations)
                    .any(|target| !(*target).ri_TrigDesc.is_null()))
    }
}

/// Finishes a query that may have sent rows to leaves, or has left something to run.
///
/// # Safety
/// As `finish`.
#[inline(never)]
unsafe fn finish_rest(query_desc: *mut pg_sys::QueryDesc) {
    // SAFETY: the caller's promise.
    unsafe {
        let desc = QueryDesc::of_hook(query_desc);
        if targets::has_routed(desc) {
            edge(|| targets::note_routed(desc));
        }
        let next = PREVIOUS.finish;
        if leaves_work(desc) {
            let outer = session::enter_level();
            with_outcome(|| direct!(next(query_desc)), |has_failed| leave(desc, outer, has_failed));
        } else {
            direct!(next(query_desc));
        }
    }
}

/// `ExecutorEnd_hook`.
///
/// # Safety
/// Called by the server.
pub unsafe extern "C-unwind" fn end(query_desc: *mut pg_sys::QueryDesc) {
    // SAFETY: PostgreSQL's own argument, passed on unchanged.
    unsafe {
        if !capture::idle() {
            edge(|| capture::end(QueryDesc::of_hook(query_desc)));
        }
        if !rows::is_idle() {
            edge(|| rows::end(QueryDesc::of_hook(query_desc)));
        }
        direct!((PREVIOUS.end)(query_desc));
    }
}
