//! How often, and how quickly, a key was executed lately without an answer. One line per key (`key_line`), changed by
//! anybody, without a lock. Keys that share a line take it from each other; a key that was forgotten is only new once
//! more.

use crate::atomics::Ordering::Relaxed;
use crate::cache::key::CacheKey;
use crate::cache::key_line::{KeyLine, Runs};
use crate::cache::memory::{Arena, Locks};
use crate::cache::store::Store;

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Counts one more execution of a key that had no entry, and returns how often that happened lately.
    pub fn count_run(&self, key: CacheKey) -> u32 {
        let after = |word| Runs::of(word, key).counted();
        let word = self.key_line(key).runs.fetch_update(Relaxed, Relaxed, |word| Some(after(word).to_word()));
        // Cannot fail: there always is a next word.
        after(word.unwrap_or_else(|word| word)).count()
    }

    /// Notes whether an execution of a key was too quick to be stored. Writes only what is new.
    pub fn note_too_quick(&self, key: CacheKey, too_quick: bool) {
        let next = |word| {
            let runs = Runs::of(word, key);
            (runs.was_quick() != too_quick).then(|| runs.after(too_quick).to_word())
        };
        // Nothing is to be noted if it is known.
        let _ = self.key_line(key).runs.fetch_update(Relaxed, Relaxed, next);
    }

    /// Returns true if the last execution of a key was too quick to be stored, as far as that is remembered.
    #[must_use]
    pub fn was_too_quick(&self, key: CacheKey) -> bool {
        Runs::of(self.key_line(key).runs.load(Relaxed), key).was_quick()
    }

    /// Returns true if a key was asked before, as far as that is remembered: its answer was stored once, or a run of it
    /// counted. Keys that share a line may be taken for each other.
    #[must_use]
    pub fn was_asked(&self, key: CacheKey) -> bool {
        Runs::of(self.key_line(key).runs.load(Relaxed), key).count() > 0
    }

    fn key_line(&self, key: CacheKey) -> &KeyLine {
        let lines = self.key_lines();
        // The number of lines is a power of two.
        &lines[key.0.lo as usize & (lines.len() - 1)]
    }
}
