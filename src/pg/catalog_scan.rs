//! Reading a catalog by one of its indexes. The locks are given back at the end, as the server does with those of
//! catalogs. Keeps nothing.

use pgrx::pg_sys;

use super::compat::lock_at_once;
use super::error_passing::keeping;

/// A catalog, and one of its indexes.
#[derive(Clone, Copy)]
pub struct Catalog {
    /// The catalog.
    pub table: pg_sys::Oid,
    /// The index.
    pub index: pg_sys::Oid,
}

/// Gives the rows of a catalog with a key to `visit`, until that says no. `None`, and nothing is read, if somebody else
/// holds a lock that is in the way or there is no room for the locks. Raises what reading a catalog raises.
///
/// # Safety
/// The key is one of the index. A row that `visit` is given holds until it returns.
pub unsafe fn scan(
    catalog: Catalog,
    mut key: pg_sys::ScanKeyData,
    mut visit: impl FnMut(pg_sys::HeapTuple, pg_sys::TupleDesc) -> bool,
) -> Option<()> {
    const LOCK: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    // SAFETY: the caller's promise. After an error the server closes what is open, and gives the locks back.
    unsafe {
        let Catalog { table, index } = catalog;
        if !keeping(|| lock_at_once(table)) {
            return None;
        }
        let is_read = keeping(|| lock_at_once(index));
        if is_read {
            let open = kept!(pg_sys::table_open(table, LOCK));
            let scan = kept!(pg_sys::systable_beginscan(open, index, true, std::ptr::null_mut(), 1, &raw mut key));
            loop {
                let row = kept!(pg_sys::systable_getnext(scan));
                if row.is_null() || !visit(row, (*open).rd_att) {
                    break;
                }
            }
            kept!(pg_sys::systable_endscan(scan));
            kept!(pg_sys::table_close(open, LOCK));
            kept!(pg_sys::UnlockRelationOid(index, LOCK));
        }
        kept!(pg_sys::UnlockRelationOid(table, LOCK));
        is_read.then_some(())
    }
}
