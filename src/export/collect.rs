//! Runs a query for an export and keeps its rows as encoded batches in local memory.

use std::time::{Duration, Instant};

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use crate::arrow::chunk::ChunkBytes;
use crate::arrow::column::Column;
use crate::arrow::encode::Encoder;
use crate::capture::{RowSink, Tee};
use crate::error::CacheError;

/// A whole result.
pub struct Collected {
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its batches.
    pub chunks: Vec<ChunkBytes>,
    /// Its rows in all.
    pub rows: u64,
    /// Time spent in running the plan.
    pub elapsed: Duration,
}

struct Collector {
    encoder: Encoder,
    chunks: Vec<ChunkBytes>,
    rows: u64,
    bytes: usize,
}

impl RowSink for Collector {
    unsafe fn append(&mut self, values: &[pg_sys::Datum], nulls: &[bool]) -> Result<(), Reason> {
        // SAFETY: as the caller promises.
        unsafe { self.encoder.append(values, nulls, super::LARGEST_BYTEA.saturating_sub(self.bytes))? };
        self.rows += 1;
        if self.encoder.is_full() { self.flush(true) } else { Ok(()) }
    }
}

impl Collector {
    fn flush(&mut self, more: bool) -> Result<(), Reason> {
        let chunk = self.encoder.take_batch(more)?.into_bytes();
        self.bytes += chunk.as_slice().len();
        self.chunks.push(chunk);
        if self.bytes > super::LARGEST_BYTEA { Err(Reason::TooLarge) } else { Ok(()) }
    }
}

/// Starts the query, runs it to its end and ends it.
///
/// # Safety
/// `query_desc` must be a query that is not started yet, under an active snapshot.
pub unsafe fn run(query_desc: *mut pg_sys::QueryDesc) -> Collected {
    // SAFETY: the calls in the order that the executor asks for.
    unsafe {
        pg_sys::ExecutorStart(query_desc, 0);
        let columns = super::result_columns(query_desc);
        let mut tee = Box::new(Tee::new(
            query_desc,
            Collector { encoder: Encoder::new(columns.clone()), chunks: Vec::new(), rows: 0, bytes: 0 },
        ));
        let receiver = tee.install(query_desc);
        let start = Instant::now();
        crate::compat::executor_run_all(query_desc);
        (*query_desc).dest = receiver;
        let failure = tee.failure;
        let mut collector = tee.sink;
        let elapsed = start.elapsed();
        pg_sys::ExecutorFinish(query_desc);
        pg_sys::ExecutorEnd(query_desc);
        let flushed = match failure {
            None if collector.encoder.pending_rows() > 0 => collector.flush(false).err(),
            failure => failure,
        };
        match flushed {
            None => {}
            Some(Reason::TooLarge) => {
                CacheError::StreamTooLarge { bytes: collector.bytes }.raise();
            }
            Some(reason) => CacheError::Undeliverable { reason }.raise(),
        }
        Collected { columns, chunks: collector.chunks, rows: collector.rows, elapsed }
    }
}
