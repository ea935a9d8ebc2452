//! The result of an export on its way into the store: the export encodes its rows, and the batches that it sends are
//! stored as well. Belongs to one export of this backend.

use std::time::Duration;

use arrow_cache_core::{Ending, Reason};

use super::fill::ResultFill;
use super::{outcome, probed_keys, unread};
use crate::lookup::Miss;
use crate::pg::query_desc::QueryDesc;
use crate::shmem;

/// An export that the cache has no answer to. When it is dropped unfinished, perhaps in the middle of error recovery,
/// what it has stored is left to the next store operation.
pub struct ExportFill {
    miss: Box<Miss>,
    fill: Option<ResultFill>,
}

impl ExportFill {
    /// Begins to store the answer of a query that has just been started, unless it is known already that it will not be
    /// stored.
    pub fn begin(query: QueryDesc<'_>, miss: Box<Miss>) -> Self {
        let mut begun = Self { miss, fill: None };
        if begun.miss.guarantees.observes {
            // Its runs are not those of a query on the list, below which queries are looked at.
            begun.miss.refused = Some(Reason::UserDefinedFunction);
            outcome::note_refusal(&begun.miss, Reason::UserDefinedFunction);
        }
        if begun.miss.refused.is_none() {
            match ResultFill::new(&begun.miss) {
                Ok(fill) => {
                    begun.fill = Some(fill);
                    probed_keys::begin(query, &begun.miss.guarantees.probed);
                }
                Err(reason) => outcome::note_refusal(&begun.miss, reason.into()),
            }
        }
        begun
    }

    /// Stores one batch.
    pub fn add(&mut self, chunk: &[u8], rows: usize) {
        if let Some(fill) = &mut self.fill
            && let Err(reason) = fill.add_chunk(chunk, rows)
        {
            self.give_up(reason);
        }
    }

    /// The export pauses, and nobody knows for how long: those who wait for its answer go on.
    pub fn pause(&self) {
        self.miss.lead.end(Ending::Open);
    }

    /// Publishes the answer of `query`, which has been read to its end in `elapsed`, if it is worth storing and nothing
    /// has changed since the start.
    pub fn finish(&mut self, query: QueryDesc<'_>, elapsed: Duration) {
        outcome::note_form_time(&self.miss, elapsed);
        if !matches!(self.miss.refused, None | Some(Reason::TooQuick)) {
            return;
        }
        let too_quick = outcome::remember_speed(&self.miss, elapsed);
        if self.fill.is_some() {
            match probed_keys::rest_on_them(&mut self.miss, query) {
                Ok(()) => unread::leave_out(&mut self.miss, query),
                Err(reason) => self.give_up(reason),
            }
        }
        if let Some(fill) = self.fill.take()
            && let Some(pin) = outcome::publish(&self.miss, fill, too_quick, elapsed)
            && let Some(store) = shmem::store()
        {
            store.unpin(pin);
            outcome::note_stored(&self.miss);
        }
    }

    /// Stores nothing after all.
    pub fn give_up(&mut self, reason: Reason) {
        if let Some(fill) = self.fill.take() {
            fill.abandon();
            outcome::note_refusal(&self.miss, reason);
        }
    }
}
