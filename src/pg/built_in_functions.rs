//! The server's own functions, and who may execute them. Reads catalogs; keeps nothing.

use pgrx::pg_sys;

use super::compat;
use super::object_ids::FIRST_UNPINNED_OID;

/// The server's own functions that some role may not execute: those that initdb has withdrawn from PUBLIC, and those that somebody has
/// withdrawn since. Reads some three thousand rows.
pub fn withdrawn() -> Vec<pg_sys::Oid> {
    const LOCK: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    let mut functions = Vec::new();
    // SAFETY: reads a catalog by the index over its OIDs. A row holds until the next one is asked for, and has the layout of its catalog. After an
    // error the server closes what is open.
    unsafe {
        let mut key = pg_sys::ScanKeyData::default();
        pg_sys::ScanKeyInit(
            &raw mut key,
            pg_sys::Anum_pg_proc_oid as pg_sys::AttrNumber,
            pg_sys::BTLessStrategyNumber as pg_sys::StrategyNumber,
            pg_sys::RegProcedure::from(pg_sys::F_OIDLT),
            pg_sys::Datum::from(FIRST_UNPINNED_OID),
        );
        let catalog = pg_sys::table_open(pg_sys::ProcedureRelationId, LOCK);
        let index = pg_sys::Oid::from(pg_sys::ProcedureOidIndexId);
        let scan = pg_sys::systable_beginscan(catalog, index, true, std::ptr::null_mut(), 1, &raw mut key);
        loop {
            let row = pg_sys::systable_getnext(scan);
            if row.is_null() {
                break;
            }
            if !pg_sys::heap_attisnull(row, pg_sys::Anum_pg_proc_proacl as i32, (*catalog).rd_att) {
                functions.push((*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_proc>()).oid);
            }
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(catalog, LOCK);
    }
    functions.retain(|function| !compat::public_may_execute(*function));
    functions
}
