//! The record of what is known of keys that share a place: how their answers were used, and how they were executed
//! without one. Changed by anybody, without a lock: each word is whole by itself. A key takes each from another by a
//! rule of its own.

use crate::atomics::{AtomicU64, Ordering::Relaxed};
use crate::cache::key::CacheKey;

/// What is known of the keys that share a place. Zeroed memory knows of none.
#[repr(C, align(16))]
pub(crate) struct KeyLine {
    /// How answers were used: a `History`.
    pub(crate) history: AtomicU64,
    /// How executions without an answer went: `Runs`.
    pub(crate) runs: AtomicU64,
}

impl KeyLine {
    /// Returns true if a line can hold this: what is known of a key is something.
    pub(crate) fn is_possible(&self) -> bool {
        let word = self.runs.load(Relaxed);
        Runs::from_word(word).to_word() == word
    }
}

/// Bits of the number of runs.
const COUNT_BITS: u32 = 16;
/// The bit that tells whether the last run was too quick. Above it lie those of the key.
const QUICK: u64 = 1 << COUNT_BITS;
const KEY_SHIFT: u32 = COUNT_BITS + 1;

/// How a key was executed lately without an answer: one word, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Runs {
    /// A part of the key.
    tag: u64,
    /// The last run that was to be stored was too quick for that.
    was_quick: bool,
    /// How many runs were counted.
    count: u64,
}

impl Runs {
    fn from_word(word: u64) -> Self {
        Self { tag: word >> KEY_SHIFT, was_quick: word & QUICK != 0, count: word & most(COUNT_BITS) }
    }

    /// The word; nobody's if nothing is known.
    pub(crate) fn to_word(self) -> u64 {
        let known = u64::from(self.was_quick) << COUNT_BITS | self.count;
        if known == 0 { 0 } else { self.tag << KEY_SHIFT | known }
    }

    /// What a word tells of a key. Another key leaves its word.
    pub(crate) fn of(word: u64, key: CacheKey) -> Self {
        let (runs, tag) = (Self::from_word(word), key.0.hi >> KEY_SHIFT);
        if runs.tag == tag { runs } else { Self { tag, was_quick: false, count: 0 } }
    }

    /// How many runs were counted.
    pub(crate) fn count(self) -> u32 {
        self.count as u32
    }

    /// Returns true if the last run was too quick to be stored.
    pub(crate) fn was_quick(self) -> bool {
        self.was_quick
    }

    /// After one more run.
    pub(crate) fn counted(self) -> Self {
        Self { count: (self.count + 1).min(most(COUNT_BITS)), ..self }
    }

    /// After a run that was too quick, or was not.
    pub(crate) fn after(self, too_quick: bool) -> Self {
        Self { was_quick: too_quick, ..self }
    }
}

/// Bits of the parts of a word, from the lowest.
const SINCE_BITS: u32 = 24;
const HITS_BITS: u32 = 14;
/// The bit that tells that something was stored. Above it lie those of the key.
const KNOWN: u64 = 1 << (SINCE_BITS + HITS_BITS);
const TAG_BITS: u32 = 64 - SINCE_BITS - HITS_BITS - 1;
/// The unit of `since` in microseconds, as a power of two: 65 milliseconds. All units together are twelve days.
const UNIT: u32 = 16;

const fn most(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// One word, taken apart. A zeroed word knows of nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct History {
    /// A part of the key.
    tag: u64,
    /// An answer was stored.
    known: bool,
    /// Uses since then.
    hits: u64,
    /// When the uses were counted from.
    since: u64,
}

/// How the answers of a key were used so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Earlier {
    /// How often.
    pub hits: u32,
    /// Counted from then on, in microseconds.
    pub since: i64,
}

impl History {
    pub(crate) fn from_word(word: u64) -> Self {
        Self {
            since: word & most(SINCE_BITS),
            hits: word >> SINCE_BITS & most(HITS_BITS),
            known: word & KNOWN != 0,
            tag: word >> (u64::BITS - TAG_BITS),
        }
    }

    pub(crate) fn to_word(self) -> u64 {
        let known = if self.known { KNOWN } else { 0 };
        self.since | self.hits << SINCE_BITS | known | self.tag << (u64::BITS - TAG_BITS)
    }

    pub(crate) fn is_of(self, tag: u64) -> bool {
        self.known && self.tag == tag
    }

    /// What it tells of a key at a time in microseconds.
    pub(crate) fn earlier(self, tag: u64, now: i64) -> Earlier {
        if !self.is_of(tag) {
            return Earlier { hits: 0, since: now };
        }
        let age = to_units(now).wrapping_sub(self.since) & most(SINCE_BITS);
        Earlier { hits: self.hits as u32, since: now.saturating_sub((age << UNIT).cast_signed()) }
    }

    /// After an answer of a key was stored, in the unit of time `now`. What is known of the time before counts half.
    /// Another key leaves its word only if it was not used lately.
    pub(crate) fn after_store(self, tag: u64, now: u64) -> Self {
        if self.is_of(tag) {
            let age = now.wrapping_sub(self.since) & most(SINCE_BITS);
            let since = now.wrapping_sub(age / 2) & most(SINCE_BITS);
            return Self { hits: self.hits / 2, since, ..self };
        }
        if self.hits > 0 {
            return Self { hits: self.hits / 2, ..self };
        }
        Self { tag, known: true, hits: 0, since: now & most(SINCE_BITS) }
    }

    /// After an answer of a key has gone that was used so often.
    pub(crate) fn after_use(self, tag: u64, hits: u64) -> Self {
        if !self.is_of(tag) {
            return self;
        }
        Self { hits: self.hits.saturating_add(hits).min(most(HITS_BITS)), ..self }
    }
}

/// A time in microseconds, in the unit of a history.
pub(crate) fn to_units(now: i64) -> u64 {
    (now >> UNIT).cast_unsigned() & most(SINCE_BITS)
}

/// The part of a key that tells keys of one word apart.
pub(crate) fn tag(key: CacheKey) -> u64 {
    key.0.hi >> (u64::BITS - TAG_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOTHING: History = History { tag: 0, known: false, hits: 0, since: 0 };

    #[test]
    fn uses_survive_and_fade() {
        let used = NOTHING.after_store(7, 100).after_use(7, 40);
        assert_eq!((used.hits, used.since), (40, 100));
        let stored = used.after_store(7, 200);
        assert_eq!((stored.hits, stored.since), (20, 150), "as many in the same time");
        assert_eq!(stored.after_store(7, 250).hits, 10);
        let long_ago = NOTHING.after_store(7, most(SINCE_BITS)).after_store(7, 9);
        assert_eq!(9u64.wrapping_sub(long_ago.since) & most(SINCE_BITS), 5, "times wrap around");
    }

    #[test]
    fn a_word_goes_to_another_key_when_it_is_not_used_any_more() {
        let used = NOTHING.after_store(7, 1).after_use(7, 2);
        let once = used.after_store(8, 2);
        assert!(once.is_of(7) && once.hits == 1);
        let twice = once.after_store(8, 3).after_store(8, 4);
        assert!(twice.is_of(8) && !twice.is_of(7));
        assert_eq!(twice.after_use(7, 5), twice);
    }

    #[test]
    fn what_is_known_of_runs_is_of_one_key() {
        let key = |hi| CacheKey(crate::hash::Hash128 { hi, lo: 5 });
        let (one, other) = (key(7 << KEY_SHIFT), key(8 << KEY_SHIFT));
        let quick = Runs::of(0, one).counted().counted().after(true).to_word();
        assert_eq!((Runs::of(quick, one).count(), Runs::of(quick, one).was_quick()), (2, true));
        assert_eq!((Runs::of(quick, other).count(), Runs::of(quick, other).was_quick()), (0, false));
        assert_eq!(Runs::of(0, one).after(true).after(false).to_word(), 0);
    }

    proptest! {
        #[test]
        fn a_word_holds_all_its_parts(
            tag in 0..=most(TAG_BITS), known: bool, hits in 0..=most(HITS_BITS), since in 0..=most(SINCE_BITS)
        ) {
            let parts = History { tag, known, hits, since };
            prop_assert_eq!(History::from_word(parts.to_word()), parts);
        }

        #[test]
        fn every_step_stays_a_word(word: u64, tag in 0..=most(TAG_BITS), hits: u64, now in 0..=most(SINCE_BITS)) {
            let history = History::from_word(word);
            for next in [history.after_store(tag, now), history.after_use(tag, hits)] {
                prop_assert_eq!(History::from_word(next.to_word()), next);
            }
        }
    }
}
