//! A word that tells of the runs of the hashes that share a place: a part of a hash, the number of its runs and their
//! usual time. Changed by anybody, without a lock: it is whole by itself.

use crate::atomics::{AtomicU64, Ordering::Relaxed};

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

impl SpeedWord {
    /// Notes one more run, which takes the word from others.
    pub(crate) fn note(&self, hash: u64, micros: u64) {
        let next = |old: u64| Some(Runs::from_word(old).after(hash >> TAG_SHIFT, micros).to_word());
        // Cannot fail: `next` always gives a word.
        let _ = self.0.fetch_update(Relaxed, Relaxed, next);
    }

    /// The number of runs and their usual time; zeros if nothing is known of this hash.
    pub(crate) fn known(&self, hash: u64) -> (u32, u64) {
        let runs = Runs::from_word(self.0.load(Relaxed));
        if runs.tag == hash >> TAG_SHIFT { (runs.runs as u32, runs.micros) } else { (0, 0) }
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
