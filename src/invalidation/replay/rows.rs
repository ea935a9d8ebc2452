//! Which rows a record of the heap changes, for whoever reads them. Keeps nothing.

use arrow_cache_core::CatalogChange;
use pgrx::pg_sys::RmgrIds;

use crate::pg::object_ids::FIRST_USER_OID;
use crate::pg::wal_record::{RelationFile, WalRecord};

/// Kinds of records of the heap (access/heapam_xlog.h, the same in 15 to 18). Those that are not named here change nothing that a snapshot can see: locks,
/// the second half of a speculative insertion, what the primary's logical decoding wants to know.
const OPERATION: u8 = 0x70;
const INSERT: u8 = 0x00;
const DELETE: u8 = 0x10;
const UPDATE: u8 = 0x20;
const HOT_UPDATE: u8 = 0x40;
const INPLACE: u8 = 0x70;

/// The one kind of the second heap manager (`RM_HEAP2_ID`) that changes rows. The others prune, freeze, mark pages as visible, lock, or
/// serve logical decoding.
const MULTI_INSERT: u8 = 0x50;

/// What a record changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touched {
    /// Rows of a relation, known by its file.
    Rows(RelationFile),
    /// Rows of a catalog that still has its first file, whose number is the catalog's OID.
    Catalog(u16, CatalogChange),
}

/// What a record of the heap changes; `None` if nothing that a query can read.
pub fn touched(record: WalRecord<'_>) -> Option<Touched> {
    let how = match (record.manager(), record.info() & OPERATION) {
        (RmgrIds::RM_HEAP_ID, INSERT) | (RmgrIds::RM_HEAP2_ID, MULTI_INSERT) => CatalogChange::Inserted,
        (RmgrIds::RM_HEAP_ID, DELETE | UPDATE | HOT_UPDATE) => CatalogChange::Changed,
        // VACUUM writes statistics without a transaction id. No record of a commit follows that these could be compared with.
        (RmgrIds::RM_HEAP_ID, INPLACE) if record.transaction() == 0 => return None,
        (RmgrIds::RM_HEAP_ID, INPLACE) => CatalogChange::InPlace,
        _ => return None,
    };
    let file = record.first_file()?;
    match u16::try_from(file.number) {
        Ok(catalog) if file.number < FIRST_USER_OID => Some(Touched::Catalog(catalog, how)),
        // Statistics of a catalog that has been rewritten, which no query may read.
        _ if how == CatalogChange::InPlace => None,
        _ => Some(Touched::Rows(file)),
    }
}
