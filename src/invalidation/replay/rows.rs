//! What a record of the heap changes, for whoever reads rows. Keeps nothing.

use arrow_cache_core::versions::zones::zones_at;
use arrow_cache_core::{Change, TrackedColumns, Versions};
use pgrx::pg_sys::RmgrIds;

use crate::invalidation::catalogs::is_meaningful_catalog;
use crate::pg::compat::RelationFile;
use crate::pg::object_ids::FIRST_USER_OID;
use crate::pg::wal_record::WalRecord;

/// Kinds of records of the heap (access/heapam_xlog.h, the same in 15 to 18). Those that are not named here change
/// nothing that a snapshot can see: locks, the second half of a speculative insertion, what the primary's logical
/// decoding wants to know.
const OPERATION: u8 = 0x70;
const INSERT: u8 = 0x00;
const DELETE: u8 = 0x10;
const UPDATE: u8 = 0x20;
const HOT_UPDATE: u8 = 0x40;
const INPLACE: u8 = 0x70;

/// The one kind of the second heap manager (`RM_HEAP2_ID`) that changes rows. The others prune, freeze, mark pages as
/// visible, lock, or serve logical decoding.
const MULTI_INSERT: u8 = 0x50;

/// Returns true if a record of either manager of the heap is of a kind that changes rows.
#[inline(always)]
pub fn is_change(record: WalRecord<'_>) -> bool {
    const fn bit(operation: u8) -> u8 {
        1 << (operation >> 4)
    }
    let changing = match record.manager() {
        RmgrIds::RM_HEAP_ID => bit(INSERT) | bit(DELETE) | bit(UPDATE) | bit(HOT_UPDATE) | bit(INPLACE),
        _ => bit(MULTI_INSERT),
    };
    changing & bit(record.info() & OPERATION) != 0
}

/// Returns true if a record overwrites a row where it stands.
pub fn is_in_place(record: WalRecord<'_>) -> bool {
    record.info() & OPERATION == INPLACE
}

/// What a record of such a kind changes in a file; `None` if nothing that a result rests on. A catalog that still has
/// its first file is known by the file's number, which is its OID.
pub fn change(record: WalRecord<'_>, file: RelationFile, versions: Versions<'_>) -> Option<Change> {
    match (file.number as u16, is_in_place(record)) {
        (_, false) if file.number >= FIRST_USER_OID => {
            Some(Change::slot(versions.relation(file.database, file.number)))
        }
        // A catalog that no result rests on, or statistics of one that has been rewritten.
        _ if !is_meaningful_catalog(file.number) => None,
        (catalog, false) => Some(Change::catalog(catalog)),
        // VACUUM writes statistics without a transaction id. No record of a commit follows that these could be compared
        // with.
        (catalog, true) => (record.transaction() != 0).then_some(Change::catalog_in_place(catalog)),
    }
}

/// What a record of such a kind changes of a file of which these columns are tracked: the zones of the blocks that it
/// names. These are those where rows were before and after it: the first block, and of an UPDATE that moves a row the
/// second one, where the old version lies.
pub fn parts(
    record: WalRecord<'_>,
    file: RelationFile,
    tracked: TrackedColumns,
    versions: Versions<'_>,
) -> impl Iterator<Item = Change> {
    let zones = record.blocks_of(file).flat_map(move |block| zones_at(&tracked, block));
    zones.map(move |(column, zone)| Change::part(versions.value(file.database, file.number, column, zone)))
}
