//! Decides whether an answer is worth storing, apart from its speed (`quick_statements`), before and during its run:
//! some first runs give their rows about as fast as these can be stored (plain scans, whose answer saves little), and
//! are stored when the same is asked again. The rule for these is in core (`storing_time`), and so is what is known of
//! the runs of a key (`speeds`). Decides only what is stored, never an answer.

use std::rc::Rc;
use std::time::Duration;

use arrow_cache_core::{CacheKey, Ending, Reason, Speed, pays_at_once, storing_nanos};

use super::held_claims::Lead;
use super::outcome::Miss;
use crate::arrow::encode::BLOCK_ROWS;
use crate::pg::server;
use crate::query::statement_terms::StatementTerms;
use crate::settings;
use crate::shmem::{self, SharedStore};

/// Notes a run of a key: how long computing its answer takes, in microseconds.
pub fn note_run(store: &SharedStore, key: CacheKey, micros: u64) {
    store.note_run(key.0.lo, micros, false);
}

/// What is known of the runs of a key.
fn runs_of(store: &SharedStore, key: CacheKey) -> Speed {
    store.speed(key.0.lo)
}

/// Why the answer under this key will not be stored, for other reasons than its plan. How often it will have to be
/// executed is no such reason for a statement that is `only_asked` about.
pub fn refusal(store: &SharedStore, key: CacheKey, terms: StatementTerms, only_asked: bool) -> Option<Reason> {
    if !settings::populate() {
        return Some(Reason::PopulateOff);
    }
    if terms.insisted {
        return None;
    }
    let Speed { executions, plain_micros, .. } = runs_of(store, key);
    if executions + 1 < terms.min_runs() && !only_asked {
        return Some(Reason::TooFewRuns);
    }
    let was_too_quick = executions > 0 && u128::from(plain_micros) < settings::min_execution_time().as_micros();
    was_too_quick.then_some(Reason::TooQuick)
}

/// Bytes of rows after which a run is judged for the first time; then at the end of each batch. A smaller answer is
/// stored.
const FIRST_BYTES: usize = 64 * 1024;

/// The judgement of one run that is being stored.
pub struct Watch {
    key: CacheKey,
    /// Who waits for the answer goes on at once when it is let go.
    lead: Rc<Lead>,
    /// The run has been judged.
    is_judged: bool,
    /// How long this process had had a processor before the run, in microseconds.
    processed: i64,
}

impl Watch {
    /// The watch over the run of a miss. `None` if it is stored whatever it takes: it was asked before, as far as is
    /// remembered, or somebody insists.
    pub fn over(miss: &Miss) -> Option<Self> {
        if miss.statement.as_ref().is_none_or(|missed| missed.combined)
            || miss.terms.insisted
            || settings::min_execution_time().is_zero()
            || runs_of(&shmem::store()?, miss.key).executions > 0
        {
            return None;
        }
        Some(Self { key: miss.key, lead: Rc::clone(&miss.lead), is_judged: false, processed: server::clock() })
    }

    /// Returns true if it is time to judge the run for the first time, whose batch has so many rows and bytes.
    #[inline]
    pub fn is_due(&self, rows: usize, bytes: usize) -> bool {
        !self.is_judged && rows.is_multiple_of(BLOCK_ROWS) && bytes >= FIRST_BYTES
    }

    /// Returns true if the run, which began so long ago, is better not stored before the same is asked again. So many
    /// values were turned into columns, of so many bytes. It is noted then, and whoever waits goes on.
    pub fn lets_go(&mut self, values: u64, bytes: u64, elapsed: Duration) -> bool {
        self.is_judged = true;
        // Neither other processes nor a client that reads slowly make it look like one that computes.
        let processed = server::clock().saturating_sub(self.processed).cast_unsigned();
        if pays_at_once(storing_nanos(values, bytes), processed.saturating_mul(1000)) {
            return false;
        }
        if let Some(store) = shmem::store() {
            note_run(&store, self.key, u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX));
        }
        self.lead.end(Ending::Open);
        true
    }
}
