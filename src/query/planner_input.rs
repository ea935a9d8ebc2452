//! What the planner takes from the definitions of relations, besides their columns, to decide which rows a plan reads: CHECK
//! constraints, predicates of partial indexes, expressions and operator classes of indexes and of partition keys. No query tree shows it, so it is judged
//! here by the rules that `eligibility` has for queries: a plan that may have been shaped by the code of a user, or by more than the
//! key holds, is not cached.
//!
//! Asked for each relation of each plan, so what was found is kept in a table of this backend. A change of a relation's definition sends
//! a relcache invalidation, which takes its line out; a change of functions or operators moves the version of ddl.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::eligibility;
use super::opened_relations::Opened;
use crate::pg::backend_local::Local;
use crate::pg::lists::{nodes, oids};
use crate::pg::object_ids::FIRST_USER_OID;
use crate::pg::{catalog_columns, inheritance, relcache_listener};

/// What stands against caching plans over a relation.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// Whatever the plan does with it: the predicate of an index, or the partition key.
    always: Option<Reason>,
    /// If the planner looks at CHECK constraints.
    by_constraints: Option<Reason>,
}

/// Relations remembered; when there are more, all are judged anew.
const MOST: usize = 4096;

static KNOWN: Local<RefCell<BTreeMap<u32, Found>>> = Local::new(RefCell::new(BTreeMap::new()));
/// The version of ddl under which they were judged.
static VERSION: Local<Cell<u64>> = Local::new(Cell::new(0));

/// Judges what the planner may have taken from the relations of a plan, under this version of ddl. `unites` says that the query has set
/// operations.
///
/// # Errors
/// The relation or index to blame, and why.
///
/// # Safety
/// `plan` must be valid, the relations its own, locked by this transaction; `opened` must be told of the plan.
pub unsafe fn judge(
    plan: *const pg_sys::PlannedStmt,
    relations: impl Iterator<Item = pg_sys::Oid>,
    opened: &Opened,
    unites: bool,
    ddl: u64,
) -> Result<(), (Reason, pg_sys::Oid)> {
    relcache_listener::listen(relation_changed);
    if VERSION.replace(ddl) != ddl {
        KNOWN.with_borrow_mut(BTreeMap::clear);
    }
    // SAFETY: as the caller promises; a plain global of the backend.
    unsafe {
        let excludes = match pg_sys::constraint_exclusion as u32 {
            pg_sys::ConstraintExclusionType::CONSTRAINT_EXCLUSION_OFF => false,
            pg_sys::ConstraintExclusionType::CONSTRAINT_EXCLUSION_ON => true,
            // Of children of a parent, and of branches of UNION ALL, which a plan no longer shows if it reads none of them.
            _ => unites || reads_children(plan),
        };
        for relation in relations {
            let found = known(relation, of_relation);
            let constraints = found.by_constraints.filter(|_| excludes);
            if let Some(reason) = found.always.or(constraints) {
                return Err((reason, relation));
            }
        }
        for index in &opened.scanned {
            if let Some(reason) = known(*index, of_index).always {
                return Err((reason, *index));
            }
        }
    }
    Ok(())
}

/// # Safety
/// `plan` must be valid.
unsafe fn reads_children(plan: *const pg_sys::PlannedStmt) -> bool {
    // SAFETY: as the caller promises; entries of its range table.
    unsafe { nodes::<pg_sys::RangeTblEntry>((*plan).rtable).any(|entry| (*entry).inh) }
}

/// # Safety
/// As `judge`.
unsafe fn known(relation: pg_sys::Oid, look: unsafe fn(pg_sys::Oid) -> Found) -> Found {
    let number = relation.to_u32();
    if let Some(found) = KNOWN.with_borrow(|known| known.get(&number).copied()) {
        return found;
    }
    // SAFETY: as the caller promises.
    let found = unsafe { look(relation) };
    KNOWN.with_borrow_mut(|known| {
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(number, found);
    });
    found
}

/// The description of a relation may have changed. An index has a line of its own.
fn relation_changed(relation: pg_sys::Oid) {
    KNOWN.with_borrow_mut(|known| {
        if relation == pg_sys::InvalidOid {
            known.clear();
        } else {
            known.remove(&relation.to_u32());
        }
    });
}

/// # Safety
/// As `judge`.
unsafe fn of_relation(oid: pg_sys::Oid) -> Found {
    let mut found = Found::default();
    // SAFETY: the lock keeps the relation from going away; an error leaves the reference to the resource owner.
    unsafe {
        let relation = pg_sys::RelationIdGetRelation(oid);
        if relation.is_null() {
            return Found { always: Some(Reason::UnsupportedRelation), ..found };
        }
        let constraints = (*(*relation).rd_att).constr;
        if !constraints.is_null() {
            for place in 0..usize::from((*constraints).num_check) {
                let check = &*(*constraints).check.add(place);
                if check.ccvalid && !check.ccbin.is_null() {
                    let judged = eligibility::judge_expression(pg_sys::stringToNode(check.ccbin).cast());
                    found.by_constraints = found.by_constraints.or(judged.err());
                }
            }
        }
        if (*(*relation).rd_rel).relhasindex {
            for index in oids(pg_sys::RelationGetIndexList(relation)) {
                found.always = found.always.or_else(|| predicate_of(index));
            }
        }
        if (*(*relation).rd_rel).relkind as u8 == pg_sys::RELKIND_PARTITIONED_TABLE {
            found.always = found.always.or_else(|| partition_key_of(oid));
        }
        // A partition has what the keys of its ancestors say as a constraint.
        let is_partition = (*(*relation).rd_rel).relispartition;
        pg_sys::RelationClose(relation);
        if is_partition {
            for ancestor in oids(inheritance::partition_ancestors(oid)) {
                found.always = found.always.or_else(|| partition_key_of(ancestor));
            }
        }
    }
    found
}

/// The operator classes of an index that is scanned, and its expressions, which the server keeps as it keeps predicates.
///
/// # Safety
/// As `judge`.
unsafe fn of_index(index: pg_sys::Oid) -> Found {
    // SAFETY: as the caller promises.
    let users = unsafe {
        with_attribute(pg_sys::SysCacheIdentifier::INDEXRELID, index, catalog_columns::INDEX_CLASSES, |classes| {
            has_class_of_user(classes)
        })
    };
    // An index that is gone was not judged.
    let classes = users.unwrap_or(true).then_some(Reason::UserDefinedFunction);
    // SAFETY: as the caller promises; the attribute is nodes as text.
    let expressions = || unsafe {
        refusal_of_attribute(pg_sys::SysCacheIdentifier::INDEXRELID, index, catalog_columns::INDEX_EXPRESSIONS)
    };
    Found { always: classes.or_else(expressions), by_constraints: None }
}

/// The predicate of a partial index says which rows the index leaves out. The server keeps what it has computed of it in advance for as long
/// as the session remembers the index, whatever settings change, so it may not even read settings.
///
/// # Safety
/// As `judge`.
unsafe fn predicate_of(index: pg_sys::Oid) -> Option<Reason> {
    // SAFETY: as the caller promises; the attribute is a node as text.
    unsafe { refusal_of_attribute(pg_sys::SysCacheIdentifier::INDEXRELID, index, catalog_columns::INDEX_PREDICATE) }
}

/// # Safety
/// As `judge`.
unsafe fn partition_key_of(relation: pg_sys::Oid) -> Option<Reason> {
    let cache = pg_sys::SysCacheIdentifier::PARTRELID;
    // SAFETY: as the caller promises; the attributes are a vector of OIDs, and nodes as text.
    unsafe {
        let users =
            with_attribute(cache, relation, catalog_columns::PARTITION_CLASSES, |classes| has_class_of_user(classes));
        if users != Some(false) {
            return Some(Reason::UserDefinedFunction);
        }
        refusal_of_attribute(cache, relation, catalog_columns::PARTITION_EXPRESSIONS)
    }
}

/// # Safety
/// As `with_attribute`; the attribute must be expressions as text.
unsafe fn refusal_of_attribute(
    cache: pg_sys::SysCacheIdentifier::Type,
    key: pg_sys::Oid,
    attribute: u32,
) -> Option<Reason> {
    // SAFETY: as the caller promises.
    unsafe { with_attribute(cache, key, attribute, |expressions| refusal_of_kept(expressions))? }
}

/// # Safety
/// `datum` must be expressions as text.
unsafe fn refusal_of_kept(datum: pg_sys::Datum) -> Option<Reason> {
    // SAFETY: as the caller promises.
    unsafe {
        let text = pg_sys::text_to_cstring(datum.cast_mut_ptr());
        match eligibility::judge_expression(pg_sys::stringToNode(text).cast()) {
            Ok(reads_settings) => reads_settings.then_some(Reason::StableFunction),
            Err(reason) => Some(reason),
        }
    }
}

/// # Safety
/// `datum` must be a vector of OIDs.
unsafe fn has_class_of_user(datum: pg_sys::Datum) -> bool {
    // SAFETY: as the caller promises; its values follow the head.
    unsafe {
        let vector: *const pg_sys::oidvector = datum.cast_mut_ptr();
        let first = (&raw const (*vector).values).cast::<pg_sys::Oid>();
        std::slice::from_raw_parts(first, (*vector).dim1 as usize).iter().any(|class| class.to_u32() >= FIRST_USER_OID)
    }
}

/// What `look` makes of an attribute of a catalog row; `None` if there is no such row, or it has none.
///
/// # Safety
/// The cache must have one key, an OID, and the attribute be one of its catalog.
unsafe fn with_attribute<R>(
    cache: pg_sys::SysCacheIdentifier::Type,
    key: pg_sys::Oid,
    attribute: u32,
    look: impl FnOnce(pg_sys::Datum) -> R,
) -> Option<R> {
    // SAFETY: as the caller promises; the row is given back, or left to the resource owner by an error.
    unsafe {
        let row = pg_sys::SearchSysCache1(cache as i32, pg_sys::Datum::from(key));
        if row.is_null() {
            return None;
        }
        let mut is_null = true;
        let datum = pg_sys::SysCacheGetAttr(cache as i32, row, attribute as pg_sys::AttrNumber, &raw mut is_null);
        let seen = (!is_null).then(|| look(datum));
        pg_sys::ReleaseSysCache(row);
        seen
    }
}
