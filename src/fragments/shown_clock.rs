//! The clock in the columns of an answer: the clock-free part of the statement (`query::shown_clock`) is planned in the
//! place of the statement, and the projection, which computes what the statement asks for, stands on top of its plan: a
//! `Result` node of the server. So the plan is one that the server itself could have made of the statement. It is kept,
//! copied, invalidated and locked as any other, and what other libraries see is one statement.
//!
//! The plan carries the verdict on its part (`plan_marker::attach_above`). When it is started, the part is looked up as
//! a statement of its own (`lookup::clock_free`): a stored answer takes the place of the part's plan, or the rows of
//! that plan are stored on the way. Keeps nothing.

use arrow_cache_core::Reason;
use pgrx::pg_sys::{self, NodeTag};

use super::planning::{self, Combination};
use crate::lookup::{self, Call, Eligible, Planning};
use crate::pg::folding;
use crate::pg::tree::Tree;
use crate::pg::tree_making::new_node;
use crate::query::eligibility::QueryTraits;
use crate::query::plan_marker;
use crate::query::shown_clock::{ShownClock, is_shown, take_apart};
use crate::query::statement_terms::StatementTerms;
use crate::{session, shmem};

/// The clock-free part of a query, which is to be planned in the place of the query. Plain data, so that an error may
/// jump over it.
#[derive(Clone, Copy)]
pub struct ClockFree {
    parts: ShownClock,
    eligible: Eligible,
    /// The cursor options to plan it with.
    pub options: i32,
}

impl ClockFree {
    /// The query to plan.
    pub fn query(&self) -> *mut pg_sys::Query {
        self.parts.part
    }
}

/// The clock-free part of a query whose answer moves with the clock, if that part may be stored. `planning` is what
/// there was to do about the query.
///
/// Only of statements of clients and of exports: no other is looked up.
pub fn part(call: &Call<'_>, planning: &Planning) -> Option<ClockFree> {
    let store = shmem::store()?;
    let checked = match planning {
        Planning::Refused(reason) => Err(*reason),
        Planning::Eligible(eligible) => Ok(eligible.traits()),
        Planning::Ignored | Planning::Unchecked(_) | Planning::Ready(_) => return None,
    };
    if !may_move(call.query(), checked) || !session::may_be_answered() || StatementTerms::of(call.own_text()).is_err() {
        return None;
    }
    let parts = apart(call.query(), checked, call.params(), store.seed())?;
    let options = options_for_part(call);
    let own = call_of_part(parts.part, call, options);
    let is_one_shot = !session::must_plan() && call.is_one_shot();
    let eligible = lookup::stored_parts::before_planning(&store, &own, is_one_shot).ok()?;
    Some(ClockFree { parts, eligible, options })
}

/// Takes a query apart that was `checked`, if its answer moves with the clock, and its clock-free part is worth asking
/// about. `seed` is the secret of the store.
pub fn apart(
    query: Tree<'_, pg_sys::Query>,
    checked: Result<&QueryTraits, Reason>,
    params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
    seed: u64,
) -> Option<ShownClock> {
    if !may_move(query, checked) || (checked.is_ok() && !lookup::clock_free::moves(query, params, seed)) {
        return None;
    }
    // An error in what the statement never asks for would have no cause in the statement.
    take_apart(query, params.map_or(std::ptr::null_mut(), Tree::as_ptr)).filter(|parts| !parts.may_fail_beside())
}

/// Returns true if the answer may move with the clock for what can be computed last. Quick to tell.
fn may_move(query: Tree<'_, pg_sys::Query>, checked: Result<&QueryTraits, Reason>) -> bool {
    let moves = checked.map_or_else(|reason| reason == Reason::MovingClock, |traits| traits.clocks != 0);
    moves && is_shown(query)
}

/// The cursor options for the part: the planner does not see the projection, which must not run beside other processes
/// if it calls what must not.
fn options_for_part(call: &Call<'_>) -> i32 {
    let parallel = pg_sys::CURSOR_OPT_PARALLEL_OK as i32;
    if call.options() & parallel == 0 {
        return call.options();
    }
    // SAFETY: a valid query; reads catalogs about the functions that it calls.
    let hazard = unsafe { kept!(pg_sys::max_parallel_hazard(call.query().as_ptr())) };
    if hazard as u8 == pg_sys::PROPARALLEL_UNSAFE { call.options() & !parallel } else { call.options() }
}

/// The call that plans the part of a call's query.
fn call_of_part<'m>(part: *mut pg_sys::Query, call: &Call<'m>, options: i32) -> Call<'m> {
    let (_, text, _, params) = call.arguments();
    // SAFETY: the part is a valid query, which nobody has planned; the rest is of a hook.
    unsafe { Call::of_hook(part, text, options, params) }
}

/// The combined query to plan in the place of a clock-free part, if that is worth being combined of parts itself. As
/// `fragments::combine`.
pub fn combine(clock_free: ClockFree, call: &Call<'_>) -> Option<Combination> {
    let own = call_of_part(clock_free.query(), call, clock_free.options);
    planning::combine_for(&own, &clock_free.eligible, call)
}

/// Makes the plan of a query from the `plan` just made of its clock-free part, in the current memory context. False if
/// the part may not be stored: the plan is of no use then.
///
/// # Safety
/// `plan` must be that plan, and nobody else's, and `params` the values that it was made for, or null.
pub unsafe fn plan(clock_free: ClockFree, plan: *mut pg_sys::PlannedStmt, params: pg_sys::ParamListInfo) -> bool {
    // SAFETY: the plan was just made, in the current memory context, so that nodes may be added to it.
    unsafe {
        lookup::after_planning(plan, clock_free.eligible);
        let projection = folding::plan(clock_free.parts.projection.cast(), params);
        // What the projection rests on, the server has to know: it plans a kept statement anew when that changes.
        (*plan).relationOids = kept!(pg_sys::list_concat_unique_oid((*plan).relationOids, projection.relations));
        (*plan).invalItems = kept!(pg_sys::list_concat((*plan).invalItems, projection.items));
        if !plan_marker::attach_above(plan) {
            return false;
        }
        let tree = (*plan).planTree;
        let top = new_node::<pg_sys::Result>();
        // The costs of the part stand for those of the statement: computing a few columns changes no decision of the
        // server.
        (*top).plan = *tree;
        let head = &mut (*top).plan;
        head.type_ = NodeTag::T_Result;
        head.targetlist = projection.expression.cast();
        head.lefttree = tree;
        (head.righttree, head.qual, head.initPlan) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
        (head.parallel_aware, head.parallel_safe, head.async_capable) = (false, false, false);
        // No other node has it: the planner counts from 0.
        head.plan_node_id = -1;
        (*plan).planTree = top.cast();
        true
    }
}
