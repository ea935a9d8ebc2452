//! Which rows a record of the heap changes, for whoever reads them. Keeps nothing.

use pgrx::pg_sys::RmgrIds;

use crate::invalidation::catalogs::is_meaningful_catalog;
use crate::pg::compat::RelationFile;
use crate::pg::object_ids::FIRST_USER_OID;
use crate::pg::wal_record::WalRecord;

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

/// Whose rows a record changes.
pub enum Changed {
    /// Those of a relation that is known by its file.
    Relation(RelationFile),
    /// Those of a catalog that still has its first file, whose number is the catalog's OID.
    Catalog(u16),
    /// A row of such a catalog, where it stands.
    CatalogInPlace(u16),
}

/// Whose rows a record of either manager of the heap changes; `None` if nobody's, as far as results go.
pub fn changed(record: WalRecord<'_>) -> Option<Changed> {
    let is_in_place = match (record.manager(), record.info() & OPERATION) {
        (RmgrIds::RM_HEAP_ID, INSERT | DELETE | UPDATE | HOT_UPDATE) | (RmgrIds::RM_HEAP2_ID, MULTI_INSERT) => false,
        // VACUUM writes statistics without a transaction id. No record of a commit follows that these could be compared with.
        (RmgrIds::RM_HEAP_ID, INPLACE) if record.transaction() != 0 => true,
        _ => return None,
    };
    let file = record.first_file()?;
    match u16::try_from(file.number) {
        Ok(catalog) if is_meaningful_catalog(catalog.into()) => {
            Some(if is_in_place { Changed::CatalogInPlace(catalog) } else { Changed::Catalog(catalog) })
        }
        // A catalog that no result rests on, or statistics of one that has been rewritten.
        _ if file.number < FIRST_USER_OID || is_in_place => None,
        _ => Some(Changed::Relation(file)),
    }
}
