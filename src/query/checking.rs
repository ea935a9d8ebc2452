//! Checks a query, and says of it what the rightness of no answer rests on: the reason for a refusal that lies deepest,
//! and whether answers can be compared with each other.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::eligibility::{Blamed, QueryTraits, check_query};
use super::function_table::has;
use super::function_table::properties::ASKING;
use super::repeatability;
use crate::pg::object_ids::FIRST_USER_OID;
use crate::pg::tree::Tree;
use crate::pg::tree_search::search;

/// What in a query is to blame for a refusal.
#[derive(Clone, Copy, Debug)]
pub enum Offender {
    /// A function that it calls.
    Function(Blamed),
    /// A relation that it names.
    Relation(pg_sys::Oid),
}

/// What checking a query came to.
pub struct Checked {
    /// Its traits, or the first reason found not to cache the answer.
    pub traits: Result<QueryTraits, Reason>,
    /// On a refusal, what is to blame, if it is a function or a relation.
    pub offender: Option<Offender>,
}

/// Checks a rewritten query before the planner takes it apart.
pub fn check(query: Tree<'_, pg_sys::Query>) -> Checked {
    let (traits, offender) = check_query(query);
    let mut checked = Checked { traits, offender: offender.map(Offender::Function) };
    match &mut checked.traits {
        // Nobody knows whether the queries of a function that is declared pure leave something open.
        Ok(traits) => {
            traits.repeatable = !traits.calls_declared && !repeatability::leaves_open(query);
            traits.is_limited = repeatability::is_limited(query);
        }
        Err(Reason::TooComplex) => {}
        Err(reason) => {
            if let Some(Offender::Function(blamed)) = checked.offender
                && matches!(reason, Reason::StableFunction | Reason::VolatileFunction)
                && has(blamed.function, ASKING)
            {
                *reason = Reason::SessionFunction;
            }
            // A query of catalogs is refused whatever else it does, so no other reason would help its author.
            if let Some(catalog) = catalog_named_in(query) {
                (*reason, checked.offender) = (Reason::SystemCatalog, Some(Offender::Relation(catalog)));
            }
        }
    }
    checked
}

/// The first catalog that the query names, or one below a view that it names, such as those of information_schema.
fn catalog_named_in(query: Tree<'_, pg_sys::Query>) -> Option<pg_sys::Oid> {
    let mut found = None;
    let mut look = |node: Tree<'_, pg_sys::Node>| {
        // From 16 on the entry of a view is a sub-query that keeps the view's OID.
        found = node.as_a::<pg_sys::RangeTblEntry>().map(|entry| (entry.rtekind, entry.relid)).and_then(
            |(kind, relation)| {
                let may_name = matches!(kind, pg_sys::RTEKind::RTE_RELATION | pg_sys::RTEKind::RTE_SUBQUERY);
                (may_name && (1..FIRST_USER_OID).contains(&relation.to_u32())).then_some(relation)
            },
        );
        found.is_some()
    };
    // One that nests too deeply has been refused for that.
    // SAFETY: a valid query.
    let _ = unsafe { search(query.as_node().as_ptr(), 0, &mut look) };
    found
}
