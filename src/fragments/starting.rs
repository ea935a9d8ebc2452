//! Plans that the planner hook has left to the server, because they are made for the values of a Bind, or kept: their costs decide which kind of
//! plan the server makes next, and they may run under other settings than they were made for. Or because they read several tables with children, which are
//! locked in the order of planning (`lock_order`). When such a plan starts, and there is no answer for it, it may be replaced by the plan of the combined query. Keeps nothing.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::planning;
use super::{admission, carried, first_run, index_locks};
use crate::lookup::parts::may_have_parts;
use crate::lookup::{Call, Eligible, Miss, definition_versions, portal};
use crate::pg::query_desc::QueryDesc;
use crate::query::decomposition::has_candidates;
use crate::query::eligibility::QueryTraits;
use crate::query::lock_order;
use crate::query::statement_terms::StatementTerms;
use crate::query::{Marked, Versions, environment, plan_marker};
use crate::session::{self, Status};
use crate::shmem::{self, SharedStore};
use crate::{lookup, settings};

/// A copy of a query that is about to be planned, to be attached to its plan; null if it has no parts.
pub fn question(call: &Call<'_>, eligible: &Eligible) -> *mut pg_sys::Query {
    let is_planned_by_server =
        || call.has_values() || !call.is_one_shot() || lock_order::is_of_several_parents(call.query());
    if !settings::enable_fragments()
        || !may_have_parts(eligible.traits())
        || !has_candidates(call.query())
        || !is_planned_by_server()
    {
        return std::ptr::null_mut();
    }
    // SAFETY: a valid query.
    unsafe { pg_sys::copyObjectImpl(call.query().as_ptr().cast()).cast() }
}

/// Puts the plan of the combined query in the place of the plan of a query that is about to be started and that has no answer, if that is
/// worth it. `miss` is what its answer will be stored as. If it depends on how the query will be read, that is decided at its first run.
#[inline]
pub fn combine_at_start(query: QueryDesc<'_>, miss: Option<&mut Miss>, flags: i32) {
    let is_hidden_by_writer = || session::status() == Some(Status::Bypass(Reason::WriterInProgress));
    if flags == 0 && (miss.is_some() || (is_hidden_by_writer() && session::at_top_level())) {
        combine(query, miss);
    }
}

/// Does what `combine_at_start` promises.
#[inline(never)]
fn combine(query: QueryDesc<'_>, miss: Option<&mut Miss>) {
    let Some(question) = carried::question_of(query.plan()) else { return };
    let Some(store) = shmem::store() else { return };
    let Some((versions, traits)) = may_replace(&store, query) else { return };
    if !index_locks::are_had(query.plan(), versions) {
        return;
    }
    let is_read_later = portal::is_bound() || portal::may_be_read_later();
    let may_wait = portal::is_bound() && !session::declaring_cursor();
    if traits.reads_session && is_read_later {
        if may_wait {
            first_run::wait(query, traits, versions);
        }
        return;
    }
    // SAFETY: the memory of the descriptor, which outlives the execution, and with it the plan. The query has not been started.
    unsafe {
        let caller = pg_sys::MemoryContextSwitchTo(query.own_context());
        let own_plan = query.plan().as_ptr();
        if let Some(plan) = planning::plan_of(query, question, versions, traits.clocks != 0, own_plan.cast()) {
            query.set_plan(plan);
            if let Some(miss) = miss {
                miss.combined = true;
            }
        }
        pg_sys::MemoryContextSwitchTo(caller);
    }
}

/// May the plan of this query be replaced when it starts? It may if planning the query now could give such a plan.
/// Returns the definitions of now, and what is known of the query.
fn may_replace(store: &SharedStore, query: QueryDesc<'_>) -> Option<(Versions, QueryTraits)> {
    let plan = query.plan();
    let Marked::Cacheable { traits, form, planned, .. } = plan_marker::read(plan) else { return None };
    let terms = StatementTerms::of(lookup::Question::of(query).own_text()).ok()?;
    let is_wanted = settings::enable_fragments() && terms.fragments && !settings::debug_serve_fills();
    let current = definition_versions(store);
    let may_be = is_wanted
        && may_have_parts(&traits)
        && planned.under.is_none_or(|then| then == environment::under(store.seed()))
        && admission::is_worth(form);
    // That the server holds the plan valid is not enough: definitions may have changed while it was made, after the snapshot was taken.
    if may_be && current != planned.versions && !lookup::may_lack_execute(current.ddl) {
        portal::ask_for_new_plan();
    }
    (may_be && current == planned.versions).then_some((current, traits))
}
