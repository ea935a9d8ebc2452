//! Reading a catalog by one of its indexes. The locks are given back at the end, as the server does with those of
//! catalogs. Keeps nothing.

use pgrx::pg_sys;

use super::compat::lock_at_once;
use super::error_passing::keeping;

/// A catalog, one of its indexes, and the column that this begins with, which holds OIDs.
#[derive(Clone, Copy)]
pub struct Catalog {
    /// The catalog.
    pub table: pg_sys::Oid,
    /// The index.
    pub index: u32,
    /// The number of the column.
    pub column: u32,
}

/// Which rows of a catalog are read.
#[derive(Clone, Copy)]
pub enum Rows {
    /// Those with this OID in the column.
    With(pg_sys::Oid),
    /// All, in the order of the table.
    All,
}

/// Gives these rows of a catalog to `visit`, until that says no. `None`, and nothing is read, if somebody else
/// holds a lock that is in the way or there is no room for the locks. Raises what reading a catalog raises.
///
/// # Safety
/// The column is the one of the index. A row that `visit` is given holds until it returns.
pub unsafe fn scan(
    catalog: Catalog,
    rows: Rows,
    visit: impl FnMut(pg_sys::HeapTuple, pg_sys::TupleDesc) -> bool,
) -> Option<()> {
    // SAFETY: the caller's promise.
    unsafe { scan_under(catalog, rows, std::ptr::null_mut(), visit) }
}

/// As `scan`, for all versions of these rows that are in the table, whoever sees them.
///
/// # Safety
/// As `scan`.
pub unsafe fn scan_versions(
    catalog: Catalog,
    rows: Rows,
    visit: impl FnMut(pg_sys::HeapTuple, pg_sys::TupleDesc) -> bool,
) -> Option<()> {
    // SAFETY: the caller's promise; a constant of the server.
    unsafe { scan_under(catalog, rows, &raw mut pg_sys::SnapshotAnyData, visit) }
}

/// As `scan`, under a snapshot; null for the one of catalogs.
///
/// # Safety
/// As `scan`.
unsafe fn scan_under(
    Catalog { table, index, column }: Catalog,
    rows: Rows,
    snapshot: pg_sys::Snapshot,
    mut visit: impl FnMut(pg_sys::HeapTuple, pg_sys::TupleDesc) -> bool,
) -> Option<()> {
    const LOCK: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    let index = pg_sys::Oid::from_u32(index);
    let keyed = match rows {
        Rows::With(oid) => Some(oid),
        Rows::All => None,
    };
    // SAFETY: the caller's promise. After an error the server closes what is open, and gives the locks back.
    unsafe {
        let mut key = pg_sys::ScanKeyData::default();
        if let Some(oid) = keyed {
            let place = &raw mut key;
            let (strategy, equal) = (pg_sys::BTEqualStrategyNumber, pg_sys::F_OIDEQ);
            kept!(pg_sys::ScanKeyInit(place, column as _, strategy as _, equal.into(), pg_sys::Datum::from(oid)));
        }
        if !keeping(|| lock_at_once(table)) {
            return None;
        }
        let is_read = keyed.is_none() || keeping(|| lock_at_once(index));
        if is_read {
            let open = kept!(pg_sys::table_open(table, LOCK));
            let (by_index, keys) = (keyed.is_some(), i32::from(keyed.is_some()));
            let scan = kept!(pg_sys::systable_beginscan(open, index, by_index, snapshot, keys, &raw mut key));
            loop {
                let row = kept!(pg_sys::systable_getnext(scan));
                if row.is_null() || !visit(row, (*open).rd_att) {
                    break;
                }
            }
            kept!(pg_sys::systable_endscan(scan));
            kept!(pg_sys::table_close(open, LOCK));
            if by_index {
                kept!(pg_sys::UnlockRelationOid(index, LOCK));
            }
        }
        kept!(pg_sys::UnlockRelationOid(table, LOCK));
        is_read.then_some(())
    }
}
