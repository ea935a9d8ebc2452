//! What the present transaction has changed in rows of catalogs: the versions that it has found and ended, and those
//! that it leaves. Versions of rolled back subtransactions are neither. Reads catalogs; keeps nothing.

use pgrx::pg_sys;

use super::catalog_scan::{Catalog, Rows, scan_versions};
use super::search_path;

const RELATIONS: Catalog =
    Catalog { table: pg_sys::RelationRelationId, index: pg_sys::ClassOidIndexId, column: pg_sys::Anum_pg_class_oid };
const COLUMNS: Catalog = Catalog {
    table: pg_sys::AttributeRelationId,
    index: pg_sys::AttributeRelidNumIndexId,
    column: pg_sys::Anum_pg_attribute_attrelid,
};
const FUNCTIONS: Catalog = Catalog {
    table: pg_sys::ProcedureRelationId,
    index: pg_sys::ProcedureOidIndexId,
    column: pg_sys::Anum_pg_proc_oid,
};

/// What a version of a row is to the transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    /// It was there before, and the transaction has ended it.
    Found,
    /// The transaction has made it, and not ended it.
    Left,
    /// Anything else.
    Other,
}

/// What a version is to the transaction; `None` if several transactions have marked it.
///
/// # Safety
/// A row of a table.
unsafe fn version(row: pg_sys::HeapTuple) -> Option<Version> {
    const FROZEN: u16 = pg_sys::HEAP_XMIN_FROZEN as u16;
    const NO_END: u16 = (pg_sys::HEAP_XMAX_INVALID | pg_sys::HEAP_XMAX_LOCK_ONLY) as u16;
    const SEVERAL: u16 = pg_sys::HEAP_XMAX_IS_MULTI as u16;
    const LOCKED: u16 = (pg_sys::HEAP_XMAX_IS_MULTI | pg_sys::HEAP_LOCK_MASK) as u16;
    // SAFETY: the caller's promise. An id that is none of this transaction's is none of its subtransactions' either.
    unsafe {
        let head = (*row).t_data;
        let (marks, ids) = ((*head).t_infomask, (*head).t_choice.t_heap);
        let is_own = |xid| kept!(pg_sys::TransactionIdIsCurrentTransactionId(xid));
        let is_made = marks & FROZEN != FROZEN && is_own(ids.t_xmin);
        let is_locked = marks & LOCKED == pg_sys::HEAP_XMAX_EXCL_LOCK as u16;
        let may_be_ended = marks & NO_END == 0 && !is_locked;
        if may_be_ended && marks & SEVERAL != 0 {
            return None;
        }
        Some(match (is_made, may_be_ended && is_own(ids.t_xmax)) {
            (false, true) => Version::Found,
            (true, false) => Version::Left,
            _ => Version::Other,
        })
    }
}

/// Returns true if the transaction has changed nothing of a relation but who may use it, as far as its own row and
/// those of its columns tell. False if that cannot be told.
pub fn has_same_definition(relation: pg_sys::Oid) -> bool {
    are_same(RELATIONS, relation, pg_sys::Anum_pg_class_relacl)
        && are_same(COLUMNS, relation, pg_sys::Anum_pg_attribute_attacl)
}

/// Returns true if the rows with this OID that the transaction leaves are those that it has found, but for the column
/// `rights`.
fn are_same(catalog: Catalog, oid: pg_sys::Oid, rights: u32) -> bool {
    let (mut found, mut left, mut is_known) = (Vec::new(), Vec::new(), true);
    // SAFETY: a catalog, with the column of its index, and rows of it.
    let scanned = unsafe {
        scan_versions(catalog, Rows::With(oid), |row, columns| {
            match version(row) {
                Some(Version::Found) => found.push(without(row, columns, rights)),
                Some(Version::Left) => left.push(without(row, columns, rights)),
                Some(Version::Other) => {}
                None => is_known = false,
            }
            is_known
        })
    };
    found.sort_unstable();
    left.sort_unstable();
    scanned.is_some() && is_known && found == left
}

/// The bytes of a row, as if one column were null.
///
/// # Safety
/// A row of a table with these columns.
unsafe fn without(row: pg_sys::HeapTuple, columns: pg_sys::TupleDesc, column: u32) -> Vec<u8> {
    /// The head of a row ends with which columns are null.
    const HEAD: usize = std::mem::offset_of!(pg_sys::HeapTupleHeaderData, t_hoff);
    let (mut column, mut value, mut is_null) = (column as i32, pg_sys::Datum::null(), true);
    // SAFETY: the caller's promise. The server makes a copy, in which nothing is left as it was in memory before.
    unsafe {
        let copy = kept!(pg_sys::heap_modify_tuple_by_cols(
            row,
            columns,
            1,
            &raw mut column,
            &raw mut value,
            &raw mut is_null
        ));
        let bytes = std::slice::from_raw_parts((*copy).t_data.cast::<u8>(), (*copy).t_len as usize)[HEAD..].to_vec();
        kept!(pg_sys::heap_freetuple(copy));
        bytes
    }
}

/// Returns true if all functions that the transaction has changed or dropped were temporary ones of this session. False
/// if that cannot be told. Reads all rows of functions, unless the session has no temporary objects: there may be many.
pub fn are_changed_functions_temporary() -> bool {
    let temporary = search_path::temporary_schema();
    if temporary == pg_sys::InvalidOid {
        return false;
    }
    let mut are_temporary = true;
    // SAFETY: rows of pg_proc.
    let scanned = unsafe {
        scan_versions(FUNCTIONS, Rows::All, |row, _| {
            let schema = || (*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_proc>()).pronamespace;
            are_temporary = match version(row) {
                Some(Version::Found) => schema() == temporary,
                Some(_) => true,
                None => false,
            };
            are_temporary
        })
    };
    scanned.is_some() && are_temporary
}
