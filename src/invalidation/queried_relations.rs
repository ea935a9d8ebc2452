//! On which relations results can rest, by their kind: not on indexes, sequences, TOAST tables or temporary tables. Catalog searches;
//! a few answers are remembered in this backend, without a lock.

use std::cell::Cell;

use pgrx::pg_sys;

use crate::invalidation::write_set;
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
    let may = inspect(relation).is_none_or(|relation| relation.can_be_queried);
    if may {
        known.set(relation);
    }
    may
}

/// Can a result of another transaction rest on the definition of this relation? Not if the relation is new: another transaction can read
/// it only after the commit. This does not hold for its rows: an older snapshot may be used to read it then, and does not see them.
pub fn may_carry_results_of_others(relation: u32) -> bool {
    inspect(relation).is_none_or(|relation| relation.can_be_queried && !relation.is_new)
}

/// What matters of a relation.
struct Inspected {
    /// There may be cached queries over it.
    can_be_queried: bool,
    /// This transaction has created it.
    is_new: bool,
}

/// Inspects a relation; `None` if it is gone.
fn inspect(relation: u32) -> Option<Inspected> {
    if relation < FIRST_USER_OID {
        return Some(Inspected { can_be_queried: false, is_new: false });
    }
    let row = CatalogRow::find(pg_sys::SysCacheIdentifier::RELOID, pg_sys::Oid::from(relation))?;
    let class = row.relation()?;
    let temporary = class.relpersistence as u8 == pg_sys::RELPERSISTENCE_TEMP;
    let can_be_queried = can_be_queried(class.relkind as u8) && !temporary;
    Some(Inspected { can_be_queried, is_new: write_set::created(relation) })
}

/// Can there be cached queries over relations of this kind? Not over indexes, TOAST tables and sequences.
fn can_be_queried(kind: u8) -> bool {
    !matches!(
        kind,
        pg_sys::RELKIND_INDEX
            | pg_sys::RELKIND_PARTITIONED_INDEX
            | pg_sys::RELKIND_TOASTVALUE
            | pg_sys::RELKIND_SEQUENCE
    )
}
