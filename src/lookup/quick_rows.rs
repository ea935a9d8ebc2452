//! Which first runs are not stored because they give their rows about as fast as these can be stored: plain scans, whose answer saves little.
//! The same question is stored when it is asked again. The rule is in core (`quick_rows`); what is known of forms and keys lies in shared
//! memory. It decides only what is stored, never an answer.

use std::rc::Rc;
use std::time::{Duration, Instant};

use arrow_cache_core::{CacheKey, Ending, StoringTime, pays_at_once};

use super::held_claims::Lead;
use super::outcome::Miss;
use crate::arrow::encode::BLOCK_ROWS;
use crate::query::hashes::FormId;
use crate::query::statement_terms::StatementTerms;
use crate::settings;
use crate::shmem::{self, SharedStore};

/// One row in so many is timed, and the first one of each block, until the run has been judged for the first time.
const TIMED_EVERY: usize = 8;
/// Bytes of rows after which a run is judged for the first time; then at the end of each batch. A smaller answer is stored.
const FIRST_BYTES: usize = 64 * 1024;

/// May the answer of this question wait until it is asked again? It was not asked before, as far as is remembered, and nobody insists.
fn may_wait(store: &SharedStore, key: CacheKey, terms: StatementTerms) -> bool {
    !terms.insisted
        && !settings::min_execution_time().is_zero()
        && !settings::debug_serve_fills()
        && !store.was_asked(key)
}

/// Is the run that starts now not stored, by what is known of its form? Counts the run if so.
pub fn skips(store: &SharedStore, key: CacheKey, form: FormId, terms: StatementTerms) -> bool {
    let skips = store.quick_rows(form.0).is_some() && may_wait(store, key, terms);
    if skips {
        store.count_run(key);
    }
    skips
}

/// Notes how a run has ended that `skips` was said of: it gave so many rows.
pub fn note_skipped(miss: &Miss, rows: u64, elapsed: Duration) {
    let Some(store) = shmem::store().filter(|_| !miss.combined) else { return };
    if let Some(nanos_per_row) = store.quick_rows(miss.form.0) {
        if pays_at_once(nanos_per_row.saturating_mul(rows), nanos(elapsed)) {
            store.forget_quick_rows(miss.form.0);
        } else {
            store.note_quick_rows(miss.form.0, nanos_per_row);
        }
    }
}

/// The judgement of one run that is being stored, by what storing takes beside the whole run.
pub struct Watch {
    key: CacheKey,
    form: FormId,
    /// Who waits for the answer goes on at once when it is let go.
    lead: Rc<Lead>,
    time: StoringTime,
    /// The run has not been judged yet.
    samples: bool,
}

impl Watch {
    /// The watch over the run of a miss; `None` if it is stored whatever it takes.
    pub fn over(miss: &Miss) -> Option<Self> {
        if miss.is_part || miss.combined {
            return None;
        }
        let store = shmem::store()?;
        may_wait(&store, miss.key, miss.terms).then(|| Self {
            key: miss.key,
            form: miss.form,
            lead: Rc::clone(&miss.lead),
            time: StoringTime::default(),
            samples: true,
        })
    }

    /// Is the row to be timed that is appended to a batch of so many rows?
    #[inline]
    pub fn times(&self, rows: usize) -> bool {
        self.samples && (rows.is_multiple_of(BLOCK_ROWS) || rows % TIMED_EVERY == TIMED_EVERY - 1)
    }

    /// Notes what appending a row has taken to a batch that had so many rows.
    pub fn note_row(&mut self, rows: usize, taken: Duration) {
        let clock = Instant::now();
        self.time.note_clock(nanos(clock.elapsed()));
        if !rows.is_multiple_of(BLOCK_ROWS) {
            self.time.note_row(nanos(taken));
        } else if rows > 0 {
            self.time.note_block(nanos(taken));
        }
    }

    /// Notes what storing a batch has taken.
    pub fn note_batch(&mut self, taken: Duration) {
        self.time.note_batch(nanos(taken));
    }

    /// Is it time to judge the run, whose batch has so many bytes?
    pub fn is_due(&self, bytes: usize) -> bool {
        self.samples && bytes >= FIRST_BYTES
    }

    /// Is the run, which began so long ago and has given so many rows, better not stored before the same is asked again? If so, that is noted,
    /// and whoever waits goes on.
    pub fn lets_go(&mut self, rows: u64, elapsed: Duration) -> bool {
        let is_first = std::mem::take(&mut self.samples);
        let storing = self.time.of(rows, BLOCK_ROWS as u64);
        let pays = pays_at_once(storing, nanos(elapsed));
        let Some(store) = shmem::store() else { return false };
        if pays {
            if is_first {
                store.forget_quick_rows(self.form.0);
            }
            return false;
        }
        store.note_quick_rows(self.form.0, storing / rows.max(1));
        store.count_run(self.key);
        self.lead.end(Ending::Open);
        true
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
