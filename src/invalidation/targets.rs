//! What a statement is about to change, as far as its plan or its text names it. A user who may not change a relation
//! must not outdate results over it, so privileges are checked before anything is noted. Keeps nothing: `write_set`
//! does.

use pgrx::pg_sys;

use crate::invalidation::{foreign, publication, rows};
use crate::pg::catalog_row::CatalogRow;
use crate::pg::lists::nodes;
use crate::pg::object_ids::{FIRST_USER_OID, HEAP_TABLE_AM_OID};
use crate::pg::privileges;
use crate::pg::query_desc::QueryDesc;
use crate::pg::tree::Tree;

/// Notes the targets of a data-modifying query, at any nesting level. To be called when the server has found that the
/// user may change them, and before the first row.
#[inline(never)]
pub fn note_started(query: QueryDesc<'_>) {
    let Some(state) = query.estate() else { return };
    // SAFETY: the state of a query is valid with its lists, and the targets are open, until the query is ended.
    unsafe { note_all(state.as_ref().es_opened_result_relations) };
    rows::begin(query);
}

/// Notes targets as far as the server may not list their changes.
///
/// # Safety
/// They must be open targets of a query that is under way.
unsafe fn note_all(targets: *const pg_sys::List) {
    // SAFETY: the caller's promise; an open relation has its row of pg_class.
    unsafe {
        for target in nodes::<pg_sys::ResultRelInfo>(targets) {
            let relation = (*(*target).ri_RelationDesc).rd_id;
            // A copy: what follows may have the server read the description again, in its place.
            let class = *(*(*target).ri_RelationDesc).rd_rel;
            foreign::note_target(relation, class.relkind as u8);
            note_unless_listed(relation, &class);
        }
    }
}

/// Notes a relation, unless the server lists it if a row of it changes: a heap table. A partitioned table has no rows
/// of its own. Who writes to a catalog himself need not send what DDL sends, which the server's list does not tell.
fn note_unless_listed(relation: pg_sys::Oid, class: &pg_sys::FormData_pg_class) {
    let is_listed = match class.relkind as u8 {
        pg_sys::RELKIND_PARTITIONED_TABLE => true,
        pg_sys::RELKIND_RELATION => class.relam.to_u32() == HEAP_TABLE_AM_OID && relation.to_u32() >= FIRST_USER_OID,
        _ => false,
    };
    if !is_listed {
        publication::note_relation(relation);
    }
}

/// Notes the relation that COPY FROM names.
pub fn note_named(relation: pg_sys::Oid) {
    let row = CatalogRow::find(pg_sys::SysCacheIdentifier::RELOID, relation);
    if let Some(class) = row.as_ref().and_then(CatalogRow::relation) {
        note_unless_listed(relation, class);
    }
    foreign::note_reached(relation);
}

/// Returns true if a query has sent rows to leaves of partitioned tables. Reads two words and calls nothing.
#[inline]
pub fn has_routed(query: QueryDesc<'_>) -> bool {
    // SAFETY: the state of a query is valid until the query is ended.
    query.estate().is_some_and(|state| unsafe { !state.as_ref().es_tuple_routing_result_relations.is_null() })
}

/// Notes those leaves that a query has sent rows to whose changes the server may not list: one may have been attached
/// since the query was started. To be called before the query is ended.
#[inline(never)]
pub fn note_routed(query: QueryDesc<'_>) {
    let Some(state) = query.estate() else { return };
    // SAFETY: the state of a query is valid with its lists, and the leaves are open, until the query is ended.
    unsafe { note_all(state.as_ref().es_tuple_routing_result_relations) };
}

/// The relation that a statement names, to change it in a way that takes this privilege; `None` if the statement will
/// be refused. A name that stands for nothing is left to the statement to complain about. Raises what that would raise
/// about the name.
pub fn changeable(name: Option<Tree<'_, pg_sys::RangeVar>>, privilege: u32) -> Option<pg_sys::Oid> {
    const FLAGS: u32 = pg_sys::RVROption::RVR_MISSING_OK;
    // SAFETY: reads catalogs by the names of a valid node, and locks nothing.
    let relation = unsafe {
        kept!(pg_sys::RangeVarGetRelidExtended(
            name?.as_ptr(),
            pg_sys::NoLock as i32,
            FLAGS,
            None,
            std::ptr::null_mut()
        ))
    };
    let exists = relation != pg_sys::InvalidOid;
    (exists && privileges::has(privileges::current_role(), relation, privilege)).then_some(relation)
}
