//! The record of how keys that share a place were executed without an answer. Changed by anybody, without a lock: the
//! word is whole by itself. A key takes it from another.

use crate::atomics::{AtomicU64, Ordering::Relaxed};
use crate::cache::key::CacheKey;

/// What is known of the keys that share a place. Zeroed memory knows of none.
#[repr(C)]
pub(crate) struct KeyLine {
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
/// Most runs that are counted.
const MOST_RUNS: u64 = QUICK - 1;

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
        Self { tag: word >> KEY_SHIFT, was_quick: word & QUICK != 0, count: word & MOST_RUNS }
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
        Self { count: (self.count + 1).min(MOST_RUNS), ..self }
    }

    /// After a run that was too quick, or was not.
    pub(crate) fn after(self, too_quick: bool) -> Self {
        Self { was_quick: too_quick, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_runs_is_of_one_key() {
        let key = |hi| CacheKey(crate::hash::Hash128 { hi, lo: 5 });
        let (one, other) = (key(7 << KEY_SHIFT), key(8 << KEY_SHIFT));
        let quick = Runs::of(0, one).counted().counted().after(true).to_word();
        assert_eq!((Runs::of(quick, one).count(), Runs::of(quick, one).was_quick()), (2, true));
        assert_eq!((Runs::of(quick, other).count(), Runs::of(quick, other).was_quick()), (0, false));
        assert_eq!(Runs::of(0, one).after(true).after(false).to_word(), 0);
    }
}
