//! How quick runs are that are alike, and how many there were: those of one form, of one fingerprint of texts, or of
//! one key. By that it is decided what is looked up, stored, waited for and combined of fragments. A word for each,
//! changed by anybody, without a lock (`speed_word`). Hashes that share a place take it from each other. What was
//! forgotten is only new once more.

use crate::cache::memory::{Arena, Locks};
use crate::cache::speed_word::SpeedWord;
use crate::cache::store::Store;

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
        self.speed_words_of(alike)[usize::from(combined)].note(alike, micros);
    }

    /// What is known of what has this hash.
    #[must_use]
    pub fn speed(&self, alike: u64) -> Speed {
        let [(plain_runs, plain_micros), (combined_runs, combined_micros)] =
            self.speed_words_of(alike).each_ref().map(|word| word.known(alike));
        Speed { executions: plain_runs + combined_runs, combined_runs, plain_micros, combined_micros }
    }

    /// The words of a hash, for the two kinds of runs. They tell hashes apart by their upper bits.
    fn speed_words_of(&self, hash: u64) -> &[SpeedWord; 2] {
        let (pairs, _) = self.speed_words().as_chunks::<2>();
        // The number of words is a power of two.
        &pairs[hash as usize & (pairs.len() - 1)]
    }
}
