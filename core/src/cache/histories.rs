//! How the answers of a key were used before: what is known of a key when its answer is stored once more. One word per key (`history`), changed by
//! anybody, without a lock. Keys that share a word take it from each other; a key that was forgotten is only new once more.

use crate::atomics::{AtomicU64, Ordering::Relaxed};
use crate::cache::history::{Earlier, History, tag, to_units};
use crate::cache::key::CacheKey;
use crate::cache::memory::{Arena, Locks};
use crate::cache::store::Store;

/// For so many microseconds after something of use was evicted, room is scarce.
const SCARCE_FOR: i64 = 60_000_000;

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Is the answer of a key not to be stored this time, because the last ones that were stored were not used, and room is scarce? Counts the
    /// run if so.
    pub fn skips_barren(&self, key: CacheKey, now: i64) -> bool {
        let last_eviction = self.header().last_eviction.load(Relaxed);
        if last_eviction == 0 || now.saturating_sub(last_eviction) > SCARCE_FOR {
            return false;
        }
        self.history(key)
            .fetch_update(Relaxed, Relaxed, |word| History::from_word(word).after_skip(tag(key)).map(History::to_word))
            .is_ok()
    }

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

    /// Forgets that answers of a key were not used.
    pub(crate) fn forgive(&self, key: CacheKey) {
        let next = |word| History::from_word(word).forgiven(tag(key)).map(History::to_word);
        // Nothing is to be forgiven if another key has the word by now.
        let _ = self.history(key).fetch_update(Relaxed, Relaxed, next);
    }

    pub(crate) fn history(&self, key: CacheKey) -> &AtomicU64 {
        let words = self.histories();
        // The number of words is a power of two.
        &words[key.0.lo as usize & (words.len() - 1)]
    }
}
