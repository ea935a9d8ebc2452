//! The identity of a question: everything its answer can depend on besides the data, in one
//! 128-bit key, plus the normalized text to compare on a match, since a hash is not a proof.

use std::ffi::c_char;

use arrow_cache_core::{CacheKey, KeyHasher, Reason};
use pgrx::pg_sys;

use super::{environment, parameters, text};

/// Computes the key of a statement with a fresh hasher and leaves its normalized text in `normalized`.
///
/// # Errors
/// The reason to bypass, when the parameters cannot be part of a key.
///
/// # Safety
/// `source` must be NUL-terminated, `params` null or valid.
pub unsafe fn key(
    tree: CacheKey,
    source: *const c_char,
    location: i32,
    length: i32,
    params: pg_sys::ParamListInfo,
    mut hasher: KeyHasher,
    normalized: &mut Vec<u8>,
) -> Result<CacheKey, Reason> {
    // SAFETY: as the caller promises.
    unsafe {
        text::normalized(source, location, length, normalized);
        hasher.part(normalized);
        hasher.u64(tree.hi);
        hasher.u64(tree.lo);
        environment::hash_environment(&mut hasher);
        parameters::hash_parameters(&mut hasher, params)?;
    }
    Ok(hasher.finish())
}
