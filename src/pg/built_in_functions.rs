//! The server's own functions, and who may execute them. Reads catalogs; keeps nothing.

use pgrx::pg_sys;

use super::catalog_scan::{self, Catalog, Rows};
use super::compat;
use super::object_ids::FIRST_UNPINNED_OID;
use super::server;

/// The server's own functions that some role may not execute: those that initdb has withdrawn from PUBLIC, and those
/// that somebody has withdrawn since. Reads some three thousand rows. `None` if the catalog cannot be read now.
pub fn withdrawn() -> Option<Vec<pg_sys::Oid>> {
    const FUNCTIONS: Catalog = Catalog {
        table: pg_sys::ProcedureRelationId,
        index: pg_sys::ProcedureOidIndexId,
        column: pg_sys::Anum_pg_proc_oid,
    };
    let mut functions = Vec::new();
    // SAFETY: the column is the one of the index over OIDs. Rows have the layout of their catalog.
    unsafe {
        catalog_scan::scan(FUNCTIONS, Rows::Below(FIRST_UNPINNED_OID.into()), |row, columns| {
            if !kept!(pg_sys::heap_attisnull(row, pg_sys::Anum_pg_proc_proacl as i32, columns)) {
                functions.push((*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_proc>()).oid);
            }
            true
        })?;
    }
    functions.retain(|function| !compat::public_may_execute(*function));
    Some(functions)
}

/// Stands for no function in the index of these (utils/fmgrtab.h).
const NO_BUILT_IN: u16 = u16::MAX;

/// Returns true if the code that runs for a function is fixed by its number.
pub fn is_called_by_number(function: pg_sys::Oid) -> bool {
    let number = function.to_u32();
    // SAFETY: constants of the server, and a place that the first of them says is there.
    unsafe {
        number <= server::fmgr_last_builtin_oid.to_u32()
            && *(&raw const server::fmgr_builtin_oid_index).cast::<u16>().add(number as usize) != NO_BUILT_IN
    }
}
