//! How often a query ran lately without an entry, for the admission of its answer: one word per query, changed by anybody, without a lock.

use crate::atomics::Ordering::Relaxed;
use crate::cache::key::CacheKey;
use crate::cache::layout::RUN_WORDS;
use crate::cache::memory::{Arena, Locks};
use crate::cache::store::Store;

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Counts one more execution of a key that had no entry, and returns how often that happened lately. Keys that share a word replace each
    /// other there, and the count then starts again at 1.
    pub fn count_run(&self, key: CacheKey) -> u32 {
        let word = &self.runs()[key.0.lo as usize % RUN_WORDS];
        let tag = key.0.hi as u32 & 0xFFFF_0000;
        let next = |old: u32| {
            let same = old & 0xFFFF_0000 == tag;
            tag | if same { (old & 0xFFFF).saturating_add(1).min(0xFFFF) } else { 1 }
        };
        let mut old = word.load(Relaxed);
        while let Err(current) = word.compare_exchange_weak(old, next(old), Relaxed, Relaxed) {
            old = current;
        }
        next(old) & 0xFFFF
    }

    /// Was an execution of a key counted lately?
    pub(crate) fn has_run(&self, key: CacheKey) -> bool {
        let word = self.runs()[key.0.lo as usize % RUN_WORDS].load(Relaxed);
        word & 0xFFFF_0000 == key.0.hi as u32 & 0xFFFF_0000 && word & 0xFFFF != 0
    }
}
