//! Which rows a record of the heap changes, for whoever reads them. Keeps nothing.

use arrow_cache_core::CatalogChange;

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

/// Rows that a record changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Touched {
    /// The file that they are in.
    pub file: RelationFile,
    /// How, if it is the file of a catalog.
    pub how: CatalogChange,
}

/// Whose rows they are.
pub enum Owner {
    /// A relation that is known by its file.
    Relation,
    /// A catalog that still has its first file, whose number is the catalog's OID.
    Catalog(u16),
    /// Nobody's: statistics of a catalog that has been rewritten, which no query may read.
    Nobody,
}

impl Touched {
    /// No rows of anything.
    pub const NOTHING: Self = Self { file: RelationFile { database: 0, number: 0 }, how: CatalogChange::InPlace };

    /// Whose rows were changed.
    pub fn owner(self) -> Owner {
        match u16::try_from(self.file.number) {
            Ok(catalog) if self.file.number < FIRST_USER_OID => Owner::Catalog(catalog),
            _ if self.how == CatalogChange::InPlace => Owner::Nobody,
            _ => Owner::Relation,
        }
    }
}

/// What a record of the heap changes; `None` if nothing that a query can read.
#[inline(always)]
pub fn touched_by_heap(record: WalRecord<'_>) -> Option<Touched> {
    let how = match record.info() & OPERATION {
        INSERT => CatalogChange::Inserted,
        DELETE | UPDATE | HOT_UPDATE => CatalogChange::Changed,
        // VACUUM writes statistics without a transaction id. No record of a commit follows that these could be compared with.
        INPLACE if record.transaction() != 0 => CatalogChange::InPlace,
        _ => return None,
    };
    Some(Touched { file: record.first_file()?, how })
}

/// The same for the second manager of the heap.
#[inline(always)]
pub fn touched_by_heap2(record: WalRecord<'_>) -> Option<Touched> {
    if record.info() & OPERATION != MULTI_INSERT {
        return None;
    }
    Some(Touched { file: record.first_file()?, how: CatalogChange::Inserted })
}
