//! The identity of a question: everything its answer can depend on besides the data, in one
//! 128-bit key, plus the normalized text to compare on a match, since a hash is not a proof.

use arrow_cache_core::{CacheKey, KeyHasher, Reason};
use pgrx::pg_sys;

use super::parameters;
use super::text::{self, Text};

/// Computes the key of a statement under an environment (`environment::fingerprint`) with a fresh hasher and leaves its
/// normalized text in `normalized`.
///
/// `old_plan` is the number of the plan, if it is older than the last change of definitions that no relation stands for:
/// what PostgreSQL does not invalidate plans for (text search, …) may mean something else to such a plan than to any
/// other, so it shares answers with nobody.
///
/// # Errors
/// The reason to bypass, when the parameters cannot be part of a key.
///
/// # Safety
/// The text must be valid, `params` null or valid.
pub unsafe fn key(
    tree: CacheKey,
    old_plan: Option<u64>,
    environment: CacheKey,
    text: Text,
    params: pg_sys::ParamListInfo,
    mut hasher: KeyHasher,
    normalized: &mut Vec<u8>,
) -> Result<CacheKey, Reason> {
    // SAFETY: as the caller promises.
    unsafe {
        text::normalized(text, normalized);
        hasher.part(normalized);
        hasher.u64(tree.hi);
        hasher.u64(tree.lo);
        hasher.u8(u8::from(old_plan.is_some()));
        hasher.u64(old_plan.unwrap_or(0));
        hasher.u64(environment.hi);
        hasher.u64(environment.lo);
        parameters::hash_parameters(&mut hasher, params)?;
    }
    Ok(hasher.finish())
}
