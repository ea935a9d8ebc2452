//! Rows of a running plan on their way out: encoded once, stored if the cache wants them, and delivered.

use std::cell::Cell;
use std::time::{Duration, Instant};

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::stream::{Output, Stream};
use crate::arrow::chunk::Chunk;
use crate::arrow::encode::Encoder;
use crate::capture::{RowSink, StreamFill};
use crate::error::CacheError;

/// Largest row that is delivered: what one value can be.
const LARGEST_ROW: usize = super::LARGEST_BYTEA;

/// Takes the rows of a plan and delivers them.
pub struct ExportSink<O: Output> {
    encoder: Encoder,
    /// Stores the batches as well.
    fill: Option<StreamFill>,
    /// What they become.
    pub stream: Stream,
    /// Where they go.
    pub output: O,
    /// Rows taken so far.
    pub rows: u64,
    /// The executor was told to pause after the last row.
    paused: Cell<bool>,
    /// Time spent in delivering: a slow client is no reason to store its result.
    delivering: Duration,
}

impl<O: Output> RowSink for ExportSink<O> {
    unsafe fn append(&mut self, values: &[pg_sys::Datum], nulls: &[bool]) -> Result<(), Reason> {
        // SAFETY: as the caller promises.
        let appended = unsafe { self.encoder.append(values, nulls, LARGEST_ROW) };
        appended.unwrap_or_else(|reason| CacheError::Undeliverable { reason }.raise());
        self.rows += 1;
        if self.encoder.is_full() {
            self.flush(true);
        }
        Ok(())
    }

    fn wants_more(&self) -> bool {
        // A batch that has been begun is filled, since only whole ones are delivered.
        let more = self.encoder.pending_rows() > 0 || self.output.wants_more();
        self.paused.set(!more);
        more
    }
}

impl<O: Output> ExportSink<O> {
    /// A sink for rows that `encoder` takes.
    pub fn new(encoder: Encoder, fill: Option<StreamFill>, stream: Stream, output: O) -> Self {
        Self { encoder, fill, stream, output, rows: 0, paused: Cell::new(false), delivering: Duration::ZERO }
    }

    /// Rows that the plan may still be asked for, and begins to note whether it pauses.
    pub fn begin_run(&mut self) -> u64 {
        self.paused.set(false);
        self.stream.rows_left().saturating_sub(self.encoder.pending_rows() as u64)
    }

    /// Did the plan pause because it was told so? Else it has no more rows, or none that were asked for.
    pub fn has_paused(&self) -> bool {
        self.paused.get()
    }

    /// Delivers the rows taken so far.
    fn flush(&mut self, more: bool) {
        let rows = self.encoder.pending_rows();
        let batch = self.encoder.take_batch(more);
        let chunk = batch.unwrap_or_else(|reason| CacheError::Undeliverable { reason }.raise()).into_bytes();
        if let Some(fill) = &mut self.fill {
            fill.add(chunk.as_slice(), rows);
        }
        let start = Instant::now();
        // SAFETY: the chunk was written just now, by the encoder of these columns.
        unsafe { self.stream.batch(Chunk::new(chunk.as_slice()), &mut self.output) };
        self.delivering += start.elapsed();
    }

    /// The plan will give no more rows; it has taken `elapsed` in all. `complete` says whether these are all rows of the result.
    pub fn finish(&mut self, complete: bool, elapsed: Duration) {
        if self.encoder.pending_rows() > 0 {
            self.flush(false);
        }
        if let Some(mut fill) = self.fill.take() {
            if complete {
                fill.finish(elapsed.saturating_sub(self.delivering));
            } else {
                fill.give_up(Reason::IncompleteRead);
            }
        }
    }
}
