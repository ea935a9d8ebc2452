//! The plan of a combined query: asked for by the planner hook in the place of the plan of the client's query, or when a plan starts. Keeps
//! nothing.

use pgrx::pg_sys::{self, NodeTag};

use super::recipe::Recipe;
use super::{admission, path};
use crate::invalidation::own_writes;
use crate::lookup::parts::{self, may_have_parts};
use crate::lookup::{Call, Eligible, definition_versions, may_lack_execute, timing};
use crate::pg::error_passing::kept;
use crate::pg::lists::{nodes, oids};
use crate::pg::query_desc::QueryDesc;
use crate::pg::tree::Tree;
use crate::pg::tree_making::copy;
use crate::pg::{inheritance, server};
use crate::query::decomposition::{decompose, has_candidates};
use crate::query::partitions::leaves;
use crate::query::statement_terms::StatementTerms;
use crate::query::{Versions, identity, lock_order};
use crate::{session, settings, shmem};

/// A query to plan in the place of the client's, which is being planned from now on. Plain data, so that an error may jump over it.
#[derive(Clone, Copy)]
pub struct Combination {
    /// The combined query.
    pub query: *mut pg_sys::Query,
    recipe: *mut pg_sys::List,
    /// Partitioned tables that were passed on the way to the leaves: the answer rests on them too, and no plan holds them open.
    passed: *mut pg_sys::List,
    /// What was being planned around it.
    outer: *mut pg_sys::List,
}

/// Ends the planning of a combined query, after an error too.
pub struct Ended(Combination);

impl Ended {
    /// Ends it when the value is dropped.
    pub fn of(combination: Combination) -> Self {
        Self(combination)
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        end(self.0);
    }
}

/// The combined query to plan in the place of a query of the simple protocol, if its answer can be combined of parts and that is worth it. `end` must be
/// called when it was planned, after an error too. None of a query that reads several tables with children: it is planned by the server, which locks these in an
/// order of its own, and may be combined when it starts (`starting`).
pub fn combine(call: &Call<'_>, eligible: &Eligible) -> Option<Combination> {
    combine_for(call, eligible, call)
}

/// As `combine`, for a query that is planned as a part of the query of the call `whole`.
pub fn combine_for(call: &Call<'_>, eligible: &Eligible, whole: &Call<'_>) -> Option<Combination> {
    let traits = eligible.traits();
    if !may_have_parts(traits)
        || !may_combine(call)
        || !admission::is_worth(eligible.form())
        || lock_order::is_of_several_parents(call.query())
    {
        return None;
    }
    combination(call.query(), None, eligible.versions(), traits.clocks != 0, instead_of(whole))
}

/// What runs instead of the plan of a combined query, if its parts may not be planned when it starts: the query, planned anew.
fn instead_of(call: &Call<'_>) -> *mut pg_sys::Node {
    // SAFETY: a valid query, which planning is about to change.
    unsafe { copy(call.query().as_ptr()).cast() }
}

/// As `combine`, for a query that was refused because it asks for the time: its answer moves, but its parts may not.
pub fn combine_moving(call: &Call<'_>) -> Option<Combination> {
    if !may_combine(call)
        || !has_candidates(call.query())
        || own_writes::has_transaction_id()
        || lock_order::is_of_several_parents(call.query())
    {
        return None;
    }
    let store = shmem::store()?;
    let versions = definition_versions(&store);
    // SAFETY: called inside a transaction.
    unsafe { pg_sys::AcceptInvalidationMessages() };
    let form = identity::of(call.query(), store.seed()).ok()?.form.id();
    timing::time_statement(form, false);
    if !admission::is_worth(form) {
        return None;
    }
    let found = combination(call.query(), None, versions, true, instead_of(call))?;
    timing::time_statement(form, true);
    Some(found)
}

/// The combined query of a query, whatever it is worth. `versions` are the definitions that were current before; `end` is to be called as for `combine`.
/// `instead` is for the recipe.
pub fn combination(
    query: Tree<'_, pg_sys::Query>,
    params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
    versions: Versions,
    asks_for_time: bool,
    instead: *mut pg_sys::Node,
) -> Option<Combination> {
    let decomposition = decompose(query, params).ok()?;
    let part = decomposition.part;
    if asks_for_time {
        // SAFETY: the query of a part, which is valid.
        parts::check_part(&shmem::store()?, unsafe { Tree::enter(part.query) }?, versions).ok()?;
    }
    // SAFETY: the bounds were taken from the query.
    let found = unsafe { leaves(part.relation, part.bounds(), &|key| part.may_prune_otherwise(key)) }.ok()?;
    // Without any leaf nobody would plan what a part computes, and planning it may raise an error.
    if !admission::has_enough(found.total) || found.leaves.is_empty() {
        return None;
    }
    // The planner has an error of its own for a child that is none any more.
    // SAFETY: reads a catalog.
    let is_parent = unsafe { pg_sys::get_rel_relkind(part.relation) } as u8 == pg_sys::RELKIND_RELATION;
    if is_parent && !found.leaves.iter().all(|leaf| inheritance::has_columns_of(leaf.relation, part.relation)) {
        return None;
    }
    // The parts call other functions than the query. Who may execute these, and not those, would not get the error. It
    // takes long to ask, so it is asked last.
    if may_lack_execute(versions.ddl) {
        return None;
    }
    // The server's own plan raises what computing constants raises when it is made. A part may never be planned.
    // SAFETY: expressions of a query of our own, of which a copy is changed.
    unsafe {
        let targets: *mut pg_sys::Node = copy((*part.query).targetList).cast();
        kept!(server::eval_const_expressions(std::ptr::null_mut(), targets));
    }
    // SAFETY: lists of OIDs.
    let unique = |relations: &mut dyn Iterator<Item = pg_sys::Oid>| unsafe {
        relations.fold(std::ptr::null_mut(), |list, relation| pg_sys::list_append_unique_oid(list, relation))
    };
    let leaves = found.leaves.iter().map(|leaf| leaf.relation);
    let relations = unique(&mut leaves.chain(part.dimensions.iter().copied()));
    // SAFETY: a list of OIDs.
    let is_held = |relation: &pg_sys::Oid| unsafe { pg_sys::list_member_oid(relations, *relation) };
    let passed = unique(&mut found.tables.into_iter().filter(|relation| !is_held(relation)));
    let recipe = Recipe { part, leaves: found.leaves, relations, versions, instead }.to_list();
    Some(Combination { query: decomposition.combined, recipe, passed, outer: path::set_planned(recipe) })
}

/// The plan of the combined query of a query, in the current memory context, made after the query has got its snapshot. `None`, too, if the definitions have
/// become newer than `versions`. Other libraries have seen the client's query planned. `instead` is for the recipe.
pub fn plan_of(
    query: QueryDesc<'_>,
    question: Tree<'_, pg_sys::Query>,
    versions: Versions,
    asks_for_time: bool,
    instead: *mut pg_sys::Node,
) -> Option<*mut pg_sys::PlannedStmt> {
    let (text, params) = (query.source(), query.params());
    // SAFETY: the parameters are those of the query. Planning changes a query, and the question may be asked again, so it is a copy that is planned.
    unsafe {
        let copy = Tree::enter(pg_sys::copyObjectImpl(question.as_ptr().cast()).cast())?;
        let combination = combination(copy, Tree::enter(params), versions, asks_for_time, instead)?;
        let _ended = Ended::of(combination);
        let plan = kept!(server::standard_planner(combination.query, text, 0, params));
        add_relations(combination, plan);
        parts::are_current(&shmem::store()?, versions).then_some(plan)
    }
}

/// May this query be planned otherwise than the client asked? Only if nobody can tell the plans apart, but by their speed. A plan for the values of a
/// Bind is left to the server: its costs decide whether the server goes over to a plan for all values.
fn may_combine(call: &Call<'_>) -> bool {
    let is_one_shot = !session::must_plan() && call.is_one_shot() && !call.has_values();
    // EXPLAIN EXECUTE plans for later executions, too.
    let is_explained = session::explaining() && session::at_top_level() && call.is_of_message();
    let terms = StatementTerms::of(call.own_text());
    settings::enable_fragments()
        && terms.is_ok_and(|terms| terms.fragments)
        && (is_one_shot || is_explained)
        && !settings::debug_serve_fills()
        && !path::is_planning()
}

/// A combined query was planned, or planning it has failed.
pub fn end(combination: Combination) {
    path::set_planned(combination.outer);
}

/// Adds the relations of the parts to the plan of a combined query, so that the answer rests on them. The plan names
/// each relation once, as the server's own would: libraries that audit read its range table.
///
/// # Safety
/// `plan` must be the plan just made of the combined query, in the current memory context.
pub unsafe fn add_relations(combination: Combination, plan: *mut pg_sys::PlannedStmt) {
    // SAFETY: the caller's promise; the recipe was made by `combination`.
    unsafe {
        let Some(recipe) = Recipe::of_list(combination.recipe) else { return };
        for relation in oids(combination.passed).chain(oids(recipe.relations)) {
            let is_named = nodes::<pg_sys::RangeTblEntry>((*plan).rtable)
                .any(|entry| (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION && (*entry).relid == relation);
            if !is_named {
                (*plan).rtable = pg_sys::lappend((*plan).rtable, entry_of(relation).cast());
            }
            (*plan).relationOids = pg_sys::lappend_oid((*plan).relationOids, relation);
        }
    }
}

/// A range table entry of a relation that needs no permission: those of the client's query are checked.
fn entry_of(relation: pg_sys::Oid) -> *mut pg_sys::RangeTblEntry {
    // SAFETY: as many bytes as are written. The relation is locked, so that its kind does not change.
    unsafe {
        let place: *mut pg_sys::RangeTblEntry = pg_sys::palloc(size_of::<pg_sys::RangeTblEntry>()).cast();
        place.write(pg_sys::RangeTblEntry {
            type_: NodeTag::T_RangeTblEntry,
            rtekind: pg_sys::RTEKind::RTE_RELATION,
            relid: relation,
            relkind: pg_sys::get_rel_relkind(relation),
            rellockmode: pg_sys::AccessShareLock as i32,
            eref: pg_sys::makeAlias(c"part".as_ptr(), std::ptr::null_mut()),
            ..Default::default()
        });
        place
    }
}
