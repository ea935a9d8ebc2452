//! Misses: the rows of a running query are copied into Arrow batches on their way to the client,
//! and published as an entry once the last one has been read. Anything that goes wrong makes the
//! query run on uncaptured.
//!
//! A capture lives from ExecutorStart to ExecutorEnd, or to the end of the query's memory context
//! when an error comes between; then what it has stored so far is left without a
//! pin, for the next store operation to reclaim.

mod fill;
mod receiver;
mod replay;

use std::cell::RefCell;
use std::ffi::c_void;
use std::time::{Duration, Instant};

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use crate::judge::Miss;
use crate::{quick, session, settings, shmem};
use fill::ResultFill;
pub use receiver::{RowSink, with_tee};
use replay::Replay;

/// What becomes of the rows.
enum Stage {
    /// They are captured.
    Filling(Box<ResultFill>),
    /// They only pass; the run is timed.
    Timing,
    /// They come from the entry just stored, not from the plan (`debug_serve_fills`).
    Replaying(Replay),
    /// Nothing more is done.
    Done,
}

/// A miss that is being executed.
pub struct Capture {
    miss: Box<Miss>,
    stage: Stage,
    /// Time spent so far in running the plan.
    elapsed: Duration,
}

/// Runs the plan: the next `ExecutorRun` in line.
pub type RunNext =
    unsafe fn(*mut pg_sys::QueryDesc, pg_sys::ScanDirection::Type, u64, bool);

/// A registration of a capture with the memory context of its query.
struct Registration {
    callback: pg_sys::MemoryContextCallback,
    query_desc: usize,
}

thread_local! {
    /// Captures by the address of their query descriptor. Few: open portals of this backend.
    static RUNNING: RefCell<Vec<(usize, Box<Capture>)>> = const { RefCell::new(Vec::new()) };
}

/// Begins to capture a query that has just been started.
///
/// # Safety
/// `query_desc` must be a started query, and `miss` its own.
pub unsafe fn begin(query_desc: *mut pg_sys::QueryDesc, miss: Box<Miss>) {
    let stage = match miss.refused {
        None => Stage::Filling(Box::new(ResultFill::new(&miss))),
        Some(Reason::TooQuick) => Stage::Timing,
        Some(_) => return,
    };
    // SAFETY: as the caller promises. The registration lives in the context whose end it reports.
    unsafe {
        let context = (*(*query_desc).estate).es_query_cxt;
        let registration: *mut Registration =
            pg_sys::MemoryContextAlloc(context, std::mem::size_of::<Registration>()).cast();
        registration.write(Registration {
            callback: pg_sys::MemoryContextCallback {
                func: Some(context_gone),
                arg: registration.cast(),
                next: std::ptr::null_mut(),
            },
            query_desc: query_desc as usize,
        });
        pg_sys::MemoryContextRegisterResetCallback(context, &raw mut (*registration).callback);
    }
    let capture = Box::new(Capture { miss, stage, elapsed: Duration::ZERO });
    RUNNING.with_borrow_mut(|running| running.push((query_desc as usize, capture)));
}

/// Takes a capture out of the list.
fn take(query_desc: usize) -> Option<Box<Capture>> {
    RUNNING.with_borrow_mut(|running| {
        let position = running.iter().position(|(address, _)| *address == query_desc)?;
        Some(running.swap_remove(position).1)
    })
}

/// The capture of a query, if it has one.
pub fn running(query_desc: *mut pg_sys::QueryDesc) -> Option<*mut Capture> {
    RUNNING.with_borrow_mut(|running| {
        running
            .iter_mut()
            .find(|(address, _)| *address == query_desc as usize)
            .map(|(_, capture)| &raw mut **capture)
    })
}

/// The query has ended: a capture that is not complete by now never will be.
pub fn end(query_desc: *mut pg_sys::QueryDesc) {
    if let Some(mut capture) = take(query_desc as usize) {
        capture.give_up(Reason::IncompleteRead);
    }
}

/// The query's context goes away, after an error or long after `end`. Atomics and the
/// freeing of Rust memory only: this runs in the middle of error recovery.
unsafe extern "C-unwind" fn context_gone(registration: *mut c_void) {
    // SAFETY: registered with the address of the registration, which the context still contains.
    let query_desc = unsafe { (*registration.cast::<Registration>()).query_desc };
    if let Some(capture) = take(query_desc)
        && let Stage::Filling(fill) = capture.stage
    {
        fill.leave();
    }
}

/// Stores a result that an export has collected, if it is worth storing and still true.
///
/// # Errors
/// Why it was not stored.
pub fn store_chunks<'a>(
    miss: &Miss,
    chunks: impl Iterator<Item = &'a [u8]>,
    rows: u64,
    elapsed: Duration,
) -> Result<(), Reason> {
    let stored = if elapsed < settings::min_execution_time() {
        Err(Reason::TooQuick)
    } else {
        ResultFill::store(miss, chunks, rows, elapsed)
    };
    let store = shmem::store().ok_or(Reason::NoRoom)?;
    stored.map(|pin| store.unpin(pin)).inspect_err(|reason| {
        store.counters().add_reason(store.stripe(), *reason);
    })
}

/// Runs a captured query for up to `count` more rows (0: all).
///
/// # Safety
/// `capture` must be that of `query_desc`; the other arguments those of an ExecutorRun hook.
pub unsafe fn run(
    capture: *mut Capture,
    query_desc: *mut pg_sys::QueryDesc,
    direction: pg_sys::ScanDirection::Type,
    count: u64,
    once: bool,
    next: RunNext,
) {
    // SAFETY: as the caller promises. The capture is boxed and stays in the list while its query
    // runs; nested queries touch the list, never this element.
    unsafe {
        let capture = &mut *capture;
        if direction != pg_sys::ScanDirection::ForwardScanDirection {
            if direction == pg_sys::ScanDirection::BackwardScanDirection {
                capture.give_up(Reason::IncompleteRead);
            }
            return next(query_desc, direction, count, once);
        }
        match &mut capture.stage {
            Stage::Done => next(query_desc, direction, count, once),
            Stage::Timing => {
                let start = Instant::now();
                next(query_desc, direction, count, once);
                capture.elapsed += start.elapsed();
                if read_to_end(query_desc, count) {
                    capture.stage = Stage::Done;
                    capture.remember_speed();
                }
            }
            Stage::Filling(_) if settings::debug_serve_fills() => {
                let replay = Replay::fill(capture, query_desc, once, next);
                capture.stage = Stage::Replaying(replay);
                capture.replay(query_desc, count);
            }
            Stage::Filling(_) => {
                capture.fill(query_desc, count, once, next);
                if read_to_end(query_desc, count)
                    && let Some(hold) = capture.finish(query_desc)
                    && let Some(store) = shmem::store()
                {
                    store.unpin(hold);
                }
            }
            Stage::Replaying(_) => capture.replay(query_desc, count),
        }
    }
}

/// Did the run that has just returned reach the end of the result?
///
/// # Safety
/// `query_desc` must be a started query.
unsafe fn read_to_end(query_desc: *const pg_sys::QueryDesc, count: u64) -> bool {
    // SAFETY: as the caller promises.
    count == 0 || unsafe { (*(*query_desc).estate).es_processed } < count
}

impl Capture {
    /// Runs the plan with a receiver that captures each row.
    ///
    /// # Safety
    /// As `run`; the stage must be `Filling`.
    unsafe fn fill(
        &mut self,
        query_desc: *mut pg_sys::QueryDesc,
        count: u64,
        once: bool,
        next: RunNext,
    ) {
        let start = Instant::now();
        // SAFETY: as the caller promises; the receiver outlives the call that uses it.
        let failure = match &mut self.stage {
            Stage::Filling(fill) => unsafe {
                with_tee(query_desc, &mut **fill, || {
                    next(query_desc, pg_sys::ScanDirection::ForwardScanDirection, count, once);
                })
            },
            _ => None,
        };
        self.elapsed += start.elapsed();
        if let Some(reason) = failure {
            self.give_up(reason);
        }
    }

    /// The result has been read to its end: stores it if it is worth storing and still true.
    /// Returns the pin of the new entry.
    ///
    /// # Safety
    /// As `run`.
    unsafe fn finish(
        &mut self,
        query_desc: *const pg_sys::QueryDesc,
    ) -> Option<arrow_cache_core::Pin> {
        let too_quick = self.remember_speed();
        let Stage::Filling(fill) = std::mem::replace(&mut self.stage, Stage::Done) else {
            return None;
        };
        let result = if too_quick {
            fill.abandon();
            Err(Reason::TooQuick)
        } else {
            fill.publish(&self.miss, self.elapsed)
        };
        let _ = query_desc;
        match result {
            Ok(pin) => Some(pin),
            Err(reason) => {
                self.note_refusal(reason);
                None
            }
        }
    }

    /// Remembers whether the run was below `min_execution_time`; says so.
    fn remember_speed(&self) -> bool {
        let too_quick =
            self.elapsed < settings::min_execution_time() && !settings::debug_serve_fills();
        quick::remember(self.miss.key, too_quick);
        too_quick
    }

    /// Stops capturing and frees what was stored.
    fn give_up(&mut self, reason: Reason) {
        if let Stage::Filling(fill) = std::mem::replace(&mut self.stage, Stage::Done) {
            fill.abandon();
            self.note_refusal(reason);
        }
    }

    fn note_refusal(&self, reason: Reason) {
        if let Some(store) = shmem::store() {
            store.counters().add_reason(store.stripe(), reason);
        }
        session::set_status_of(self.miss.statement, self.miss.status(Some(reason)));
    }

    /// Delivers rows from the entry that was stored instead of running the plan.
    ///
    /// # Safety
    /// As `run`.
    unsafe fn replay(&mut self, query_desc: *mut pg_sys::QueryDesc, count: u64) {
        if let Stage::Replaying(replay) = &mut self.stage {
            // SAFETY: as the caller promises.
            unsafe { replay.deliver(query_desc, count) };
        }
    }
}
