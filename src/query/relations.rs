//! Which relations a plan reads, and whether it may be cached: it may read permanent heap tables, materialized views,
//! the partitioned tables above them, and other relations if their owners trust them. It may read none whose owner
//! forbids it. Views are in the plan for their permissions, and for their owner's policy.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::relation_policy::{self, Policy};
use crate::pg::backend;
use crate::pg::object_ids::FIRST_USER_OID;
use crate::pg::object_ids::HEAP_TABLE_AM_OID;
use crate::pg::row_type::RowType;
use crate::pg::tree::{Tree, children};

/// Why a plan may not be cached, and the relation to blame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RelationRefusal {
    /// What is wrong with it.
    pub reason: Reason,
    /// The relation.
    pub relation: pg_sys::Oid,
}

/// Checks every relation that a finished plan reads, partitions and children included. This transaction has locked
/// them. Returns whether there is a partitioned table among them.
///
/// # Errors
/// The first relation found that forbids caching.
pub fn check(plan: Tree<'_, pg_sys::PlannedStmt>) -> Result<bool, RelationRefusal> {
    let mut is_partitioned = false;
    for relation in read_by(plan) {
        let kind = check_relation(relation).map_err(|reason| RelationRefusal { reason, relation })?;
        is_partitioned |= kind == pg_sys::RELKIND_PARTITIONED_TABLE;
    }
    Ok(is_partitioned)
}

/// The relation's kind, if it may be cached.
fn check_relation(oid: pg_sys::Oid) -> Result<u8, Reason> {
    if oid.to_u32() < FIRST_USER_OID {
        return Err(Reason::SystemCatalog);
    }
    // SAFETY: null for a relation that is gone. The reference keeps the description; it is given back below and nothing
    // between can raise.
    let (kind, persistence, access_method, bare_parent) = unsafe {
        let relation = kept!(pg_sys::RelationIdGetRelation(oid));
        if relation.is_null() {
            return Err(Reason::UnsupportedRelation);
        }
        let class = (*relation).rd_rel;
        let bare_parent = (*class).relhassubclass
            && RowType::of((*relation).rd_att).attributes().all(|attribute| attribute.attisdropped);
        let facts = ((*class).relkind as u8, (*class).relpersistence as u8, (*class).relam.to_u32(), bare_parent);
        kept!(pg_sys::RelationClose(relation));
        facts
    };
    if persistence == pg_sys::RELPERSISTENCE_TEMP {
        return Err(Reason::TemporaryRelation);
    }
    let policy = relation_policy::of(oid);
    if policy == Policy::Never {
        return Err(Reason::PolicyNever);
    }
    // Nothing tells that such a parent has lost a child (ALTER TABLE … NO INHERIT).
    if bare_parent {
        return Err(Reason::UnsupportedRelation);
    }
    // WAL does not tell of changes to what others store.
    let trusted = policy == Policy::Trusted && !backend::is_in_recovery();
    match kind {
        pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW => {
            if trusted || access_method == HEAP_TABLE_AM_OID {
                Ok(kind)
            } else {
                Err(Reason::UnsupportedRelation)
            }
        }
        pg_sys::RELKIND_PARTITIONED_TABLE | pg_sys::RELKIND_VIEW => Ok(kind),
        pg_sys::RELKIND_FOREIGN_TABLE if trusted => Ok(kind),
        pg_sys::RELKIND_FOREIGN_TABLE => Err(Reason::ForeignTable),
        _ => Err(Reason::UnsupportedRelation),
    }
}

/// The relations that a plan reads, and the views that it reads them through, in the order of its range table. Planning
/// locks them in another order. Not the plan's own list of relations: that has constants of the types oid and regclass
/// as well, since plans are made anew when these change, and nothing locks or reads what they name.
pub fn read_by<'t>(plan: Tree<'t, pg_sys::PlannedStmt>) -> impl Iterator<Item = pg_sys::Oid> + 't {
    children!(plan.rtable as RangeTblEntry).filter_map(|entry| {
        // From 16 on a view is the entry of the sub-query that it has become.
        let reads = matches!(entry.rtekind, pg_sys::RTEKind::RTE_RELATION | pg_sys::RTEKind::RTE_SUBQUERY);
        (reads && entry.relid != pg_sys::InvalidOid).then_some(entry.relid)
    })
}

/// Returns true if the plan reads a relation that its owner trusts, whose changes may not be seen.
pub fn reads_trusted(plan: Tree<'_, pg_sys::PlannedStmt>) -> bool {
    read_by(plan).any(|relation| relation_policy::of(relation) == Policy::Trusted)
}

/// The OIDs of the plan's relations and of `others`, each once, in ascending order.
pub fn of_plan(plan: Tree<'_, pg_sys::PlannedStmt>, others: Vec<u32>) -> Vec<u32> {
    let mut relations = others;
    relations.extend(read_by(plan).map(pg_sys::Oid::to_u32));
    relations.sort_unstable();
    relations.dedup();
    relations
}

/// Returns true if all of these are the plan's own relations.
pub fn are_of_plan(relations: &[u32], plan: Tree<'_, pg_sys::PlannedStmt>) -> bool {
    relations.len() == of_plan(plan, Vec::new()).len()
}
