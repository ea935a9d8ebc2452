//! Rows of a running plan on their way out: encoded once, stored if the cache wants them, and delivered.

use std::cell::Cell;
use std::time::{Duration, Instant};

use arrow_cache_core::Reason;

use super::ipc_stream::{LARGEST_BYTEA, Output, Stream};
use crate::arrow::chunk::Chunk;
use crate::arrow::encode::Encoder;
use crate::capture::ExportFill;
use crate::error::{CacheError, or_raise};
use crate::pg::query_desc::QueryDesc;
use crate::pg::row::Row;
use crate::pg::tee::RowSink;

/// Bytes of the largest row that is delivered: as many as one value can have.
const LARGEST_ROW: usize = LARGEST_BYTEA;

/// Takes the rows of a plan and delivers them.
pub struct ExportSink<O: Output> {
    encoder: Encoder,
    /// Stores the rows, if the cache wants them.
    fill: Option<Box<ExportFill>>,
    /// Makes messages of them.
    pub stream: Stream,
    /// Where the messages go.
    pub output: O,
    /// The executor was told to pause after the last row.
    paused: Cell<bool>,
    /// Time spent in delivering. It does not count as time of the plan: that a client is slow is no reason to store its
    /// result.
    delivering: Duration,
}

impl<O: Output> RowSink for ExportSink<O> {
    fn append(&mut self, row: Row<'_>) -> Result<(), Reason> {
        let appended = self.encoder.append(row, LARGEST_ROW);
        appended.unwrap_or_else(|reason| CacheError::undeliverable(reason).raise());
        if self.encoder.is_full() {
            self.flush();
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
    pub fn new(encoder: Encoder, fill: Option<Box<ExportFill>>, stream: Stream, output: O) -> Self {
        Self { encoder, fill, stream, output, paused: Cell::new(false), delivering: Duration::ZERO }
    }

    /// Rows that the plan may still be asked for, and begins to note whether it pauses.
    pub fn begin_run(&mut self) -> u64 {
        self.paused.set(false);
        self.stream.rows_left().saturating_sub(self.encoder.pending_rows() as u64)
    }

    /// Did the plan pause because it was told to? If not, it has no more rows, or has given all that were asked for.
    pub fn has_paused(&self) -> bool {
        self.paused.get()
    }

    /// The caller goes on with the export later, or never.
    pub fn pause(&self) {
        if let Some(fill) = &self.fill {
            fill.pause();
        }
    }

    /// Delivers the rows taken so far.
    fn flush(&mut self) {
        let (rows, unfit) = (self.encoder.pending_rows(), self.encoder.unfit());
        let batch = self.encoder.take_batch();
        let batch = batch.unwrap_or_else(|reason| CacheError::undeliverable(reason).raise());
        let chunk = or_raise(batch.into_bytes());
        match (&mut self.fill, unfit) {
            (Some(fill), Some(reason)) => fill.give_up(reason),
            (Some(fill), None) => fill.add(chunk.as_slice(), rows),
            (None, _) => {}
        }
        let start = Instant::now();
        // SAFETY: the chunk was written just now, by the encoder of these columns.
        self.stream.batch(unsafe { Chunk::new(chunk.as_slice()) }, &mut self.output);
        self.delivering += start.elapsed();
    }

    /// The plan of `query` will give no more rows; it has taken `elapsed` in all. `complete` says whether these are all
    /// rows of the result.
    pub fn finish(&mut self, query: QueryDesc<'_>, complete: bool, elapsed: Duration) {
        if self.encoder.pending_rows() > 0 {
            self.flush();
        }
        match self.fill.take() {
            Some(mut fill) if complete => fill.finish(query, elapsed.saturating_sub(self.delivering)),
            Some(mut fill) => fill.give_up(Reason::IncompleteRead),
            None => {}
        }
    }
}
