//! How long queries of one form usually run when they are not answered from the cache: by that it is decided whether computing them from
//! fragments pays. One line per form, changed by anybody, without a lock. Forms that share a line replace each other there, word by word. A
//! form that was replaced is only new once more.

use crate::cache::form_line::FormLine;
use crate::cache::layout::FORM_PLACES;
use crate::cache::memory::{Arena, Locks};
use crate::cache::store::Store;

/// What is known of the runs of a form that were not answered from the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FormTimes {
    /// How many there were, of both kinds. It goes back to half at some thousands, and starts again when the form was replaced.
    pub executions: u32,
    /// How many of them combined fragments.
    pub combined_runs: u32,
    /// Usual time of the runs that computed everything, in microseconds; 0 = unknown.
    pub plain_micros: u64,
    /// Usual time of the runs that combined fragments, in microseconds; 0 = unknown.
    pub combined_micros: u64,
}

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Notes that a query of a form was executed to its end in `micros`: from fragments if `combined`.
    pub fn note_form_time(&self, form: u64, micros: u64, combined: bool) {
        let line = self.form_line(form);
        let word = if combined { &line.combined } else { &line.plain };
        word.note(form, micros);
        if !combined {
            line.longest.note_longest(form, micros);
        }
    }

    /// How long a run of a form that computed everything has lately taken at most, in microseconds; 0 = unknown. The longest run counts less with
    /// each shorter one.
    #[must_use]
    pub fn longest_form_time(&self, form: u64) -> u64 {
        self.form_line(form).longest.known(form).1
    }

    /// What is known of a form.
    #[must_use]
    pub fn form_times(&self, form: u64) -> FormTimes {
        let line = self.form_line(form);
        let (plain_runs, plain_micros) = line.plain.known(form);
        let (combined_runs, combined_micros) = line.combined.known(form);
        FormTimes { executions: plain_runs + combined_runs, combined_runs, plain_micros, combined_micros }
    }

    /// The line of a form. The line tells forms apart by the upper bits of their hashes.
    pub(crate) fn form_line(&self, form: u64) -> &FormLine {
        &self.form_lines()[form as usize % FORM_PLACES]
    }
}
