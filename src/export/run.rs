//! One export under way: decided like any other statement, then either a stored answer is delivered, or the plan runs and
//! its rows are delivered as they come. It may pause after each batch.
//!
//! The caller starts, runs and ends the executor; this file says what to run and takes what comes. So an export from a
//! function and one from COPY, whose executor the server itself drives, go the same way.

use std::time::{Duration, Instant};

use arrow_cache_core::{ExportOptions, Reason, RoomyVec};
use pgrx::{PgMemoryContexts, pg_sys};

use super::sink::{Aside, ExportSink};
use super::stream::{Output, Stream};
use crate::arrow::chunk::Chunk;
use crate::arrow::column::{self, Column, Records};
use crate::arrow::deliver::headroom_for;
use crate::arrow::encode::Encoder;
use crate::capture::StreamFill;
use crate::error::{CacheError, or_raise};
use crate::lookup;
use crate::lookup::{Found, Miss, Question};
use crate::pg::compat;
use crate::pg::tee::Tee;
use crate::report::{decision_log, tally};
use crate::serve::{self, Hit};
use crate::session::{self, Status};
use crate::shmem::{self, SharedStore};
use crate::verify::{self, Comparison};

/// No result has more rows: a greater limit is none.
const MOST_ROWS: u64 = u64::MAX / 2;

/// What the cache says to an export, before its plan is started.
pub enum Decision {
    /// A stored answer: its columns and where it lies. The serving plan, which keeps it there, has taken the plan's place.
    Stored { columns: Vec<Column>, chunks: Vec<&'static [u8]> },
    /// The plan runs, and its rows may be stored.
    Run(Option<Box<Miss>>),
    /// The plan runs, and its rows are compared with a stored answer.
    Verify(Box<verify::Sample>),
}

/// Asks the cache, counts the answer, and on a hit puts the serving plan in the place of the query's own.
///
/// # Safety
/// `query_desc` must be a query that is not started yet, under a registered snapshot, and `question` its own.
pub unsafe fn decide(store: &SharedStore, query_desc: *mut pg_sys::QueryDesc, question: &Question<'_>) -> Decision {
    // SAFETY: as the caller promises. The plan that is put in place keeps the entry pinned until ExecutorEnd.
    unsafe {
        let found = if crate::settings::enabled() { lookup::find(store, question) } else { Err(Reason::Disabled) };
        match found {
            Ok(Found::Hit(hit, verify)) => {
                tally::count_hit(store, &hit.pin);
                session::set_status(Status::Hit);
                decision_log::note(Status::Hit, (*query_desc).plannedstmt);
                if let Some(terms) = verify {
                    return verify::sample(query_desc, hit, terms).map_or(Decision::Run(None), Decision::Verify);
                }
                stored(store, query_desc, hit)
            }
            Ok(Found::Miss(miss)) => {
                tally::count_miss(store, miss.stale, miss.refused);
                let status = miss.status(miss.refused);
                session::set_status(status);
                if miss.refused.is_some() {
                    decision_log::note(status, (*query_desc).plannedstmt);
                }
                Decision::Run(Some(miss))
            }
            Err(reason) => {
                if reason != Reason::Disabled {
                    tally::count_bypass(store, reason);
                }
                session::set_status(Status::Bypass(reason));
                decision_log::note(Status::Bypass(reason), (*query_desc).plannedstmt);
                Decision::Run(None)
            }
        }
    }
}

/// # Safety
/// As `decide`; the hit must answer the query.
unsafe fn stored(store: &SharedStore, query_desc: *mut pg_sys::QueryDesc, hit: Hit) -> Decision {
    // SAFETY: as the caller promises. Shared memory outlives the process, and the pin goes with the executor's end.
    unsafe {
        let columns = hit.columns.clone();
        let entry = serve::entry_of(&hit);
        let stored = store.view(&entry).chunks();
        let mut chunks = Vec::new();
        for chunk in stored {
            or_raise(chunks.add(std::slice::from_raw_parts(chunk.as_ptr(), chunk.len())));
        }
        serve::swap_plan(query_desc, hit);
        Decision::Stored { columns, chunks }
    }
}

/// Where the rows come from.
enum Source<O: Output> {
    /// Stored batches, of which some have been delivered.
    Stored { chunks: Vec<&'static [u8]>, next: usize, stream: Box<Stream>, output: O },
    /// The plan. `asked` is the number of rows that the present run was
    /// asked for, 0 for all.
    Plan { tee: Box<Tee<ExportSink<O>>>, elapsed: Duration, started: Instant, asked: u64 },
}

/// An export whose plan has been started.
pub struct Export<O: Output> {
    source: Source<O>,
    /// Nothing more will come.
    done: bool,
    /// The schema has been sent.
    begun: bool,
}

impl<O: Output> Export<O> {
    /// Begins to export a query that has just been started. Lives in the query's own memory, and goes with it.
    ///
    /// Raises what `Stream::new` raises.
    ///
    /// # Safety
    /// `query_desc` must be the started query that was decided on.
    pub unsafe fn begin(
        query_desc: *mut pg_sys::QueryDesc,
        decision: Decision,
        options: &ExportOptions,
        output: O,
    ) -> *mut Self {
        // SAFETY: as the caller promises. The context outlives the executor's use of the tee, and nothing in it moves.
        unsafe {
            let descriptor = (*query_desc).tupDesc;
            let columns = result_columns(query_desc);
            let _headroom = or_raise(headroom_for(&columns));
            let source = match decision {
                Decision::Stored { columns, chunks } => {
                    let stream = Box::new(Stream::new(descriptor, &columns, options));
                    Source::Stored { chunks, next: 0, stream, output }
                }
                Decision::Run(miss) => {
                    // Whatever happened to the plan on its way, rows of another shape are not stored.
                    let aside = miss.filter(|miss| miss.columns == columns).map(StreamFill::begin);
                    let aside = aside.map_or(Aside::Nothing, Aside::Stored);
                    let stream = Stream::new(descriptor, &columns, options);
                    plan(query_desc, ExportSink::new(or_raise(Encoder::new(&columns)), aside, stream, output))
                }
                Decision::Verify(sample) => {
                    let aside = Comparison::begin(sample, &columns).map_or(Aside::Nothing, Aside::Compared);
                    let stream = Stream::new(descriptor, &columns, options);
                    plan(query_desc, ExportSink::new(or_raise(Encoder::new(&columns)), aside, stream, output))
                }
            };
            let export = Self { source, done: false, begun: false };
            PgMemoryContexts::For((*(*query_desc).estate).es_query_cxt).leak_and_drop_on_delete(export)
        }
    }

    /// Prepares a run of the executor: directs its rows here. Returns the direction and the number of rows to run it with.
    ///
    /// # Safety
    /// `query_desc` must be the query of the export; its receiver is replaced.
    pub unsafe fn before_run(&mut self, query_desc: *mut pg_sys::QueryDesc) -> (pg_sys::ScanDirection::Type, u64) {
        if !std::mem::replace(&mut self.begun, true) {
            if let Source::Stored { chunks, output, .. } = &mut self.source {
                output.expect(chunks.iter().map(|chunk| chunk.len()).sum());
            }
            let (stream, output) = self.parts();
            output.schema(&stream.schema());
        }
        match &mut self.source {
            // The hooks of other libraries see a run, but no row is made one by one.
            Source::Stored { .. } => (pg_sys::ScanDirection::NoMovementScanDirection, 0),
            Source::Plan { tee, started, asked, .. } => {
                let left = tee.sink.begin_run();
                // SAFETY: as the caller promises; the receiver that does nothing is a constant.
                unsafe {
                    (*query_desc).dest = pg_sys::None_Receiver;
                    tee.install(query_desc);
                }
                *started = Instant::now();
                *asked = left;
                let direction = match left {
                    0 => pg_sys::ScanDirection::NoMovementScanDirection,
                    _ => pg_sys::ScanDirection::ForwardScanDirection,
                };
                // The executor takes 0 for all.
                (direction, if left > MOST_ROWS { 0 } else { left })
            }
        }
    }

    /// The run has returned without an error: delivers what there is, and ends the stream after the last of it.
    ///
    /// # Safety
    /// As `before_run`.
    pub unsafe fn after_run(&mut self, query_desc: *mut pg_sys::QueryDesc) {
        match &mut self.source {
            Source::Stored { chunks, next, stream, output } => {
                while stream.rows_left() > 0 && *next < chunks.len() && output.wants_more() {
                    // SAFETY: stored chunks come from our encoder, and the serving plan keeps them.
                    unsafe { stream.batch(Chunk::new(chunks[*next]), output) };
                    *next += 1;
                }
                self.done = stream.rows_left() == 0 || *next == chunks.len();
                // SAFETY: as the caller promises. Other libraries ask here how many rows a query has had.
                unsafe { compat::set_processed(query_desc, stream.rows()) };
            }
            Source::Plan { tee, elapsed, started, asked } => {
                *elapsed += started.elapsed();
                // SAFETY: as the caller promises.
                let processed = unsafe { (*(*query_desc).estate).es_processed };
                // A plan that has given as many rows as it was asked for may have more.
                let limited = processed >= *asked;
                if limited || !tee.sink.has_paused() {
                    tee.sink.finish(!limited, *elapsed);
                    self.done = true;
                }
            }
        }
        if self.done {
            self.parts().1.end();
        }
    }

    /// Has everything been delivered?
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
            Source::Stored { stream, output, .. } => (stream, output),
            Source::Plan { tee, .. } => (&mut tee.sink.stream, &mut tee.sink.output),
        }
    }
}

/// # Safety
/// As `Export::begin`.
unsafe fn plan<O: Output>(query_desc: *mut pg_sys::QueryDesc, sink: ExportSink<O>) -> Source<O> {
    // SAFETY: as the caller promises.
    let tee = Box::new(unsafe { Tee::new(query_desc, sink) });
    Source::Plan { tee, elapsed: Duration::ZERO, started: Instant::now(), asked: 0 }
}

/// The columns of a query's result, anonymous records included: they do not leave the session.
///
/// # Safety
/// `query_desc` must be a started query.
unsafe fn result_columns(query_desc: *const pg_sys::QueryDesc) -> Vec<Column> {
    // SAFETY: as the caller promises.
    match unsafe { column::columns_of((*query_desc).tupDesc, Records::Local) } {
        Ok(columns) => columns,
        Err(reason) => CacheError::Undeliverable { reason }.raise(),
    }
}

/// The cache, which exports need even when they cannot use it.
pub fn store() -> SharedStore {
    shmem::store().unwrap_or_else(|| CacheError::NotPreloaded.raise())
}
