//! The plan of a combined query: asked for by the planner hook in the place of the plan of the client's query, for one
//! execution, for the values of a Bind, or to be kept. The plans of its parts are made with it, and lie in it. A plan
//! that is run once, and at once, needs none for a part that is stored now: if that is gone when the plan starts, the
//! client's query is planned after all (`unplanned`). Keeps nothing.

use std::cell::OnceCell;
use std::time::Instant;

use pgrx::pg_sys;

use super::admission::{self, Worth};
use super::grains::{self, InGrain};
use super::key::PartKeys;
use super::recipe::{LeafPart, Recipe, ZoneParts, columns_of};
use super::split_aggregates::take_states;
use super::{part_plan, path, zones};
use crate::invalidation::own_writes;
use crate::lookup::stored_parts::{self, MadeUnder, may_have_parts};
use crate::lookup::{self, Call, Eligible, definition_versions, portal, timing};
use crate::pg::lists::{nodes, oids};
use crate::pg::tree_making::{copy, list_of_oids, new_node};
use crate::query::decomposition::{AskedPart, Decomposition, Grain, Part, Values, decompose, has_candidates};
use crate::query::partitions::{Leaf, Leaves, active_snapshot};
use crate::query::statement_terms::StatementTerms;
use crate::query::{Versions, identity};
use crate::shmem::{self, SharedStore};
use crate::{session, settings};

/// A query to plan in the place of the client's, which is being planned from now on. Plain data, so that an error may
/// jump over it.
#[derive(Clone, Copy)]
pub struct Combination {
    /// The combined query.
    pub query: *mut pg_sys::Query,
    recipe: *mut pg_sys::List,
    /// Partitioned tables that were passed on the way to the leaves: the answer rests on them too, and no plan holds
    /// them open.
    passed: *mut pg_sys::List,
    /// What the parts cost.
    cost: f64,
}

/// What is known of a query.
#[derive(Clone, Copy)]
struct Known {
    /// The definitions that were current before.
    versions: Versions,
    /// It asks for the time.
    asks_for_time: bool,
    /// Its plan is run once, and at once: parts that are stored now are likely to be stored then.
    runs_once: bool,
}

/// The combined query to plan in the place of a query, if its answer can be combined of parts and that is worth it.
/// `end` must be called when it was planned, after an error too.
pub fn combine(call: &Call<'_>, eligible: &Eligible) -> Option<Combination> {
    combine_for(call, eligible, call)
}

/// As `combine`, for a query that is planned as a part of the query of the call `whole`.
pub fn combine_for(call: &Call<'_>, eligible: &Eligible, whole: &Call<'_>) -> Option<Combination> {
    if !may_combine(call, eligible) || admission::worth(eligible.form(), is_kept(call)) != Worth::Combined {
        return None;
    }
    let traits = eligible.traits();
    // A plan that only gives way to the answer need not be combined, which takes longer.
    if runs_once(call) && lookup::is_answered(&shmem::store()?, call) {
        return None;
    }
    // Between a Bind and its Execute settings may change. Then the parts are computed that depend on them.
    let depends_on_start = call.has_values() && (traits.reads_session || traits.clocks != 0);
    let known = Known {
        versions: eligible.versions(),
        asks_for_time: traits.clocks != 0,
        runs_once: runs_once(call) && !depends_on_start,
    };
    let started = Instant::now();
    let found = combination(call, whole, known)?;
    if known.runs_once && !session::explaining() {
        timing::note_planned_parts(eligible.form(), started.elapsed());
    }
    Some(found)
}

/// As `combine`, for a query that was refused because it asks for the time: its answer moves, but its parts may not.
pub fn combine_moving(call: &Call<'_>) -> Option<Combination> {
    // What the time decides on is another question for each zone at each moment.
    if !is_wanted(call) || !has_candidates(call.query(), u32::MAX) {
        return None;
    }
    let store = shmem::store()?;
    let versions = definition_versions(&store);
    // SAFETY: called inside a transaction.
    unsafe { kept!(pg_sys::AcceptInvalidationMessages()) };
    let form = identity::of(call.query().as_node(), store.seed()).ok()?.form.id();
    timing::time_statement(form, false);
    if admission::worth(form, is_kept(call)) != Worth::Combined {
        return None;
    }
    // What else the query does was not found out.
    let runs_once = runs_once(call) && !call.has_values();
    let found = combination(call, call, Known { versions, asks_for_time: true, runs_once })?;
    timing::time_statement(form, true);
    Some(found)
}

/// Returns true if the plan of a query will be kept, and it is not known yet whether the query is worth being combined
/// of parts: it is to be planned anew when that is known.
pub fn is_undecided(call: &Call<'_>, eligible: &Eligible) -> bool {
    is_kept(call)
        && may_combine(call, eligible)
        && has_candidates(call.query(), zones::least_blocks())
        && admission::worth(eligible.form(), true) == Worth::Unknown
        && admission::may_wait(eligible.form())
}

/// The combined query of a query, if its parts are enough, whatever it is worth: in a grain, if one is known to be
/// asked for.
fn combination(call: &Call<'_>, whole: &Call<'_>, known: Known) -> Option<Combination> {
    let store = shmem::store()?;
    let own = decompose(call.query(), zones::least_blocks(), None).ok()?;
    let asked = OnceCell::new();
    let is_new = || {
        *asked.get_or_init(|| {
            grains::question(&store, &own.part, call).is_some_and(|question| !admission::was_asked(&store, question))
        })
    };
    let mut finer = None;
    for grain in [Grain::Fine, Grain::Coarse] {
        let Some(InGrain { decomposition, word }) = grains::in_grain(&store, call, grain) else { continue };
        // They may be the same.
        if finer.replace(word) == Some(word) || !grains::is_used(&store, word, is_new) {
            continue;
        }
        let learned = Learned { word, own: &own.part };
        if let Some(found) = combined_of(call, whole, known, decomposition, Some(learned)) {
            return Some(found);
        }
    }
    // Zones of a question that is never asked again would be computed in vain.
    if own.part.is_zoned && known.runs_once && is_new() {
        return None;
    }
    combined_of(call, whole, known, own, None)
}

/// The grain that a query is to be answered from.
#[derive(Clone, Copy)]
struct Learned<'p> {
    /// What is known of it is found by this.
    word: u64,
    /// The part without the grain.
    own: &'p Part,
}

impl Learned<'_> {
    /// Notes that it is not worth it.
    fn refuse<T>(self) -> Option<T> {
        grains::refuse(&shmem::store()?, self.word);
        None
    }
}

/// The combined query of a query that is taken apart so.
fn combined_of(
    call: &Call<'_>,
    whole: &Call<'_>,
    known: Known,
    Decomposition { combined, part }: Decomposition,
    grain: Option<Learned<'_>>,
) -> Option<Combination> {
    let store = shmem::store()?;
    let values = if known.runs_once { Values::Present } else { Values::Lasting };
    let asked = part.asked(call.params(), values).ok()?;
    if known.asks_for_time {
        // SAFETY: the query of a part, which nobody has planned.
        let own = unsafe { Call::of_hook(asked.query, call.source(), 0, std::ptr::null_mut()) };
        let found = stored_parts::before_planning(&store, &own, true).ok()?;
        if !may_have_parts(found.traits()) || found.traits().clocks != 0 {
            return None;
        }
    }
    columns_of(&part)?;
    if part.is_zoned && known.asks_for_time {
        return None;
    }
    if !stored_parts::are_current(&store, known.versions) {
        return None;
    }
    let made = MadeUnder::now(&store, known.versions);
    let zones = if part.is_zoned { zoned(&store, &part, grain, call) } else { None };
    if part.is_zoned && zones.is_none() {
        return grain.and_then(Learned::refuse);
    }
    let found = if part.is_zoned { Leaves::default() } else { asked.leaves(part.relation).ok()? };
    let has_enough = grain.is_some() || admission::has_enough(found.total);
    if !(part.is_zoned || (has_enough && !found.leaves.is_empty())) {
        return None;
    }
    // Of a table whose partitions have partitions, conditions that left these out may have become keys.
    if found.tables.len() > 1
        && let Some(grain) = grain
    {
        return grain.refuse();
    }
    let stored = if known.runs_once { stored_leaves(&store, &part, &asked, &found, made) } else { Vec::new() };
    // SAFETY: a plan just made.
    let of_zones = zones.map_or(0.0, |zones| unsafe { (*(*zones.groups).planTree).total_cost });
    let (leaves, of_leaves) = leaf_parts(call, &part, &found, &stored)?;
    let is_planned = !stored.iter().any(Option::is_some);
    if let Some(grain) = grain.filter(|grain| is_planned && !is_worth(&leaves, *grain, call)) {
        return grain.refuse();
    }
    // SAFETY: a valid query, which planning is about to change.
    let question = if is_planned { std::ptr::null_mut() } else { unsafe { copy(whole.query().as_ptr()) } };
    let (cost, grain) = (of_zones + of_leaves, grain.map_or(0, |grain| grain.word));
    let recipe = Recipe { part, leaves, zones, made, question, options: whole.options(), grain }.to_list();
    path::begin(recipe, cost);
    Some(Combination { query: combined, recipe, passed: list_of_oids(found.tables), cost })
}

/// How the zones of a table are read, if that is worth it.
fn zoned(store: &SharedStore, part: &Part, grain: Option<Learned<'_>>, call: &Call<'_>) -> Option<ZoneParts> {
    let Some(grain) = grain else { return zones::plan(store, part, None, call) };
    // SAFETY: plans just made.
    let is_coarse = |zones: &ZoneParts| unsafe {
        grains::are_small([zones.one]) && grains::are_coarse([(zones.groups, part.relation)])
    };
    zones::plan(store, part, Some(grain.own), call).filter(is_coarse)
}

/// The parts of the leaves that were found, and what their plans cost. Those that are stored need none: for these it is
/// known what it has cost.
fn leaf_parts(call: &Call<'_>, part: &Part, found: &Leaves, stored: &[Option<f64>]) -> Option<(Vec<LeafPart>, f64)> {
    let mut leaves = Vec::with_capacity(found.leaves.len());
    let mut cost = 0.0;
    for (number, Leaf { relation, .. }) in found.leaves.iter().enumerate() {
        let known = stored.get(number).copied().flatten();
        let plan = if known.is_some() {
            std::ptr::null_mut()
        } else {
            part_plan::make(call, || part.of_leaf(*relation).ok())?
        };
        leaves.push(LeafPart { relation: *relation, plan });
        // SAFETY: null, or the plan just made.
        cost += known.or_else(|| unsafe { Some((*plan.as_ref()?.planTree).total_cost) }).unwrap_or(0.0);
    }
    Some((leaves, cost))
}

/// Returns true if the parts of leaves, all of which were planned, are worth it in a grain: by their rows, and by what
/// the one costs that costs most.
fn is_worth(leaves: &[LeafPart], grain: Learned<'_>, call: &Call<'_>) -> bool {
    // SAFETY: plans just made.
    let cost = |leaf: &&LeafPart| unsafe { (*(*leaf.plan).planTree).total_cost };
    let Some(dearest) = leaves.iter().max_by(|one, other| cost(one).total_cmp(&cost(other))) else { return true };
    let plain = || part_plan::make(call, || grain.own.of_leaf(dearest.relation).ok());
    // SAFETY: as above.
    unsafe {
        grains::are_small(leaves.iter().map(|leaf| leaf.plan))
            && grains::are_coarse(leaves.iter().map(|leaf| (leaf.plan, leaf.relation)))
            && plain().is_some_and(|plain| grains::is_cheap(dearest.plan, plain))
    }
}

/// For each leaf what the plan of its part has cost, if that is stored under the snapshot of planning.
fn stored_leaves(
    store: &SharedStore,
    part: &Part,
    asked: &AskedPart,
    found: &Leaves,
    made: MadeUnder,
) -> Vec<Option<f64>> {
    let (Some(environment), Some(columns)) = (stored_parts::environment(store, made), columns_of(part)) else {
        return Vec::new();
    };
    let mut keys = PartKeys::of(asked, environment, store.seed());
    let snapshot = active_snapshot().ok();
    let cost_of = |leaf: &Leaf| {
        let key = keys.of_leaf(*leaf).ok()?;
        let pin = stored_parts::stored_part(store, key.key, &columns, snapshot).valid()?;
        let cost = store.view(&pin).plan_cost();
        store.unpin(pin);
        Some(cost)
    };
    found.leaves.iter().map(cost_of).collect()
}

/// Returns true if the answer of an eligible query may be combined of parts.
fn may_combine(call: &Call<'_>, eligible: &Eligible) -> bool {
    may_have_parts(eligible.traits()) && is_wanted(call)
}

/// Returns true if the session and the statement want answers to be combined, and this is the client's query, in
/// whatever way it will be run. While the transaction has an id, no parts are stored, so only a plan that is kept is of
/// use.
fn is_wanted(call: &Call<'_>) -> bool {
    let is_wrapped = || session::executing_prepared() || session::is_wrapped();
    settings::enable_fragments()
        && !session::must_plan()
        && !path::attends()
        && (!own_writes::has_transaction_id() || is_kept(call))
        && (call.is_of_client() || (session::at_top_level() && is_wrapped()) || session::planning_export())
        && StatementTerms::of(call.own_text()).is_ok_and(|terms| terms.fragments)
}

/// Returns true if the plan that is made is kept.
fn is_kept(call: &Call<'_>) -> bool {
    !call.has_values() && (session::executing_prepared() || (call.is_of_client() && !call.is_one_shot()))
}

/// Returns true if the plan that is made is run once, in the message under way. What is bound to a portal with a name
/// may be read much later.
fn runs_once(call: &Call<'_>) -> bool {
    call.is_one_shot() && (!call.has_values() || portal::is_bound_without_name())
}

/// Adds to the plan of a combined query what its parts rest on: the answer rests on it, the server locks it when it
/// runs a plan that it has kept, and plans anew when it changes. The plan names each relation once, as the server's own
/// would: libraries that audit read its range table. What the parts cost is no reason to compile the expressions above
/// them: their plans are compiled by their own costs. The plan takes the states of aggregates that its parts give.
///
/// Returns false if the plan must not be run: definitions have changed while its parts were planned, so that some may
/// rest on what others know nothing of (a unique index, a validated constraint). Under a snapshot that was taken
/// before, they would not make up one answer.
///
/// # Safety
/// `plan` must be the plan just made of the combined query, in the current memory context.
pub unsafe fn add_dependencies(combination: Combination, plan: *mut pg_sys::PlannedStmt) -> bool {
    // SAFETY: the caller's promise; the recipe was made by `combination`.
    unsafe {
        let Some(recipe) = Recipe::of_list(combination.recipe) else { return false };
        for relation in oids(combination.passed).chain(recipe.relations()).chain(recipe.part.dimensions.iter().copied())
        {
            let is_named = nodes::<pg_sys::RangeTblEntry>((*plan).rtable)
                .any(|entry| (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION && (*entry).relid == relation);
            if !is_named {
                (*plan).rtable = kept!(pg_sys::lappend((*plan).rtable, entry_of(relation).cast()));
            }
            (*plan).relationOids = kept!(pg_sys::lappend_oid((*plan).relationOids, relation));
        }
        if (*recipe.part.query).hasAggs {
            take_states(plan, (*recipe.part.query).targetList);
        }
        for part in recipe.plans().filter_map(|plan| plan.as_ref()) {
            add_items(plan, part.invalItems);
            (*plan).dependsOnRole |= part.dependsOnRole;
            (*plan).transientPlan |= part.transientPlan;
        }
        // It is good for this execution alone.
        (*plan).transientPlan |= !recipe.question.is_null();
        if (*(*plan).planTree).total_cost - combination.cost <= pg_sys::jit_above_cost {
            (*plan).jitFlags = 0;
        }
        shmem::store().is_some_and(|store| stored_parts::are_current(&store, recipe.made.versions))
    }
}

/// Adds those items to a plan that it does not have yet.
///
/// # Safety
/// As `add_dependencies`; the items must be those of a plan.
unsafe fn add_items(plan: *mut pg_sys::PlannedStmt, items: *mut pg_sys::List) {
    // SAFETY: the caller's promise.
    unsafe {
        for item in nodes::<pg_sys::PlanInvalItem>(items) {
            let is_same = |other: *mut pg_sys::PlanInvalItem| {
                (*other).cacheId == (*item).cacheId && (*other).hashValue == (*item).hashValue
            };
            if !nodes((*plan).invalItems).any(is_same) {
                (*plan).invalItems = kept!(pg_sys::lappend((*plan).invalItems, item.cast()));
            }
        }
    }
}

/// A range table entry of a relation that needs no permission: those of the client's query are checked.
fn entry_of(relation: pg_sys::Oid) -> *mut pg_sys::RangeTblEntry {
    let entry = new_node::<pg_sys::RangeTblEntry>();
    // SAFETY: a new node. The relation is locked, so that its kind does not change.
    unsafe {
        (*entry).rtekind = pg_sys::RTEKind::RTE_RELATION;
        (*entry).relid = relation;
        (*entry).relkind = kept!(pg_sys::get_rel_relkind(relation));
        (*entry).rellockmode = pg_sys::AccessShareLock as i32;
        (*entry).eref = kept!(pg_sys::makeAlias(c"part".as_ptr(), std::ptr::null_mut()));
    }
    entry
}
