//! How quick runs are that are alike, and how many there were: those of one form, of one fingerprint of texts, or of one
//! key. By that it is decided what is looked up, stored, waited for and combined of fragments. A word for each, changed
//! by anybody, without a lock: each is whole by itself. Hashes that share a place take it from each other. What was
//! forgotten is only new once more.

use crate::atomics::{AtomicU64, Ordering::Relaxed};
use crate::cache::memory::{Arena, Locks};
use crate::cache::store::Store;

/// Bits of a word for the time: an hour and eleven minutes.
const MICROS_BITS: u32 = 32;
/// Bits of a word for the number of runs; above them lie bits of the hash.
const RUNS_BITS: u32 = 16;
const TAG_SHIFT: u32 = MICROS_BITS + RUNS_BITS;
const MOST_MICROS: u64 = (1 << MICROS_BITS) - 1;
const MOST_RUNS: u64 = (1 << RUNS_BITS) - 1;
/// A new time counts for one in so many.
const WEIGHT: u64 = 4;

/// What is known of the runs of the hashes that share a place. Zeroed memory knows of none.
#[repr(transparent)]
pub(crate) struct SpeedWord(AtomicU64);

/// What is known of runs that were not answered from the cache. A time of 0 is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Speed {
    /// How many there were, of both kinds. It goes back to half at some ten thousands, and starts again when the place
    /// was taken by others.
    pub executions: u32,
    /// How many of them combined fragments.
    pub combined_runs: u32,
    /// Usual time of the runs that computed everything, in microseconds.
    pub plain_micros: u64,
    /// Usual time of the runs that combined fragments, in microseconds.
    pub combined_micros: u64,
}

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Notes that what has this hash was executed to its end in `micros`: from fragments if `combined`.
    pub fn note_run(&self, alike: u64, micros: u64, combined: bool) {
        let hash = if combined { !alike } else { alike };
        let next = |old: u64| Some(Runs::from_word(old).after(hash >> TAG_SHIFT, micros).to_word());
        // Cannot fail: `next` always gives a word.
        let _ = self.speed_word(hash).0.fetch_update(Relaxed, Relaxed, next);
    }

    /// What is known of what has this hash.
    #[must_use]
    pub fn speed(&self, alike: u64) -> Speed {
        let (plain_runs, plain_micros) = self.known(alike);
        let (combined_runs, combined_micros) = self.known(!alike);
        Speed { executions: plain_runs + combined_runs, combined_runs, plain_micros, combined_micros }
    }

    /// The number of runs and their usual time; zeros if nothing is known of this hash.
    fn known(&self, hash: u64) -> (u32, u64) {
        let runs = Runs::from_word(self.speed_word(hash).0.load(Relaxed));
        if runs.tag == hash >> TAG_SHIFT { (runs.runs as u32, runs.micros) } else { (0, 0) }
    }

    /// The word of a hash, which tells hashes apart by their upper bits.
    fn speed_word(&self, hash: u64) -> &SpeedWord {
        let words = self.speed_words();
        // The number of words is a power of two.
        &words[hash as usize & (words.len() - 1)]
    }
}

/// A word, taken apart. One without runs is nobody's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Runs {
    tag: u64,
    runs: u64,
    micros: u64,
}

impl Runs {
    fn from_word(word: u64) -> Self {
        Self { tag: word >> TAG_SHIFT, runs: word >> MICROS_BITS & MOST_RUNS, micros: word & MOST_MICROS }
    }

    fn to_word(self) -> u64 {
        self.tag << TAG_SHIFT | self.runs << MICROS_BITS | self.micros
    }

    /// After one more run that took so long.
    fn after(self, tag: u64, micros: u64) -> Self {
        let micros = micros.clamp(1, MOST_MICROS);
        if self.tag != tag || self.runs == 0 {
            return Self { tag, runs: 1, micros };
        }
        // Rounded towards the new time, so that the usual time gets there.
        let step = micros.abs_diff(self.micros).div_ceil(WEIGHT);
        let micros = if micros > self.micros { self.micros + step } else { self.micros - step };
        // A count that stood still would say nothing of how often there are runs.
        let runs = if self.runs == MOST_RUNS { MOST_RUNS / 2 } else { self.runs + 1 };
        Self { tag, runs, micros }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOBODY: Runs = Runs { tag: 0, runs: 0, micros: 0 };

    #[test]
    fn the_usual_time_gets_to_a_time_that_stays() {
        let mut up = NOBODY.after(1, 10);
        let mut down = NOBODY.after(1, 1_000_000);
        for _ in 0..100 {
            up = up.after(1, 1_000_000);
            down = down.after(1, 10);
        }
        assert_eq!((up.micros, down.micros), (1_000_000, 10));
    }

    #[test]
    fn one_slow_run_does_not_decide() {
        let usual = (0..20).fold(NOBODY, |known, _| known.after(1, 1000));
        assert_eq!(usual.after(1, 100_000).micros, 1000 + 99_000 / WEIGHT);
    }

    proptest! {
        #[test]
        fn a_word_holds_all_its_parts(tag in 0..1u64 << (64 - TAG_SHIFT), runs in 0..=MOST_RUNS, micros in 0..=MOST_MICROS) {
            let parts = Runs { tag, runs, micros };
            prop_assert_eq!(Runs::from_word(parts.to_word()), parts);
        }

        #[test]
        fn the_usual_time_stays_between_the_least_and_the_longest(times in prop::collection::vec(any::<u64>(), 1..50)) {
            let known = times.iter().fold(NOBODY, |known, micros| known.after(7, *micros));
            let bounded = times.iter().map(|micros| (*micros).clamp(1, MOST_MICROS));
            prop_assert!(bounded.clone().min() <= Some(known.micros) && Some(known.micros) <= bounded.max());
            prop_assert_eq!(known.runs, times.len() as u64);
        }
    }
}
