//! The server's own functions, and who may execute them. Reads catalogs; keeps nothing.

use pgrx::pg_sys;

use super::catalog_scan::{self, Catalog};
use super::compat;
use super::object_ids::FIRST_UNPINNED_OID;

/// The server's own functions that some role may not execute: those that initdb has withdrawn from PUBLIC, and those that somebody has
/// withdrawn since. Reads some three thousand rows. `None` if the catalog cannot be read now.
pub fn withdrawn() -> Option<Vec<pg_sys::Oid>> {
    const FUNCTIONS: Catalog =
        Catalog { table: pg_sys::ProcedureRelationId, index: pg_sys::Oid::from_u32(pg_sys::ProcedureOidIndexId) };
    let mut functions = Vec::new();
    // SAFETY: the key is the one of the index over OIDs. Rows have the layout of their catalog.
    unsafe {
        let mut key = pg_sys::ScanKeyData::default();
        kept!(pg_sys::ScanKeyInit(
            &raw mut key,
            pg_sys::Anum_pg_proc_oid as pg_sys::AttrNumber,
            pg_sys::BTLessStrategyNumber as pg_sys::StrategyNumber,
            pg_sys::RegProcedure::from(pg_sys::F_OIDLT),
            pg_sys::Datum::from(FIRST_UNPINNED_OID),
        ));
        catalog_scan::scan(FUNCTIONS, key, |row, columns| {
            if !kept!(pg_sys::heap_attisnull(row, pg_sys::Anum_pg_proc_proacl as i32, columns)) {
                functions.push((*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_proc>()).oid);
            }
            true
        })?;
    }
    functions.retain(|function| !compat::public_may_execute(*function));
    Some(functions)
}
