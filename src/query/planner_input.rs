//! What the planner takes from the definitions of relations, besides their columns: to decide which rows a plan reads, CHECK
//! constraints, predicates of partial indexes, expressions and operator classes of indexes and of partition keys; and, in the place of
//! virtual columns (18), their expressions. No query tree shows it, so it is checked here by the rules that `eligibility` has for queries: a
//! plan is not cached if the code of a user, or more than the key holds, may have shaped it.
//!
//! Each plan asks for each of its relations, so what was found is kept in a table of this backend. A change of a relation's definition sends
//! a relcache invalidation, which takes its line out; a change of functions or operators moves the version of ddl, which empties the table.

use std::cell::Cell;
use std::ffi::CStr;

use arrow_cache_core::{KnownRelations, Reason};
use pgrx::pg_sys;

use super::eligibility::{self, QueryTraits};
use super::opened_relations::Opened;
use super::relations::{self, RelationRefusal};
use super::trusted_extensions::is_trusted_class;
use crate::pg::backend_local::Local;
use crate::pg::catalog_row::CatalogRow;
use crate::pg::lists::oids;
use crate::pg::object_ids::FIRST_USER_OID;
use crate::pg::tree::{Tree, children};
use crate::pg::{catalog_columns, compat, inheritance, relcache_listener};

/// What stands against caching plans over a relation.
#[derive(Clone, Copy, Debug, Default)]
struct Refusals {
    /// Whatever the plan does with it: a virtual column, the predicate of an index, or the partition key.
    always: Option<Reason>,
    /// If the planner reads CHECK constraints.
    by_constraints: Option<Reason>,
}

static KNOWN: Local<KnownRelations<Refusals>> = Local::new(KnownRelations::new());
/// The version of ddl under which they were checked.
static VERSION: Local<Cell<u64>> = Local::new(Cell::new(0));

/// Forgets what is known of relations.
pub fn forget() {
    KNOWN.clear();
}

/// Checks what the planner may have taken from the definitions of a plan's relations, which this transaction has locked. `opened` is what the
/// plan's executor opens, `unites` says that the query has set operations, `ddl` is the version of ddl under which the plan was made.
/// Depends on settings and on the choices of the planner.
///
/// # Errors
/// The relation or index to blame, and why.
pub fn check(
    plan: Tree<'_, pg_sys::PlannedStmt>,
    opened: &Opened<'_>,
    unites: bool,
    ddl: u64,
) -> Result<(), RelationRefusal> {
    relcache_listener::listen(relation_changed);
    if VERSION.replace(ddl) != ddl {
        KNOWN.clear();
    }
    let excludes = excludes_by_constraints(plan, unites);
    for relation in relations::read_by(plan) {
        let found = KNOWN.get_or_find(relation.to_u32(), || of_relation(relation));
        let constraints = found.by_constraints.filter(|_| excludes);
        if let Some(reason) = found.always.or(constraints) {
            return Err(RelationRefusal { reason, relation });
        }
    }
    for index in &opened.scanned {
        if let Some(reason) = KNOWN.get_or_find(index.to_u32(), || of_index(*index)).always {
            return Err(RelationRefusal { reason, relation: *index });
        }
    }
    if opened.has_unknown_nodes {
        let relation = relations::read_by(plan).next().unwrap_or(pg_sys::InvalidOid);
        return Err(RelationRefusal { reason: Reason::TooComplex, relation });
    }
    Ok(())
}

/// Checks what the planner may take from the definitions of what the bodies of functions read, whatever plans it makes of them. No lock is held on
/// these relations; but a plan with such functions is good only for the version of the catalogs that was read before.
///
/// # Errors
/// The first relation that answers must not rest on.
///
/// # Safety
/// The extras of the traits must be in memory.
pub unsafe fn check_bodies(traits: &QueryTraits) -> Result<(), RelationRefusal> {
    if !traits.bodies.is_some_and(|bodies| bodies.read_relations) {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    for relation in unsafe { traits.extras.relations() } {
        let relation = pg_sys::Oid::from(relation);
        check_without_plan(relation).map_err(|reason| RelationRefusal { reason, relation })?;
    }
    Ok(())
}

/// Checks what a planner may take from the definition of a relation, whatever plan it makes.
///
/// # Errors
/// Why answers must not rest on it.
fn check_without_plan(relation: pg_sys::Oid) -> Result<(), Reason> {
    let found = of_relation(relation);
    // SAFETY: the reference keeps the list's owner; an error leaves it to the resource owner. The list holds OIDs.
    let indexes: Vec<pg_sys::Oid> = unsafe {
        let open = kept!(pg_sys::RelationIdGetRelation(relation));
        if open.is_null() {
            return Err(Reason::UnsupportedRelation);
        }
        let indexes = oids(kept!(pg_sys::RelationGetIndexList(open))).collect();
        kept!(pg_sys::RelationClose(open));
        indexes
    };
    let of_indexes = || indexes.into_iter().find_map(|index| of_index(index).always);
    found.always.or(found.by_constraints).or_else(of_indexes).map_or(Ok(()), Err)
}

/// May the planner have read CHECK constraints?
fn excludes_by_constraints(plan: Tree<'_, pg_sys::PlannedStmt>, unites: bool) -> bool {
    // SAFETY: a plain global of the backend.
    match unsafe { pg_sys::constraint_exclusion } as u32 {
        pg_sys::ConstraintExclusionType::CONSTRAINT_EXCLUSION_OFF => false,
        pg_sys::ConstraintExclusionType::CONSTRAINT_EXCLUSION_ON => true,
        // Of children of a parent, and of branches of UNION ALL, which a plan no longer shows if it reads none of them.
        _ => unites || children!(plan.rtable as RangeTblEntry).any(|entry| entry.inh),
    }
}

/// The description of a relation may have changed. An index has a line of its own.
fn relation_changed(relation: pg_sys::Oid) {
    if relation == pg_sys::InvalidOid {
        KNOWN.clear();
    } else {
        KNOWN.forget(relation.to_u32());
    }
}

fn of_relation(oid: pg_sys::Oid) -> Refusals {
    let mut found = Refusals::default();
    // SAFETY: the reference keeps the description; an error leaves the reference to the resource owner. Constraints are texts that end with
    // NUL, the lists hold OIDs.
    unsafe {
        let relation = kept!(pg_sys::RelationIdGetRelation(oid));
        if relation.is_null() {
            return Refusals { always: Some(Reason::UnsupportedRelation), ..found };
        }
        let constraints = (*(*relation).rd_att).constr;
        if !constraints.is_null() {
            for place in 0..usize::from((*constraints).num_check) {
                let check = &*(*constraints).check.add(place);
                if check.ccvalid && !check.ccbin.is_null() {
                    let refusal = check_text(CStr::from_ptr(check.ccbin)).err();
                    found.by_constraints = found.by_constraints.or(refusal);
                }
            }
        }
        // That a virtual column reads settings is not seen in the query, which would say so of itself for cursors.
        for expression in compat::virtual_expressions((*relation).rd_att) {
            found.always = found.always.or_else(|| refusal_unless_fixed(expression));
        }
        if (*(*relation).rd_rel).relhasindex {
            for index in oids(kept!(pg_sys::RelationGetIndexList(relation))) {
                found.always = found.always.or_else(|| predicate_of(index));
            }
        }
        if (*(*relation).rd_rel).relkind as u8 == pg_sys::RELKIND_PARTITIONED_TABLE {
            found.always = found.always.or_else(|| partition_key_of(oid));
        }
        // A partition has what the keys of its ancestors say as a constraint.
        let is_partition = (*(*relation).rd_rel).relispartition;
        kept!(pg_sys::RelationClose(relation));
        if is_partition {
            for ancestor in oids(inheritance::partition_ancestors(oid)) {
                found.always = found.always.or_else(|| partition_key_of(ancestor));
            }
        }
    }
    found
}

/// The operator classes of an index that is scanned, and its expressions, which the server keeps as it keeps predicates.
fn of_index(index: pg_sys::Oid) -> Refusals {
    let row = CatalogRow::find(pg_sys::SysCacheIdentifier::INDEXRELID, index);
    // An index that is gone was not checked.
    let always = match &row {
        Some(_) if has_method_of_user(index) => Some(Reason::IndexMethod),
        Some(row) if !has_class_of_user(row, catalog_columns::INDEX_CLASSES) => {
            refusal_of_kept(row, catalog_columns::INDEX_EXPRESSIONS)
        }
        _ => Some(Reason::UserDefinedFunction),
    };
    Refusals { always, by_constraints: None }
}

/// The predicate of a partial index says which rows the index leaves out. The server keeps what it has computed of it in advance for as long
/// as the session remembers the index, whatever settings change, so it may not even read settings.
fn predicate_of(index: pg_sys::Oid) -> Option<Reason> {
    refusal_of_kept(&CatalogRow::find(pg_sys::SysCacheIdentifier::INDEXRELID, index)?, catalog_columns::INDEX_PREDICATE)
}

fn partition_key_of(relation: pg_sys::Oid) -> Option<Reason> {
    match CatalogRow::find(pg_sys::SysCacheIdentifier::PARTRELID, relation) {
        Some(row) if !has_class_of_user(&row, catalog_columns::PARTITION_CLASSES) => {
            refusal_of_kept(&row, catalog_columns::PARTITION_EXPRESSIONS)
        }
        _ => Some(Reason::UserDefinedFunction),
    }
}

/// Why the expressions in a column of a catalog row may not be kept computed in advance; `None` if they may, or if there are none.
fn refusal_of_kept(row: &CatalogRow, column: u32) -> Option<Reason> {
    refusal_unless_fixed(row.text(column as i16)?)
}

/// Why expressions that the server has written as text are refused, those among them that read settings; `None` if they are not.
fn refusal_unless_fixed(text: &CStr) -> Option<Reason> {
    match check_text(text) {
        Ok(reads_settings) => reads_settings.then_some(Reason::StableFunction),
        Err(reason) => Some(reason),
    }
}

/// Checks expressions that the server has written as text.
fn check_text(text: &CStr) -> Result<bool, Reason> {
    // SAFETY: the server reads a valid tree from the text, into the current memory context, or raises.
    eligibility::check_expression(unsafe { Tree::enter(kept!(pg_sys::stringToNode(text.as_ptr())).cast()) })
}

fn is_class_of_user(class: pg_sys::Oid) -> bool {
    class.to_u32() >= FIRST_USER_OID && !is_trusted_class(class)
}

/// Does the index have an access method of a user? Such an index may give other rows than a scan of the table, by settings of its own.
fn has_method_of_user(index: pg_sys::Oid) -> bool {
    CatalogRow::find(pg_sys::SysCacheIdentifier::RELOID, index)
        .and_then(|row| row.relation().map(|class| class.relam.to_u32() >= FIRST_USER_OID))
        .unwrap_or(true)
}

/// Are there operator classes of users in a column of a catalog row? Yes if it is null.
fn has_class_of_user(row: &CatalogRow, column: u32) -> bool {
    row.oids(column as i16).is_none_or(|classes| classes.iter().any(|class| is_class_of_user(*class)))
}
