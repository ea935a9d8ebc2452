//! What is known of a key when its answer is to be stored: how those before it were used, and how it was executed
//! without one. One line per key (`key_line`), changed by anybody, without a lock. Keys that share a line take its
//! words from each other; a key that was forgotten is only new once more.

use crate::atomics::{AtomicU64, Ordering::Relaxed};
use crate::cache::key::CacheKey;
use crate::cache::key_line::{Earlier, History, KeyLine, Runs, tag, to_units};
use crate::cache::memory::{Arena, Locks};
use crate::cache::store::Store;

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Notes that an answer is stored. Returns how those before it were used.
    pub(crate) fn note_store(&self, key: CacheKey, now: i64) -> Earlier {
        let after = |word| History::from_word(word).after_store(tag(key), to_units(now));
        let next = |word| Some(after(word).to_word());
        let word = self.history(key).fetch_update(Relaxed, Relaxed, next).unwrap_or_else(|word| word);
        after(word).earlier(tag(key), now)
    }

    /// How the answers of a key were used so far.
    pub(crate) fn earlier_uses(&self, key: CacheKey, now: i64) -> Earlier {
        History::from_word(self.history(key).load(Relaxed)).earlier(tag(key), now)
    }

    /// Notes that an answer that was used so often has gone.
    pub(crate) fn note_uses(&self, key: CacheKey, hits: u64) {
        if hits > 0 {
            let next = |word| Some(History::from_word(word).after_use(tag(key), hits).to_word());
            // Cannot fail: `next` always gives a word.
            let _ = self.history(key).fetch_update(Relaxed, Relaxed, next);
        }
    }

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
        let runs = Runs::of(self.key_line(key).runs.load(Relaxed), key);
        runs.count() > 0 || History::from_word(self.history(key).load(Relaxed)).is_of(tag(key))
    }

    fn history(&self, key: CacheKey) -> &AtomicU64 {
        &self.key_line(key).history
    }

    fn key_line(&self, key: CacheKey) -> &KeyLine {
        let lines = self.key_lines();
        // The number of lines is a power of two.
        &lines[key.0.lo as usize & (lines.len() - 1)]
    }
}
