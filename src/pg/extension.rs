//! What the server knows of an extension beside its name. Reads a catalog; keeps nothing.

use std::ffi::{CStr, CString};

use pgrx::pg_sys;

use super::catalog_scan::{self, Catalog, Rows};

/// The version of an extension that was created or updated last, as its control file or script has named it. `None` if
/// there is no such extension, or the catalog cannot be read now.
pub fn version(extension: pg_sys::Oid) -> Option<CString> {
    const EXTENSIONS: Catalog = Catalog {
        table: pg_sys::ExtensionRelationId,
        index: pg_sys::ExtensionOidIndexId,
        column: pg_sys::Anum_pg_extension_oid,
    };
    let mut version = None;
    // SAFETY: the column is the one of the index over OIDs; a column of type text that is never null.
    unsafe {
        catalog_scan::scan(EXTENSIONS, Rows::With(extension), |row, columns| {
            let mut is_null = false;
            let column = pg_sys::Anum_pg_extension_extversion as i32;
            let value = pg_sys::heap_getattr(row, column, columns, &mut is_null);
            if !is_null {
                version = Some(CStr::from_ptr(kept!(pg_sys::text_to_cstring(value.cast_mut_ptr()))).to_owned());
            }
            false
        })?;
    }
    version
}
