//! How long statements that belong together have lately run at most, as far as new sessions have run them: by that a
//! session knows which are too quick to be looked up, before it has run any. One word per hash, changed by anybody,
//! without a lock. Statements that share a word replace each other there. A statement that was replaced is only new
//! once more.

use crate::cache::form_line::FormWord;
use crate::cache::layout::RUN_TIMES;
use crate::cache::memory::{Arena, Locks};
use crate::cache::store::Store;

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Notes that a statement with this hash was executed to its end in `micros`.
    pub fn note_run_time(&self, statement: u64, micros: u64) {
        self.run_time(statement).note_longest(statement, micros);
    }

    /// How many runs were noted of statements with this hash, and how long they have lately taken at most, in
    /// microseconds; zeros if none was. The longest run counts less with each shorter one.
    #[must_use]
    pub fn longest_run_time(&self, statement: u64) -> (u32, u64) {
        self.run_time(statement).known(statement)
    }

    /// The word of a hash, which tells hashes apart by their upper bits.
    fn run_time(&self, statement: u64) -> &FormWord {
        &self.run_times()[statement as usize % RUN_TIMES]
    }
}
