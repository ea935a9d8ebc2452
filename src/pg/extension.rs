//! What the server knows of an extension beside its name. Reads a catalog; keeps nothing.

use std::ffi::{CStr, CString};

use pgrx::pg_sys;

/// The version of an extension that was created or updated last, as its control file or script has named it. `None` if
/// there is no such extension.
pub fn version(extension: pg_sys::Oid) -> Option<CString> {
    const LOCK: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    // SAFETY: reads a catalog by the index over its OIDs, and a column of type text that is never null. After an error
    // the server closes what is open.
    unsafe {
        let mut key = pg_sys::ScanKeyData::default();
        pg_sys::ScanKeyInit(
            &raw mut key,
            pg_sys::Anum_pg_extension_oid as pg_sys::AttrNumber,
            pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber,
            pg_sys::RegProcedure::from(pg_sys::F_OIDEQ),
            pg_sys::Datum::from(extension),
        );
        let catalog = pg_sys::table_open(pg_sys::ExtensionRelationId, LOCK);
        let index = pg_sys::Oid::from(pg_sys::ExtensionOidIndexId);
        let scan = pg_sys::systable_beginscan(catalog, index, true, std::ptr::null_mut(), 1, &raw mut key);
        let row = pg_sys::systable_getnext(scan);
        let mut version = None;
        if !row.is_null() {
            let mut is_null = false;
            let column = pg_sys::Anum_pg_extension_extversion as i32;
            let value = pg_sys::heap_getattr(row, column, (*catalog).rd_att, &mut is_null);
            if !is_null {
                version = Some(CStr::from_ptr(pg_sys::text_to_cstring(value.cast_mut_ptr())).to_owned());
            }
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(catalog, LOCK);
        version
    }
}
