//! Rows on their way into the store that are given one by one, of a part that was computed together with others.
//! Belongs to one run of this backend; dropped unfinished, perhaps in the middle of error recovery, it is left to the
//! next store operation.

use std::time::Duration;

use arrow_cache_core::Reason;

use super::fill::ResultFill;
use super::outcome;
use crate::lookup::Miss;
use crate::pg::row::Row;
use crate::pg::tee::RowSink;
use crate::shmem;

/// A part that is being stored.
pub struct PartFill {
    miss: Box<Miss>,
    fill: ResultFill,
}

impl PartFill {
    /// Begins to store a part; `None` if there is no memory for that.
    pub fn begin(miss: Box<Miss>) -> Option<Self> {
        let fill = ResultFill::new(&miss).map_err(|reason| outcome::note_refusal(&miss, reason.into())).ok()?;
        Some(Self { miss, fill })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// The part cannot be stored.
    pub fn add(&mut self, row: Row<'_>) -> Result<(), Reason> {
        self.fill.append(row)
    }

    /// Publishes the part, whose share of the time was `elapsed`, if nothing has changed since the start.
    pub fn finish(self, elapsed: Duration) {
        if let (Some(pin), Some(store)) = (outcome::publish(&self.miss, self.fill, false, elapsed), shmem::store()) {
            store.unpin(pin);
        }
    }

    /// Stores nothing after all.
    pub fn give_up(self, reason: Reason) {
        self.fill.abandon();
        outcome::note_refusal(&self.miss, reason);
    }
}
