//! On which relations results can rest, by their kind: not on indexes, sequences, TOAST tables or temporary tables. Catalog look-ups;
//! a few answers are remembered in this backend, without a lock.

use std::cell::Cell;

use pgrx::pg_sys;

use crate::invalidation::write_set;
use crate::pg::backend_local::Local;
use crate::pg::object_ids::FIRST_USER_OID;

/// How many relations a backend remembers on which results may rest.
const REMEMBERED: usize = 64;

/// The last relation with its remainder that was looked at, if results may rest on it.
static KNOWN: Local<[Cell<u32>; REMEMBERED]> = Local::new([const { Cell::new(0) }; REMEMBERED]);

/// Can a result rest on this relation? Of one that is gone, nobody can say no.
///
/// Only a yes is remembered: should the OID belong to another relation by now, a slot is moved for nothing.
pub fn may_carry_results(relation: u32) -> bool {
    KNOWN.with(|known| {
        let known = &known[relation as usize % REMEMBERED];
        if known.get() == relation {
            return true;
        }
        let may = look_at(relation).is_none_or(|found| found.can_be_queried);
        if may {
            known.set(relation);
        }
        may
    })
}

/// Can a result of another transaction rest on the definition of this relation? On one that is new it cannot: who reads
/// the relation at all has learned of it after the commit. Its rows are another matter, since an older snapshot
/// may be used to read it then, and does not see them.
pub fn may_carry_results_of_others(relation: u32) -> bool {
    look_at(relation).is_none_or(|found| found.can_be_queried && !found.is_new)
}

/// What matters of a relation.
struct Found {
    /// There may be cached queries over it.
    can_be_queried: bool,
    /// This transaction has created it.
    is_new: bool,
}

/// Looks at a relation; `None` if it is gone.
fn look_at(relation: u32) -> Option<Found> {
    if relation < FIRST_USER_OID {
        return Some(Found { can_be_queried: false, is_new: false });
    }
    // SAFETY: a catalog look-up inside a transaction, which raises nothing; the tuple is given back.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::RELOID as i32;
        let tuple = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(relation));
        if tuple.is_null() {
            return None;
        }
        let class: *const pg_sys::FormData_pg_class = pg_sys::GETSTRUCT(tuple).cast();
        let temporary = (*class).relpersistence as u8 == pg_sys::RELPERSISTENCE_TEMP;
        let can_be_queried = can_be_queried((*class).relkind as u8) && !temporary;
        pg_sys::ReleaseSysCache(tuple);
        Some(Found { can_be_queried, is_new: write_set::created(relation) })
    }
}

/// Are there queries over relations of this kind? Over indexes, TOAST tables and sequences there are no cached ones.
fn can_be_queried(kind: u8) -> bool {
    !matches!(
        kind,
        pg_sys::RELKIND_INDEX
            | pg_sys::RELKIND_PARTITIONED_INDEX
            | pg_sys::RELKIND_TOASTVALUE
            | pg_sys::RELKIND_SEQUENCE
    )
}
