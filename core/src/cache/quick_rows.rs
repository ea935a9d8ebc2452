//! Which first runs give their rows about as fast as these can be stored, so that storing does not pay before the same is asked again. The
//! rule is pure; what is known of a form is the third word of its line (`form_line`), changed by anybody, without a lock.

use crate::atomics::Ordering::Relaxed;
use crate::cache::history::{History, tag};
use crate::cache::key::CacheKey;
use crate::cache::memory::{Arena, Locks};
use crate::cache::store::Store;

/// Storing may take one part in so many of the time of a first run.
const LEAST_RUN: u64 = 20;
/// A sample counts for at most so many times the least one: whatever else has happened meanwhile was not storing.
const MOST_SPREAD: u64 = 4;
/// One run in so many of a form with quick rows is measured again.
const MEASURED_EVERY: u32 = 32;

/// Does it pay to store at once what takes `storing` nanoseconds to store, of the `elapsed` ones of its run?
#[must_use]
pub fn pays_at_once(storing: u64, elapsed: u64) -> bool {
    storing.saturating_mul(LEAST_RUN) <= elapsed
}

/// What storing takes, in nanoseconds: estimated from samples.
#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    least: u64,
    sum: u64,
    count: u64,
}

impl Samples {
    fn add(&mut self, nanos: u64) {
        self.least = if self.count == 0 { nanos } else { self.least.min(nanos) };
        self.sum = self.sum.saturating_add(nanos);
        self.count += 1;
    }

    /// The usual sample; 0 if there is none. One that was disturbed does not decide.
    fn usual(&self) -> u64 {
        let mean = self.sum.checked_div(self.count).unwrap_or(0);
        mean.min(self.least.saturating_mul(MOST_SPREAD))
    }
}

/// What storing the rows of one run takes, as far as it was sampled.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoringTime {
    clock: Samples,
    rows: Samples,
    blocks: Samples,
    batches: u64,
}

impl StoringTime {
    /// Reading the clock twice has taken so long: as much of each sample is not storing.
    pub fn note_clock(&mut self, nanos: u64) {
        self.clock.add(nanos);
    }

    /// Appending one row has taken so long.
    pub fn note_row(&mut self, nanos: u64) {
        self.rows.add(nanos);
    }

    /// Appending a row that had a block turned into columns has taken so long.
    pub fn note_block(&mut self, nanos: u64) {
        self.blocks.add(nanos);
    }

    /// Storing a batch has taken so long. These are added up.
    pub fn note_batch(&mut self, nanos: u64) {
        self.batches = self.batches.saturating_add(nanos);
    }

    /// What storing `rows` rows in blocks of `block_rows` has taken by now, in nanoseconds.
    #[must_use]
    pub fn of(&self, rows: u64, block_rows: u64) -> u64 {
        let clock = self.clock.least;
        let row = self.rows.usual().saturating_sub(clock);
        let block = self.blocks.usual().saturating_sub(clock).saturating_sub(row);
        let blocks = rows / block_rows.max(1);
        row.saturating_mul(rows).saturating_add(block.saturating_mul(blocks)).saturating_add(self.batches)
    }
}

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Notes that a run of a form gave its rows about as fast as they can be stored; storing one takes so many nanoseconds.
    pub fn note_quick_rows(&self, form: u64, nanos_per_row: u64) {
        self.form_line(form).quick_rows.note(form, nanos_per_row);
    }

    /// Notes that a run of a form has computed longer.
    pub fn forget_quick_rows(&self, form: u64) {
        self.form_line(form).quick_rows.forget(form);
    }

    /// What storing a row of a form takes in nanoseconds, if the last runs of the form gave their rows about as fast, and this one need not be
    /// measured again.
    #[must_use]
    pub fn quick_rows(&self, form: u64) -> Option<u64> {
        let (runs, nanos) = self.form_line(form).quick_rows.known(form);
        (runs > 0 && runs % MEASURED_EVERY != 0).then_some(nanos)
    }

    /// Was the question with this key asked before, as far as that is remembered: was its answer stored once, or a run of it counted? Keys that
    /// share a word may be taken for each other.
    #[must_use]
    pub fn was_asked(&self, key: CacheKey) -> bool {
        self.has_run(key) || History::from_word(self.history(key).load(Relaxed)).is_of(tag(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of a run whose rows take 100 ns each, and whose blocks of 64 rows take 6400 ns more, by a clock that takes 30 ns.
    fn sampled() -> StoringTime {
        let mut time = StoringTime::default();
        for _ in 0..8 {
            time.note_clock(30);
            time.note_row(130);
            time.note_block(6530);
        }
        time
    }

    #[test]
    fn what_was_sampled_stands_for_all_rows() {
        let mut time = sampled();
        assert_eq!(time.of(640, 64), 640 * 100 + 10 * 6400);
        time.note_batch(1000);
        time.note_batch(500);
        assert_eq!(time.of(640, 64), 640 * 100 + 10 * 6400 + 1500);
        assert_eq!(StoringTime::default().of(640, 64), 0, "without samples, whatever it is pays");
    }

    #[test]
    fn one_disturbed_sample_does_not_decide() {
        let mut time = sampled();
        time.note_row(1_000_000_000);
        assert!(time.of(64, 64) <= 64 * MOST_SPREAD * 130 + 6400);
        time.note_clock(1_000_000_000);
        assert!(time.of(64, 64) > 0);
    }

    #[test]
    fn a_run_that_computes_pays_and_one_that_only_reads_does_not() {
        let storing = sampled().of(640, 64);
        assert!(!pays_at_once(storing, storing * 4), "a plain scan");
        assert!(!pays_at_once(storing, storing * LEAST_RUN - 1));
        assert!(pays_at_once(storing, storing * LEAST_RUN));
        assert!(pays_at_once(0, 0));
        assert!(!pays_at_once(u64::MAX, u64::MAX - 1));
    }
}
