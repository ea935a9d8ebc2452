//! How this session resolves names at this moment, as far as the versions of the definitions do not tell: by which schemas, as which role,
//! and by which settings literals are read. Part of the key of what calls functions that are declared pure.

use arrow_cache_core::{HashBuffer, Reason};
use pgrx::pg_sys;

use super::environment;
use super::hashes::ResolutionHash;
use crate::pg::search_path;

/// The present way of resolving names, as one number.
///
/// # Errors
/// As `environment::hash`.
pub fn hash(seed: u64) -> Result<ResolutionHash, Reason> {
    let environment = environment::hash(seed, &[])?;
    let (mut temporary, mut toast) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
    // The list below leaves the session's schema of temporary objects out.
    // SAFETY: writes both.
    unsafe { kept!(pg_sys::GetTempNamespaceState(&raw mut temporary, &raw mut toast)) };
    let mut key = HashBuffer::new();
    key.hash(environment.0);
    key.u32(temporary.to_u32());
    for schema in search_path::schemas() {
        key.u32(schema.to_u32());
    }
    Ok(ResolutionHash(key.finish()))
}
