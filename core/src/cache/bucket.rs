//! The start of a chain of the index. Changed under the exclusive lock of the bucket's partition, read by anybody: see
//! `index`.

use crate::atomics::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::cache::entry::Link;

/// Start of a chain. Zeroed memory is an empty one.
pub(crate) struct Bucket {
    /// The number of changes of the chain, and the link to its first entry in the lower half.
    word: AtomicU64,
}

impl Bucket {
    /// The word: it is different after each change of the chain.
    pub(crate) fn read(&self) -> u64 {
        self.word.load(Acquire)
    }

    /// Returns true if the word is still what [`Bucket::read`] returned. The caller orders this load behind those of
    /// the chain.
    pub(crate) fn is_unchanged(&self, before: u64) -> bool {
        self.word.load(Relaxed) == before
    }

    pub(crate) fn first(&self) -> Link {
        Self::first_of(self.read())
    }

    /// The link to the first entry in a word that [`Bucket::read`] returned.
    pub(crate) fn first_of(word: u64) -> Link {
        word as Link
    }

    /// Notes a change of the chain, which begins with `first`. Exclusive partition lock held.
    pub(crate) fn set_first(&self, first: Link) {
        let changes = (self.word.load(Relaxed) >> 32).wrapping_add(1);
        self.word.store(changes << 32 | u64::from(first), Release);
    }
}
