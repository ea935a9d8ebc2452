//! Which first runs are not stored because they give their rows about as fast as these can be stored: plain scans,
//! whose answer saves little. The same question is stored when it is asked again. The rule is in core (`storing_time`),
//! and so is what is known of keys (`key_records`). It decides only what is stored, never an answer.

use std::rc::Rc;
use std::time::Duration;

use arrow_cache_core::{CacheKey, Ending, pays_at_once, storing_nanos};

use super::held_claims::Lead;
use super::outcome::Miss;
use crate::arrow::encode::BLOCK_ROWS;
use crate::{settings, shmem};

/// Bytes of rows after which a run is judged for the first time; then at the end of each batch. A smaller answer is stored.
const FIRST_BYTES: usize = 64 * 1024;

/// The judgement of one run that is being stored.
pub struct Watch {
    key: CacheKey,
    /// Who waits for the answer goes on at once when it is let go.
    lead: Rc<Lead>,
    /// The run has been judged.
    is_judged: bool,
}

impl Watch {
    /// The watch over the run of a miss. `None` if it is stored whatever it takes: it was asked before, as far as is
    /// remembered, or somebody insists.
    pub fn over(miss: &Miss) -> Option<Self> {
        if miss.is_part
            || miss.combined
            || miss.terms.insisted
            || settings::min_execution_time().is_zero()
            || settings::debug_serve_fills()
            || shmem::store()?.was_asked(miss.key)
        {
            return None;
        }
        Some(Self { key: miss.key, lead: Rc::clone(&miss.lead), is_judged: false })
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
        let elapsed = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        if pays_at_once(storing_nanos(values, bytes), elapsed) {
            return false;
        }
        if let Some(store) = shmem::store() {
            store.count_run(self.key);
        }
        self.lead.end(Ending::Open);
        true
    }
}
