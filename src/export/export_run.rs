//! One export under way: either a stored answer is delivered, or the plan runs and its rows are delivered as they come.
//! It may pause after each batch.
//!
//! The caller starts, runs and ends the executor; this file determines what to run and takes what comes. In this way an
//! export from a function and one from COPY, whose executor the server itself drives, take the same steps.

use std::ffi::c_void;
use std::time::{Duration, Instant};

use arrow_cache_core::ExportOptions;
use pgrx::pg_sys;

use super::decision::{Answer, Decision};
use super::ipc_stream::{Output, Stream};
use super::row_sink::ExportSink;
use super::stored_batches::StoredBatches;
use crate::arrow::column::{self, Records};
use crate::arrow::delivery::schema::headroom_for;
use crate::arrow::encode::Encoder;
use crate::capture::{self, ExportFill};
use crate::error::{CacheError, or_raise};
use crate::lookup::Task;
use crate::pg::memory_context::leak;
use crate::pg::query_desc::QueryDesc;
use crate::pg::tee::Tee;
use crate::serve;

/// No result has more rows: a greater limit is none.
const MOST_ROWS: u64 = u64::MAX / 2;

/// Where the rows come from.
enum RowSource<O: Output> {
    /// Stored batches.
    Stored { batches: StoredBatches, stream: Box<Stream>, output: O },
    /// The plan. `asked` is the number of rows that the present run was asked for.
    Plan { tee: Box<Tee<ExportSink<O>>>, elapsed: Duration, started: Instant, asked: u64 },
}

impl<O: Output> RowSource<O> {
    fn of_plan(
        query: QueryDesc<'_>,
        (encoder, fill, stream): (Encoder, Option<Box<ExportFill>>, Stream),
        output: O,
    ) -> Self {
        let sink = ExportSink::new(encoder, fill, stream, output);
        // SAFETY: the query is started. The tee goes with its memory, and the encoder was made for its columns.
        let tee = Box::new(unsafe { Tee::new(query, sink) });
        Self::Plan { tee, elapsed: Duration::ZERO, started: Instant::now(), asked: 0 }
    }
}

/// An export whose plan has been started.
pub struct Export<O: Output> {
    query: QueryDesc<'static>,
    source: RowSource<O>,
    /// Nothing more will come.
    done: bool,
    /// The schema has been sent.
    begun: bool,
}

impl<O: Output> Export<O> {
    /// Begins to export a query that has just been started. Lives in the query's own memory, and goes with it.
    ///
    /// Raises what `Stream::new` raises.
    pub fn begin(query: QueryDesc<'_>, decision: Decision, options: &ExportOptions, output: O) -> *mut Self {
        let (Some(row_type), Some(memory)) = (query.row_type(), query.memory()) else {
            unreachable!("an export begins when its query has started")
        };
        assert_eq!(decision.query, query.address(), "a decision is about one query");
        // All anonymous records are delivered if they do not leave the session. Rows with the columns of the answer may
        // be stored.
        let storable = column::columns_of(row_type, Records::Stored);
        let columns = storable
            .ok()
            .filter(|columns| decision.answer.columns() == Some(columns.as_slice()))
            .map_or_else(|| column::columns_of(row_type, Records::Local), Ok)
            .unwrap_or_else(|reason| CacheError::undeliverable(reason).raise());
        let _headroom = or_raise(headroom_for(&columns));
        let run_plan = |fill| {
            let stream = Stream::new(row_type, &columns, options);
            (or_raise(Encoder::new(&columns)), fill, stream)
        };
        let source = match decision.answer {
            Answer::Stored { columns, chunks } => {
                let stream = Box::new(Stream::new(row_type, &columns, options));
                // SAFETY: the batches go with the query's memory, as the export that they are part of.
                let query = unsafe { QueryDesc::of_hook(query.as_ptr()) };
                RowSource::Stored { batches: StoredBatches::new(query, chunks, &stream), stream, output }
            }
            Answer::Run(miss) => {
                // Whatever happened to the plan on its way, rows with other columns are not stored.
                let miss = miss.filter(|miss| *miss.columns == *columns);
                let fill = miss.map(|miss| Box::new(ExportFill::begin(query, miss)));
                RowSource::of_plan(query, run_plan(fill), output)
            }
            Answer::AbovePart(miss) => {
                if let Some(miss) = miss {
                    capture::begin_task(query, Task::Store(miss));
                }
                RowSource::of_plan(query, run_plan(None), output)
            }
        };
        // SAFETY: the export goes with the query's memory, so it ends before the query's descriptor. Nothing in it
        // moves.
        unsafe {
            let query = QueryDesc::of_hook(query.as_ptr());
            let export = Self { query, source, done: false, begun: false };
            leak(memory, export)
        }
    }

    /// Prepares a run of the executor: directs its rows here, by another receiver. Returns the direction and the number
    /// of rows to run the query with.
    pub fn before_run(&mut self) -> (pg_sys::ScanDirection::Type, u64) {
        if !std::mem::replace(&mut self.begun, true) {
            if let RowSource::Stored { batches, output, .. } = &mut self.source {
                output.expect(batches.bytes());
            }
            let (stream, output) = self.parts();
            output.schema(&stream.schema());
        }
        match &mut self.source {
            RowSource::Stored { .. } => {
                let this: *mut Self = self;
                // SAFETY: the export lies in the query's memory, where nothing moves it.
                unsafe {
                    if let Some(served) = serve::served((*this).query) {
                        served.deliver_by(Self::deliver_stored, this.cast());
                    }
                }
                (pg_sys::ScanDirection::ForwardScanDirection, 0)
            }
            RowSource::Plan { tee, started, asked, .. } => {
                let left = tee.sink.begin_run();
                // SAFETY: the query is that of the tee, and does not outlive it. The receiver that does nothing is a
                // constant.
                unsafe {
                    self.query.set_receiver(pg_sys::None_Receiver);
                    tee.install(self.query);
                }
                *started = Instant::now();
                *asked = left;
                let direction = match left {
                    0 => pg_sys::ScanDirection::NoMovementScanDirection,
                    _ => pg_sys::ScanDirection::ForwardScanDirection,
                };
                // To the executor, 0 stands for all rows.
                (direction, if left > MOST_ROWS { 0 } else { left })
            }
        }
    }

    /// Delivers the next stored batches of an export. Returns how many rows these are.
    ///
    /// # Safety
    /// `export` must be one that lives, and nobody else uses it meanwhile.
    unsafe fn deliver_stored(export: *mut c_void) -> u64 {
        // SAFETY: the caller's promise.
        let export = unsafe { &mut *export.cast::<Self>() };
        let RowSource::Stored { batches, stream, output } = &mut export.source else { return 0 };
        let before = stream.rows();
        export.done = batches.deliver(stream, output);
        stream.rows() - before
    }

    /// The run has returned without an error: takes what is left, and ends the stream behind the last row.
    pub fn after_run(&mut self) {
        match &mut self.source {
            RowSource::Stored { .. } => {}
            RowSource::Plan { tee, elapsed, started, asked } => {
                *elapsed += started.elapsed();
                // A plan that has given as many rows as it was asked for may have more.
                let limited = self.query.processed() >= *asked;
                if limited || !tee.sink.has_paused() {
                    tee.sink.finish(self.query, !limited, *elapsed);
                    self.done = true;
                } else {
                    tee.sink.pause();
                }
            }
        }
        if self.done {
            self.parts().1.end();
        }
    }

    /// Returns true if everything has been delivered.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Columns that are delivered.
    pub fn columns(&mut self) -> usize {
        self.parts().0.columns()
    }

    /// Rows that have been delivered.
    pub fn rows(&mut self) -> u64 {
        self.parts().0.rows()
    }

    /// Where the stream goes.
    pub fn output(&mut self) -> &mut O {
        self.parts().1
    }

    fn parts(&mut self) -> (&mut Stream, &mut O) {
        match &mut self.source {
            RowSource::Stored { stream, output, .. } => (stream, output),
            RowSource::Plan { tee, .. } => (&mut tee.sink.stream, &mut tee.sink.output),
        }
    }
}
