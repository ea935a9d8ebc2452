//! The record of what is known of the runs of statements that share a place. Changed by anybody, without a lock: each
//! word is whole by itself. It holds a part of a hash, the number of runs and a time.

use crate::atomics::{AtomicU64, Ordering::Relaxed};

/// Bits of a word for the time: an hour and eleven minutes.
const MICROS_BITS: u32 = 32;
/// Bits of a word for the number of runs; above them lie the bits of the hash.
const RUNS_BITS: u32 = 12;
const TAG_SHIFT: u32 = MICROS_BITS + RUNS_BITS;
const MOST_MICROS: u64 = (1 << MICROS_BITS) - 1;
const MOST_RUNS: u64 = (1 << RUNS_BITS) - 1;
/// A new time counts for one in so many.
const WEIGHT: u64 = 4;
/// The same for a time that is shorter than the longest one.
const WEIGHT_OF_SHORTER: u64 = 8;

/// What is known of the runs of statements that share a place. Zeroed memory knows of none.
#[repr(C, align(32))]
pub(crate) struct SpeedLine {
    /// Of the runs that computed everything.
    pub(crate) plain: SpeedWord,
    /// Of the runs that combined fragments.
    pub(crate) combined: SpeedWord,
    /// How long a run that computed everything has lately taken at most. It comes down to what runs take, step by step.
    pub(crate) longest: SpeedWord,
}

impl SpeedLine {
    /// Returns true if a line can hold this.
    pub(crate) fn is_possible(&self) -> bool {
        [&self.plain, &self.combined, &self.longest].into_iter().all(SpeedWord::is_possible)
    }
}

#[cfg(test)]
impl SpeedWord {
    /// Makes it a word that cannot be.
    pub(crate) fn damage(&self) {
        self.0.store(1, Relaxed);
    }
}

/// The runs of one kind.
#[repr(transparent)]
pub(crate) struct SpeedWord(AtomicU64);

impl SpeedWord {
    /// Returns true if a word can be this: one that is somebody's has runs, and a time.
    pub(crate) fn is_possible(&self) -> bool {
        let word = self.0.load(Relaxed);
        let runs = Runs::from_word(word);
        word == 0 || (runs.runs > 0 && runs.micros > 0)
    }

    /// Notes one more run, which takes the word from others. The word holds the usual time.
    pub(crate) fn note(&self, alike: u64, micros: u64) {
        self.note_with(alike, micros, WEIGHT, WEIGHT);
    }

    /// The same for a word that holds the longest time.
    pub(crate) fn note_longest(&self, alike: u64, micros: u64) {
        self.note_with(alike, micros, 1, WEIGHT_OF_SHORTER);
    }

    fn note_with(&self, alike: u64, micros: u64, longer: u64, shorter: u64) {
        let next = |old: u64| Some(Runs::from_word(old).after(alike >> TAG_SHIFT, micros, longer, shorter).to_word());
        // Cannot fail: `next` always gives a word.
        let _ = self.0.fetch_update(Relaxed, Relaxed, next);
    }

    /// The number of runs and their usual or longest time; zeros if nothing is known of this hash.
    pub(crate) fn known(&self, alike: u64) -> (u32, u64) {
        let runs = Runs::from_word(self.0.load(Relaxed));
        if runs.tag == alike >> TAG_SHIFT { (runs.runs as u32, runs.micros) } else { (0, 0) }
    }
}

/// One word of a line, taken apart. A word without runs is nobody's.
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

    /// After one more run that took so long. It counts for one in `longer` if it took longer than those before, else
    /// for one in `shorter`.
    fn after(self, tag: u64, micros: u64, longer: u64, shorter: u64) -> Self {
        let micros = micros.clamp(1, MOST_MICROS);
        if self.tag != tag || self.runs == 0 {
            return Self { tag, runs: 1, micros };
        }
        // Rounded towards the new time, so that the usual time gets there.
        let step = |weight| micros.abs_diff(self.micros).div_ceil(weight);
        let micros = if micros > self.micros { self.micros + step(longer) } else { self.micros - step(shorter) };
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

    impl Runs {
        fn usually_after(self, tag: u64, micros: u64) -> Self {
            self.after(tag, micros, WEIGHT, WEIGHT)
        }
    }

    #[test]
    fn the_longest_time_comes_down_step_by_step() {
        let after = |known: Runs, micros| known.after(1, micros, 1, WEIGHT_OF_SHORTER);
        let known = [250, 330, 250].into_iter().fold(NOBODY, after);
        assert_eq!(known, Runs { tag: 1, runs: 3, micros: 320 });
        assert_eq!((0..100).fold(known, |known, _| after(known, 250)).micros, 250);
    }

    #[test]
    fn the_usual_time_gets_to_a_time_that_stays() {
        let mut up = NOBODY.usually_after(1, 10);
        let mut down = NOBODY.usually_after(1, 1_000_000);
        for _ in 0..100 {
            up = up.usually_after(1, 1_000_000);
            down = down.usually_after(1, 10);
        }
        assert_eq!((up.micros, down.micros), (1_000_000, 10));
    }

    #[test]
    fn one_slow_run_does_not_decide() {
        let usual = (0..20).fold(NOBODY, |known, _| known.usually_after(1, 1000));
        assert_eq!(usual.usually_after(1, 100_000).micros, 1000 + 99_000 / WEIGHT);
    }

    proptest! {
        #[test]
        fn a_word_holds_all_its_parts(tag in 0..1u64 << (64 - TAG_SHIFT), runs in 0..=MOST_RUNS, micros in 0..=MOST_MICROS) {
            let parts = Runs { tag, runs, micros };
            prop_assert_eq!(Runs::from_word(parts.to_word()), parts);
        }

        #[test]
        fn the_usual_time_stays_between_the_least_and_the_longest(times in prop::collection::vec(any::<u64>(), 1..50)) {
            let known = times.iter().fold(NOBODY, |known, micros| known.usually_after(7, *micros));
            let bounded = times.iter().map(|micros| (*micros).clamp(1, MOST_MICROS));
            prop_assert!(bounded.clone().min() <= Some(known.micros) && Some(known.micros) <= bounded.max());
            prop_assert_eq!(known.runs, times.len() as u64);
        }
    }
}
