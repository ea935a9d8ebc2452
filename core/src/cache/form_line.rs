//! The record of what is known of the runs of forms that share a place. Changed by anybody, without a lock: each word is whole by itself. It
//! holds a part of the form's hash, the number of runs and a usual time.

use crate::atomics::{AtomicU64, Ordering::Relaxed};

/// Bits of a word for the time: in microseconds an hour and eleven minutes, in nanoseconds four seconds.
const MICROS_BITS: u32 = 32;
/// Bits of a word for the number of runs; above them lie the bits of the form.
const RUNS_BITS: u32 = 12;
const TAG_SHIFT: u32 = MICROS_BITS + RUNS_BITS;
const MOST_MICROS: u64 = (1 << MICROS_BITS) - 1;
const MOST_RUNS: u64 = (1 << RUNS_BITS) - 1;
/// A new time counts for one in so many.
const WEIGHT: u64 = 4;

/// What is known of the runs of forms that share a place. Zeroed memory knows of none.
#[repr(C, align(32))]
pub(crate) struct FormLine {
    /// Of the runs that computed everything.
    pub(crate) plain: FormWord,
    /// Of the runs that combined fragments.
    pub(crate) combined: FormWord,
    /// Of the runs that gave their rows about as fast as they can be stored (`quick_rows`): what storing a row takes, in nanoseconds.
    pub(crate) quick_rows: FormWord,
}

impl FormLine {
    /// Can a line hold this? A word of a form has runs, and a time.
    pub(crate) fn is_possible(&self) -> bool {
        [&self.plain, &self.combined, &self.quick_rows].into_iter().all(|word| {
            let word = word.0.load(Relaxed);
            let runs = Runs::from_word(word);
            word == 0 || (runs.runs > 0 && runs.micros > 0)
        })
    }
}

#[cfg(test)]
impl FormWord {
    /// Makes it a word that cannot be.
    pub(crate) fn damage(&self) {
        self.0.store(1, Relaxed);
    }
}

/// The runs of one kind.
#[repr(transparent)]
pub(crate) struct FormWord(AtomicU64);

impl FormWord {
    /// Notes one more run of a form, which takes the place of another form.
    pub(crate) fn note(&self, form: u64, micros: u64) {
        let next = |old: u64| Some(Runs::from_word(old).after(form >> TAG_SHIFT, micros).to_word());
        // Cannot fail: `next` always gives a word.
        let _ = self.0.fetch_update(Relaxed, Relaxed, next);
    }

    /// Knows nothing of a form any more.
    pub(crate) fn forget(&self, form: u64) {
        let next = |old: u64| (Runs::from_word(old).tag == form >> TAG_SHIFT).then_some(0);
        // Nothing is to be forgotten if another form has the word.
        let _ = self.0.fetch_update(Relaxed, Relaxed, next);
    }

    /// The number of runs of a form and their usual time in microseconds; zeros if nothing is known of it.
    pub(crate) fn known(&self, form: u64) -> (u32, u64) {
        let runs = Runs::from_word(self.0.load(Relaxed));
        if runs.tag == form >> TAG_SHIFT { (runs.runs as u32, runs.micros) } else { (0, 0) }
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

    /// After one more run of a form that took so long.
    fn after(self, tag: u64, micros: u64) -> Self {
        let micros = micros.clamp(1, MOST_MICROS);
        if self.tag != tag || self.runs == 0 {
            return Self { tag, runs: 1, micros };
        }
        // Rounded towards the new time, so that the usual time gets there.
        let step = micros.abs_diff(self.micros).div_ceil(WEIGHT);
        let micros = if micros > self.micros { self.micros + step } else { self.micros - step };
        // A count that stood still would say nothing of how often a form runs.
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
