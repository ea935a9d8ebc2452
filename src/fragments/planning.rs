//! The plan of a combined query: asked for by the planner hook in the place of the plan of the client's query. Keeps nothing.

use pgrx::pg_sys::{self, NodeTag};

use super::recipe::Recipe;
use super::{admission, path};
use crate::lookup::parts::may_have_parts;
use crate::lookup::{Call, Eligible};
use crate::pg::lists::oids;
use crate::query::decomposition::decompose;
use crate::query::partitions::leaves;
use crate::query::statement_terms::StatementTerms;
use crate::{session, settings};

/// A query to plan in the place of the client's. Plain data, so that an error may jump over it.
#[derive(Clone, Copy)]
pub struct Combination {
    /// The combined query.
    pub query: *mut pg_sys::Query,
    recipe: *mut pg_sys::List,
    /// What was being planned around it.
    outer: *mut pg_sys::List,
}

/// The combined query to plan in the place of a query, if its answer can be combined of parts and that is worth it. `finish` must be called
/// when it was planned, after an error too.
pub fn combine(call: &Call<'_>, eligible: &Eligible) -> Option<Combination> {
    if !may_combine(call, eligible) || !admission::is_worth(eligible.form()) {
        return None;
    }
    let decomposition = decompose(call.query(), call.params(), eligible.traits().may_fail).ok()?;
    let part = decomposition.part;
    // SAFETY: the bounds were taken from the query.
    let found = unsafe { leaves(part.relation, part.bounds()) }.ok()?;
    if !admission::has_enough(found.total) {
        return None;
    }
    // SAFETY: lists of OIDs.
    let relations = unsafe {
        (found.tables.iter().copied())
            .chain(found.leaves.iter().map(|leaf| leaf.relation))
            .chain(part.dimensions.iter().copied())
            .fold(std::ptr::null_mut(), |list, relation| pg_sys::list_append_unique_oid(list, relation))
    };
    let recipe = Recipe { part, leaves: found.leaves, relations, versions: eligible.versions() };
    let recipe = recipe.to_list();
    Some(Combination { query: decomposition.combined, recipe, outer: path::set_planned(recipe) })
}

/// May this query be planned otherwise than the client asked? Only if nobody can tell the plans apart, but by their speed.
fn may_combine(call: &Call<'_>, eligible: &Eligible) -> bool {
    let traits = eligible.traits();
    let is_one_shot = !session::must_plan() && call.is_one_shot();
    let is_explained = session::explaining() && session::at_top_level();
    // The costs of plans for values decide whether the server goes over to a plan for all values, and a bound portal may be read under other
    // settings than it was started with.
    let terms = StatementTerms::of(call.own_text());
    let is_wanted = settings::enable_fragments() && terms.is_ok_and(|terms| terms.fragments);
    let choice_shows = traits.may_drop_relations || traits.may_fail || traits.reads_session;
    is_wanted
        && (is_one_shot || is_explained)
        && !(call.has_values() && choice_shows)
        && !settings::debug_serve_fills()
        && !path::is_planning()
        && may_have_parts(traits)
}

/// A combined query was planned, or planning it has failed (null): adds the relations of the parts to the plan, so that the answer rests on them.
///
/// # Safety
/// `plan` must be null, or the plan just made of the combined query, in the current memory context.
pub unsafe fn finish(combination: Combination, plan: *mut pg_sys::PlannedStmt) {
    path::set_planned(combination.outer);
    if plan.is_null() {
        return;
    }
    // SAFETY: the caller's promise; the recipe was made by `combine`.
    unsafe {
        let Some(recipe) = Recipe::of_list(combination.recipe) else { return };
        for relation in oids(recipe.relations) {
            (*plan).rtable = pg_sys::lappend((*plan).rtable, entry_of(relation).cast());
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
