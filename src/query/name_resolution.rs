//! How this session resolves names at this moment, as far as the versions of the definitions do not tell: by which
//! path, as which role, by which settings literals are read, and whose temporary objects come first. Part of the key of
//! what resolves names in functions while it runs, and of the form of what calls functions of users. Which schemas the
//! path stands for follows from it, from the role, and from the version of the catalogs.

use arrow_cache_core::{HashBuffer, Reason};

use super::environment;
use super::hashes::ResolutionHash;
use crate::pg::search_path;

/// The present way of resolving names, as one number.
///
/// # Errors
/// As `environment::hash`.
pub fn hash(seed: u64) -> Result<ResolutionHash, Reason> {
    let mut key = HashBuffer::new();
    key.hash(environment::hash(seed, &[])?.0);
    key.u32(search_path::temporary_schema().to_u32());
    Ok(ResolutionHash(key.finish()))
}
