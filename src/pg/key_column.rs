//! Which column of a table has another value in each row. Reads catalogs; keeps nothing.

use pgrx::pg_sys;

use super::server;

/// Returns true if a column is the primary key of a table by itself.
pub fn is_primary_key(table: pg_sys::Oid, column: i16) -> bool {
    let mut constraint = pg_sys::InvalidOid;
    let place_of_constraint = &raw mut constraint;
    let mut only = -1;
    // SAFETY: reads catalogs; the set is made in the current memory context, and is null if there is no key.
    let is_one = unsafe {
        let key = kept!(server::get_primary_key_attnos(table, false, place_of_constraint));
        direct!(pg_sys::bms_get_singleton_member(key, &raw mut only))
    };
    is_one && only + pg_sys::FirstLowInvalidHeapAttributeNumber == i32::from(column)
}
