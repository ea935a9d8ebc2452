//! What `search_path` stands for at this moment: the schemas that there are and that the role may use. Reads catalogs;
//! keeps nothing.

use pgrx::pg_sys;

/// Schemas that are asked for at first.
const USUAL: usize = 16;

/// The schemas in which names are sought, `pg_catalog` among them, without the session's schema of temporary objects.
pub fn schemas() -> Vec<pg_sys::Oid> {
    let mut schemas = vec![pg_sys::InvalidOid; USUAL];
    // SAFETY: the server writes no more than as many schemas as there is room for, and tells how many there are.
    unsafe {
        let count = kept!(pg_sys::fetch_search_path_array(schemas.as_mut_ptr(), schemas.len() as i32)) as usize;
        let needed = count > schemas.len();
        schemas.resize(count, pg_sys::InvalidOid);
        if needed {
            kept!(pg_sys::fetch_search_path_array(schemas.as_mut_ptr(), schemas.len() as i32));
        }
    }
    schemas
}

/// The schema of this session's temporary objects; InvalidOid if it has none yet.
pub fn temporary_schema() -> pg_sys::Oid {
    let (mut temporary, mut toast) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
    // SAFETY: writes both.
    unsafe { kept!(pg_sys::GetTempNamespaceState(&raw mut temporary, &raw mut toast)) };
    temporary
}
