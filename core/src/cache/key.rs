//! The key of a cached result. A pure value: nothing here is shared.

use crate::hash::Hash128;

/// Hash of everything that decides a result. Equal keys are a hint, not a proof: the caller compares the stored text.
/// The upper half chooses the bucket.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CacheKey(pub Hash128);
