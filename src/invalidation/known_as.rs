//! By which number changes of a relation's rows are published. Keeps nothing.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use crate::pg::backend;
use crate::pg::catalog_row::CatalogRow;
use crate::pg::object_ids::HEAP_TABLE_AM_OID;

/// The number by which the publisher of changes knows the rows of a relation: its OID, or in recovery that of its file.
/// `None` if there are no rows, or nobody tells of their changes.
pub fn rows_of(relation: u32) -> Option<u32> {
    if backend::is_in_recovery() { file_number(relation).ok()? } else { Some(relation) }
}

/// The number of the file by which replay knows a relation; `None` for one that has no rows of its own. A new file
/// comes with a new definition, so this is asked when the version of the definition has been read.
///
/// # Errors
/// Replay does not tell of changes of the relation, or the relation has gone.
pub fn file_number(relation: u32) -> Result<Option<u32>, Reason> {
    let row = CatalogRow::find(pg_sys::SysCacheIdentifier::RELOID, pg_sys::Oid::from(relation));
    let class = row.as_ref().and_then(CatalogRow::relation).ok_or(Reason::DdlInProgress)?;
    match class.relkind as u8 {
        pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW if class.relam.to_u32() == HEAP_TABLE_AM_OID => {
            let number = class.relfilenode.to_u32();
            if number == 0 { Err(Reason::Recovery) } else { Ok(Some(number)) }
        }
        pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW => Err(Reason::Recovery),
        _ => Ok(None),
    }
}
