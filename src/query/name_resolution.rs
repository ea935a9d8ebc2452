//! How this session resolves names at this moment, as far as the versions of the definitions do not tell: by which schemas, as which role,
//! and by which settings literals are read. What was found out about bodies of functions that are kept as text holds for that alone.

use arrow_cache_core::{HashBuffer, Reason};
use pgrx::pg_sys;

use super::environment;
use super::hashes::ResolutionHash;

/// Schemas of a path that are asked for at first.
const USUAL_SCHEMAS: usize = 16;

/// The present way of resolving names, as one number.
///
/// # Errors
/// As `environment::hash`.
pub fn hash(seed: u64) -> Result<ResolutionHash, Reason> {
    let environment = environment::hash(seed, &[])?;
    let mut schemas = vec![pg_sys::InvalidOid; USUAL_SCHEMAS];
    let (mut temporary, mut toast) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
    // SAFETY: the server writes no more than as many schemas as there is room for, and tells how many there are.
    unsafe {
        let count = pg_sys::fetch_search_path_array(schemas.as_mut_ptr(), schemas.len() as i32) as usize;
        if count > schemas.len() {
            schemas.resize(count, pg_sys::InvalidOid);
            pg_sys::fetch_search_path_array(schemas.as_mut_ptr(), schemas.len() as i32);
        }
        // The server leaves the session's schema of temporary objects out of the list.
        pg_sys::GetTempNamespaceState(&raw mut temporary, &raw mut toast);
    }
    let mut key = HashBuffer::new();
    key.hash(environment.0);
    key.u32(temporary.to_u32());
    for schema in schemas {
        key.u32(schema.to_u32());
    }
    Ok(ResolutionHash(key.finish()))
}
