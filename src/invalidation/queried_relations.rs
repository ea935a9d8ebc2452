//! On which relations results can rest, by their kind: not on indexes, sequences, TOAST tables or temporary tables.
//! Catalog searches, and a few relations for which there was one: state of this backend.

use std::cell::Cell;

use pgrx::pg_sys;

use crate::pg::backend_local::Local;
use crate::pg::catalog_row::CatalogRow;
use crate::pg::object_ids::FIRST_USER_OID;

/// Relations on which a result could rest when it was asked last, each in the place of its OID. One that has become
/// another is published in vain, and never the other way round.
static FOUND: Local<Cell<[u32; 64]>> = Local::new(Cell::new([0; 64]));

/// Returns true if a result can rest on this relation, or the relation is gone: then nobody can tell.
pub fn may_carry_results(relation: u32) -> bool {
    if relation < FIRST_USER_OID {
        return false;
    }
    let found = &Cell::as_array_of_cells(&FOUND)[relation as usize % 64];
    if found.get() != relation && is_queried(relation) {
        found.set(relation);
    }
    found.get() == relation
}

fn is_queried(relation: u32) -> bool {
    let row = CatalogRow::find(pg_sys::SysCacheIdentifier::RELOID, pg_sys::Oid::from(relation));
    row.as_ref().and_then(CatalogRow::relation).is_none_or(|class| {
        let is_queried = !matches!(
            class.relkind as u8,
            pg_sys::RELKIND_INDEX
                | pg_sys::RELKIND_PARTITIONED_INDEX
                | pg_sys::RELKIND_TOASTVALUE
                | pg_sys::RELKIND_SEQUENCE
        );
        is_queried && class.relpersistence as u8 != pg_sys::RELPERSISTENCE_TEMP
    })
}
