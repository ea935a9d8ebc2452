//! On which relations results can rest, by their kind: not on indexes, sequences, TOAST tables or temporary tables. Catalog searches;
//! a few answers are remembered in this backend, without a lock.

use std::cell::Cell;

use pgrx::pg_sys;

use crate::pg::backend_local::Local;
use crate::pg::catalog_row::CatalogRow;
use crate::pg::object_ids::FIRST_USER_OID;

/// How many relations a backend remembers on which results may rest.
const REMEMBERED: usize = 64;

/// Relations on which results may rest, each in the place of its remainder; 0 for none.
static KNOWN: Local<[Cell<u32>; REMEMBERED]> = Local::new([const { Cell::new(0) }; REMEMBERED]);

/// Can a result rest on this relation? Yes, if the relation is gone: then nobody can tell.
///
/// Only a yes is remembered. If the OID belongs to another relation by now, a slot is bumped without need, and nothing worse happens.
pub fn may_carry_results(relation: u32) -> bool {
    let known = &KNOWN[relation as usize % REMEMBERED];
    if known.get() == relation {
        return true;
    }
    let may = relation >= FIRST_USER_OID && inspect(relation).unwrap_or(true);
    if may {
        known.set(relation);
    }
    may
}

/// Can there be cached queries over a relation? Not over indexes, TOAST tables, sequences and temporary tables. `None` if it is gone.
fn inspect(relation: u32) -> Option<bool> {
    let row = CatalogRow::find(pg_sys::SysCacheIdentifier::RELOID, pg_sys::Oid::from(relation))?;
    let class = row.relation()?;
    let is_queried = !matches!(
        class.relkind as u8,
        pg_sys::RELKIND_INDEX
            | pg_sys::RELKIND_PARTITIONED_INDEX
            | pg_sys::RELKIND_TOASTVALUE
            | pg_sys::RELKIND_SEQUENCE
    );
    Some(is_queried && class.relpersistence as u8 != pg_sys::RELPERSISTENCE_TEMP)
}
