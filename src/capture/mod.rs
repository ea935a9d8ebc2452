//! Misses: the rows of a running query are copied into Arrow batches on their way to the client,
//! and published as an entry once the last one has been read. Anything that goes wrong makes the
//! query run on uncaptured.
//!
//! A capture lives from ExecutorStart to ExecutorEnd, or to the end of the query's memory context
//! when an error comes between; then what it has stored so far is left without a pin, for the next
//! store operation to reclaim.

mod fill;
mod outcome;
mod replay;
mod stream_fill;

use std::cell::RefCell;
use std::ffi::c_void;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use arrow_cache_core::{Pin, Reason};
use pgrx::pg_sys;

use crate::arrow::column::{self, Records};
use crate::error::none_if_out_of_memory;
use crate::lookup::{Miss, Task};
use crate::pg::backend_local::Local;
use crate::pg::row_type::RowType;
use crate::pg::tee::Tee;
use crate::{settings, shmem, verify};
use fill::ResultFill;
use replay::Replay;
pub use replay::replay;
pub use stream_fill::StreamFill;

/// What becomes of the rows.
enum Stage {
    /// They are captured.
    Filling(Box<Tee<ResultFill>>),
    /// They only pass; the run is timed.
    Timing,
    /// They come from the entry just stored, not from the plan (`debug_serve_fills`).
    Replaying(Replay),
    /// Nothing more is done.
    Done,
}

/// A miss that is being executed.
struct Capture {
    miss: Box<Miss>,
    stage: Stage,
    /// Time spent so far in running the plan, and when the present run began.
    elapsed: Duration,
    run_started: Instant,
    /// Some rows may have been delivered already.
    has_run: bool,
}

/// A registration of a capture with the memory context of its query.
struct Registration {
    callback: pg_sys::MemoryContextCallback,
    query_desc: usize,
}

type Captures = Vec<(usize, Box<Capture>)>;

/// What there is to do for the query that is being started, if anything.
static PREPARED: Local<RefCell<Option<(usize, Task)>>> = Local::new(RefCell::new(None));
/// Captures by the address of their query descriptor. Few: open portals of this backend.
static RUNNING: Local<RefCell<Captures>> = Local::new(RefCell::new(Vec::new()));

/// Keeps what there is to do for a query, while PostgreSQL starts it. What a query left behind
/// whose start failed is forgotten.
pub fn prepare(query_desc: *const pg_sys::QueryDesc, task: Option<Task>) {
    PREPARED.with_borrow_mut(|prepared| *prepared = task.map(|task| (query_desc as usize, task)));
}

/// Begins to capture a query that has just been started, if it was prepared for that.
///
/// # Safety
/// `query_desc` must be a started query.
pub unsafe fn begin(query_desc: *mut pg_sys::QueryDesc) {
    let prepared =
        PREPARED.with_borrow_mut(|prepared| prepared.take_if(|(address, _)| *address == query_desc as usize));
    let miss = match prepared {
        Some((_, Task::Store(miss))) => miss,
        // SAFETY: as the caller promises.
        Some((_, Task::Verify(sample))) => return unsafe { verify::begin(query_desc, sample) },
        None => return,
    };
    // SAFETY: as the caller promises. The registration lives in the context whose end it reports.
    unsafe {
        // Whatever happened to the plan on its way, rows of another shape are not ours.
        let shape = column::columns_of(RowType::of((*query_desc).tupDesc), Records::Refused);
        if shape.as_ref() != Ok(&miss.columns) {
            return;
        }
        let stage = match miss.refused {
            None => match ResultFill::new(&miss) {
                Ok(fill) => match none_if_out_of_memory(AssertUnwindSafe(|| Tee::new(query_desc, fill))) {
                    Some(tee) => Stage::Filling(Box::new(tee)),
                    None => return outcome::note_refusal(&miss, Reason::OutOfMemory),
                },
                Err(reason) => return outcome::note_refusal(&miss, reason.into()),
            },
            Some(Reason::TooQuick) => Stage::Timing,
            Some(_) => return,
        };
        let context = (*(*query_desc).estate).es_query_cxt;
        let registration: *mut Registration = pg_sys::MemoryContextAllocExtended(
            context,
            std::mem::size_of::<Registration>(),
            pg_sys::MCXT_ALLOC_NO_OOM as i32,
        )
        .cast();
        if registration.is_null() {
            return outcome::note_refusal(&miss, Reason::OutOfMemory);
        }
        registration.write(Registration {
            callback: pg_sys::MemoryContextCallback {
                func: Some(context_gone),
                arg: registration.cast(),
                next: std::ptr::null_mut(),
            },
            query_desc: query_desc as usize,
        });
        pg_sys::MemoryContextRegisterResetCallback(context, &raw mut (*registration).callback);
        let elapsed = Duration::ZERO;
        let capture = Box::new(Capture { miss, stage, elapsed, run_started: Instant::now(), has_run: false });
        RUNNING.with_borrow_mut(|running| running.push((query_desc as usize, capture)));
    }
}

/// Is nothing captured or compared now? Then runs and ends of queries are none of our business.
pub fn idle() -> bool {
    RUNNING.with_borrow(Vec::is_empty) && verify::idle()
}

/// Is there something to begin with, once its query has started?
pub fn is_prepared() -> bool {
    PREPARED.with_borrow(Option::is_some)
}

/// Takes a capture out of the list.
fn take(query_desc: usize) -> Option<Box<Capture>> {
    RUNNING.with_borrow_mut(|running| {
        let position = running.iter().position(|(address, _)| *address == query_desc)?;
        Some(running.swap_remove(position).1)
    })
}

/// The capture of a query, if it has one. Boxed, so it stays in place while its query runs and
/// nested queries come and go in the list.
fn running(query_desc: *const pg_sys::QueryDesc) -> Option<*mut Capture> {
    RUNNING.with_borrow_mut(|running| {
        running.iter_mut().find(|(address, _)| *address == query_desc as usize).map(|(_, capture)| &raw mut **capture)
    })
}

/// The query has ended: a capture that is not complete by now never will be.
pub fn end(query_desc: *const pg_sys::QueryDesc) {
    if let Some(mut capture) = take(query_desc as usize) {
        capture.give_up(Reason::IncompleteRead);
        if !capture.miss.tuples.is_null() {
            // SAFETY: made by `replay::keep_rows` for this query, whose context is still there. After an error
            // nobody comes here, and the transaction's abort closes the file.
            unsafe { pg_sys::tuplestore_end(capture.miss.tuples) };
        }
    }
}

/// The query's context goes away, after an error or long after `end`. Atomics and the freeing of
/// Rust memory only: this runs in the middle of error recovery.
unsafe extern "C-unwind" fn context_gone(registration: *mut c_void) {
    // SAFETY: registered with the address of the registration, which the context still contains.
    let query_desc = unsafe { (*registration.cast::<Registration>()).query_desc };
    if let Some(capture) = take(query_desc)
        && let Stage::Filling(tee) = capture.stage
    {
        tee.sink.leave();
    }
}

/// What one ExecutorRun does. Plain data, so that an error may jump over it.
#[derive(Clone, Copy)]
pub struct Pass {
    /// The plan runs, for up to `count` rows (0: all).
    pub runs_plan: bool,
    /// See `runs_plan`.
    pub count: u64,
    /// Rows are then delivered from the stored entry.
    pub replays: bool,
    /// It runs forward, so that it may reach the end of the result.
    forward: bool,
    /// The receiver to put back after the run; null when it was not replaced.
    receiver: *mut pg_sys::DestReceiver,
}

impl Pass {
    /// Puts the client's receiver back, after an error too.
    ///
    /// # Safety
    /// `query_desc` must be the query the pass was made for.
    pub unsafe fn restore(self, query_desc: *mut pg_sys::QueryDesc) {
        if !self.receiver.is_null() {
            // SAFETY: as the caller promises.
            unsafe { (*query_desc).dest = self.receiver };
        }
    }
}

/// Prepares a run of a query for up to `count` more rows (0: all).
///
/// # Safety
/// The arguments must be those of an ExecutorRun hook.
pub unsafe fn before_run(
    query_desc: *mut pg_sys::QueryDesc,
    direction: pg_sys::ScanDirection::Type,
    count: u64,
) -> Pass {
    let receiver = std::ptr::null_mut();
    let forward = direction == pg_sys::ScanDirection::ForwardScanDirection;
    let mut pass = Pass { runs_plan: true, count, replays: false, forward, receiver };
    let Some(capture) = running(query_desc) else {
        // SAFETY: as the caller promises.
        pass.receiver = unsafe { verify::before_run(query_desc, forward) };
        return pass;
    };
    // SAFETY: as the caller promises; see `running`.
    unsafe {
        let capture = &mut *capture;
        if direction == pg_sys::ScanDirection::BackwardScanDirection {
            capture.give_up(Reason::IncompleteRead);
        }
        if !forward {
            return pass;
        }
        if matches!(capture.stage, Stage::Filling(_)) && outcome::settings_changed(&capture.miss) {
            capture.give_up(Reason::SettingsChanged);
        }
        capture.run_started = Instant::now();
        match &mut capture.stage {
            // A part of the rows is delivered as it comes: a cursor's position must be that of its plan.
            Stage::Filling(tee) if settings::debug_serve_fills() && !capture.has_run && count == 0 => {
                pass.receiver = (*query_desc).dest;
                pass.count = 0;
                pass.replays = true;
                capture.miss.tuples = replay::keep_rows(query_desc);
                tee.install(query_desc);
            }
            Stage::Filling(tee) => pass.receiver = tee.install(query_desc),
            Stage::Replaying(_) => {
                pass.runs_plan = false;
                pass.replays = true;
            }
            Stage::Timing | Stage::Done => {}
        }
    }
    pass
}

/// The run has returned without an error.
///
/// # Safety
/// As `before_run`; `pass` is what that returned.
pub unsafe fn after_run(query_desc: *mut pg_sys::QueryDesc, pass: Pass) {
    let Some(capture) = running(query_desc).filter(|_| pass.forward) else {
        // SAFETY: as the caller promises.
        return unsafe { verify::after_run(query_desc, pass.count) };
    };
    // SAFETY: as the caller promises; see `running`.
    unsafe {
        let capture = &mut *capture;
        capture.has_run = true;
        capture.elapsed += capture.run_started.elapsed();
        if let Stage::Filling(tee) = &capture.stage
            && let Some(reason) = tee.failure
        {
            capture.give_up(reason);
        }
        let processed = (*(*query_desc).estate).es_processed;
        let at_end = pass.count == 0 || processed < pass.count;
        let entry = if at_end { capture.finish() } else { None };
        if pass.replays {
            let replay = Replay::new(query_desc, &capture.miss, entry);
            capture.stage = Stage::Replaying(replay);
        } else if let (Some(pin), Some(store)) = (entry, shmem::store()) {
            store.unpin(pin);
        }
    }
}

impl Capture {
    /// The result has been read to its end: stores it if it is worth storing and still true.
    /// Returns the pin of the new entry.
    fn finish(&mut self) -> Option<Pin> {
        let stage = std::mem::replace(&mut self.stage, Stage::Done);
        let too_quick = match stage {
            Stage::Filling(_) | Stage::Timing => outcome::remember_speed(&self.miss, self.elapsed),
            Stage::Replaying(_) | Stage::Done => return None,
        };
        let Stage::Filling(tee) = stage else { return None };
        outcome::publish(&self.miss, tee.sink, too_quick, self.elapsed)
    }

    /// Stops capturing and frees what was stored.
    fn give_up(&mut self, reason: Reason) {
        if matches!(self.stage, Stage::Filling(_))
            && let Stage::Filling(tee) = std::mem::replace(&mut self.stage, Stage::Done)
        {
            tee.sink.abandon();
            outcome::note_refusal(&self.miss, reason);
        }
    }
}
