//! How quick statements are that are taken to be alike: those of one form, or of one fingerprint of their texts. By
//! that it is decided what is looked up, waited for and combined of fragments. One line for each (`speed_line`),
//! changed by anybody, without a lock. Those that share a line replace each other there, word by word. What was
//! replaced is only new once more.

use crate::cache::layout::SPEED_LINES;
use crate::cache::memory::{Arena, Locks};
use crate::cache::speed_line::SpeedLine;
use crate::cache::store::Store;

/// What is known of runs that were not answered from the cache. A time of 0 is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Speed {
    /// How many there were, of both kinds. It goes back to half at some thousands, and starts again when the line was
    /// taken by others.
    pub executions: u32,
    /// How many of them combined fragments.
    pub combined_runs: u32,
    /// Usual time of the runs that computed everything, in microseconds.
    pub plain_micros: u64,
    /// How long one of them has lately taken at most. The longest run counts less with each shorter one.
    pub longest_micros: u64,
    /// Usual time of the runs that combined fragments, in microseconds.
    pub combined_micros: u64,
}

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Notes that a statement was executed to its end in `micros`: from fragments if `combined`.
    pub fn note_run(&self, alike: u64, micros: u64, combined: bool) {
        let line = self.speed_line(alike);
        if combined {
            line.combined.note(alike, micros);
        } else {
            line.plain.note(alike, micros);
            line.longest.note_longest(alike, micros);
        }
    }

    /// What is known of statements that are alike.
    #[must_use]
    pub fn speed(&self, alike: u64) -> Speed {
        let line = self.speed_line(alike);
        let (plain_runs, plain_micros) = line.plain.known(alike);
        let (combined_runs, combined_micros) = line.combined.known(alike);
        let (_, longest_micros) = line.longest.known(alike);
        Speed { executions: plain_runs + combined_runs, combined_runs, plain_micros, longest_micros, combined_micros }
    }

    /// The line of a hash, which tells hashes apart by their upper bits.
    pub(crate) fn speed_line(&self, alike: u64) -> &SpeedLine {
        &self.speed_lines()[alike as usize % SPEED_LINES]
    }
}
