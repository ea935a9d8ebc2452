//! Which rows a record of the heap changes, for whoever reads them. Keeps nothing.

use arrow_cache_core::{CatalogChange, Touched};

use crate::invalidation::catalogs::is_meaningful_catalog;
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

/// Whose rows they are.
pub enum Owner {
    /// A relation that is known by its file.
    Relation,
    /// A catalog that still has its first file, whose number is the catalog's OID.
    Catalog(u16),
    /// Nobody's, as far as results go: a catalog that none rests on, or statistics of a catalog that has been rewritten.
    Nobody,
}

/// Whose rows were changed.
pub fn owner_of(touched: Touched) -> Owner {
    match u16::try_from(touched.file.number()) {
        Ok(catalog) if is_meaningful_catalog(catalog.into()) => Owner::Catalog(catalog),
        _ if touched.file.number() < FIRST_USER_OID => Owner::Nobody,
        _ if touched.how == CatalogChange::InPlace => Owner::Nobody,
        _ => Owner::Relation,
    }
}

/// How a record of the heap concerns those who read rows, as far as its kind tells.
pub enum Concern {
    /// Not at all.
    Nothing,
    /// It adds, changes or deletes rows.
    Rows,
    /// It may do anything that [`touched_by_heap`] knows.
    Unusual,
}

/// What the kind of a record of the heap tells.
#[inline(always)]
pub fn concern_of_heap(record: WalRecord<'_>) -> Concern {
    let kind = record.info() & OPERATION;
    if changes_rows(kind) {
        Concern::Rows
    } else if kind == INPLACE {
        Concern::Unusual
    } else {
        Concern::Nothing
    }
}

/// Is it an insertion, a deletion or an update? No other kind has fewer than two bits, so this is quicker than four comparisons.
const fn changes_rows(kind: u8) -> bool {
    kind & kind.wrapping_sub(DELETE) == 0
}

const _: () = {
    let mut kind = 0;
    while kind <= OPERATION {
        assert!(changes_rows(kind) == matches!(kind, INSERT | DELETE | UPDATE | HOT_UPDATE));
        kind += DELETE;
    }
};

/// Does a record of the second manager of the heap change rows?
#[inline(always)]
pub fn is_multi_insert(record: WalRecord<'_>) -> bool {
    record.info() & OPERATION == MULTI_INSERT
}

/// How each kind of record of either manager of the heap changes rows, if it does: a look into a table is quicker than comparing.
const HOW: [CatalogChange; 8] = {
    let mut how = [CatalogChange::Changed; 8];
    how[(INSERT >> 4) as usize] = CatalogChange::Inserted;
    how[(MULTI_INSERT >> 4) as usize] = CatalogChange::Inserted;
    how[(INPLACE >> 4) as usize] = CatalogChange::InPlace;
    how
};

/// What a record of either manager of the heap may change: whether it changes that, `touched_by_heap` and `touched_by_heap2` tell.
#[inline(always)]
pub fn probably_touched(record: WalRecord<'_>) -> Option<Touched> {
    let how = HOW[usize::from((record.info() & OPERATION) >> 4)];
    Some(Touched { file: record.probable_file()?, how })
}

/// What a record of the heap changes; `None` if nothing that a query can read.
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
pub fn touched_by_heap2(record: WalRecord<'_>) -> Option<Touched> {
    if !is_multi_insert(record) {
        return None;
    }
    Some(Touched { file: record.first_file()?, how: CatalogChange::Inserted })
}
