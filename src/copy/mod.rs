//! `COPY … TO STDOUT (FORMAT arrow, …)`.
//!
//! The server runs the statement as any COPY of a query: it checks, plans, starts and ends it, and every other library
//! sees what it always sees. We hand it the statement without our options (`statement`), take the rows out of its hands
//! in the executor hooks, and send batches where it would send lines (`socket`).

mod response;
mod socket;
mod statement;

use std::cell::RefCell;
use std::ffi::CString;

use arrow_cache_core::{ExportOptions, RoomyVec};
use pgrx::pg_sys;

use crate::error::{CacheError, or_raise};
use crate::export::{self, Decision, END_OF_STREAM, Export, Output};
use crate::lookup::Question;
use crate::pg::backend_local::Local;
use crate::pg::query_desc::QueryDesc;
use crate::session;

/// A statement on its way from the utility hook to its executor.
enum Stage {
    /// The server is about to plan and start it. Planning may run functions, and these a COPY of their own, nested deeper.
    Announced { options: ExportOptions, text: Option<CString>, depth: u32 },
    /// It has been decided on and is being started.
    Decided { query_desc: usize, options: ExportOptions, decision: Decision },
    /// It runs. The export lives in the query's own memory.
    Running { query_desc: usize, export: *mut Export<ToClient>, receiver: *mut pg_sys::DestReceiver },
}

/// The COPY under way: a backend has one at most, since none can be nested in another.
static CURRENT: Local<RefCell<Option<Stage>>> = Local::new(RefCell::new(None));

/// Takes a COPY statement over, if it asks for Arrow: returns the statement that the server is to run in its place.
/// `leave` is to be called on every path out.
///
/// # Safety
/// `plan` must be the argument of a ProcessUtility hook, with a COPY statement.
pub unsafe fn enter(plan: *const pg_sys::PlannedStmt) -> Option<*mut pg_sys::PlannedStmt> {
    // SAFETY: as the caller promises.
    let copy = unsafe { statement::parse(plan)? };
    let depth = session::depth();
    CURRENT.replace(Some(Stage::Announced { options: copy.options, text: copy.text, depth }));
    Some(copy.plan)
}

/// The statement is over, perhaps by an error. Cannot raise.
pub fn leave() {
    response::restore();
    CURRENT.take();
}

/// Is this the query of the COPY that was announced?
///
/// # Safety
/// `query_desc` must be the argument of an ExecutorStart hook.
pub unsafe fn claims(query_desc: *const pg_sys::QueryDesc) -> bool {
    let announced = CURRENT
        .with_borrow(|current| matches!(current, Some(Stage::Announced { depth, .. }) if *depth == session::depth()));
    // SAFETY: as the caller promises; a receiver may be null before the start.
    announced && unsafe { (*query_desc).dest.as_ref() }.is_some_and(|to| to.mydest == pg_sys::CommandDest::DestCopyOut)
}

/// Decides on a query that `claims`, before it is started.
///
/// # Safety
/// As `claims`.
pub unsafe fn before_start(query_desc: *mut pg_sys::QueryDesc) {
    let Some(Stage::Announced { options, text, .. }) = CURRENT.take() else { return };
    // SAFETY: as the caller promises.
    unsafe {
        if (*(*query_desc).plannedstmt).hasModifyingCTE {
            CacheError::NotOneSelect { found: "a WITH clause that changes data".into() }.raise();
        }
        let question = Question::of(QueryDesc::of_hook(query_desc)).with_text(text.as_deref());
        let decision = export::decide(&export::store(), query_desc, &question);
        CURRENT.replace(Some(Stage::Decided { query_desc: query_desc as usize, options, decision }));
    }
}

/// Is there an export to begin, once its query has been started?
pub fn is_deciding() -> bool {
    CURRENT.with_borrow(|current| matches!(current, Some(Stage::Decided { .. })))
}

/// Begins the export of a query that was decided on, if this is one.
///
/// # Safety
/// `query_desc` must have been started.
pub unsafe fn after_start(query_desc: *mut pg_sys::QueryDesc) {
    let decided = CURRENT.with_borrow_mut(|current| {
        current.take_if(|stage| matches!(stage, Stage::Decided { query_desc: own, .. } if *own == query_desc as usize))
    });
    let Some(Stage::Decided { query_desc: own, options, decision }) = decided else { return };
    let output = ToClient { size: options.chunk_bytes, rows: 0, bytes: 0, open: Vec::new() };
    // SAFETY: as the caller promises.
    let export = unsafe { Export::begin(query_desc, decision, &options, output) };
    // SAFETY: just made.
    response::announce_bytes(unsafe { (*export).columns() } as u16);
    CURRENT.replace(Some(Stage::Running { query_desc: own, export, receiver: std::ptr::null_mut() }));
}

/// The export of this query, if it has one.
fn running(query_desc: *const pg_sys::QueryDesc) -> Option<*mut Export<ToClient>> {
    CURRENT.with_borrow(|current| match current {
        Some(Stage::Running { query_desc: own, export, .. }) if *own == query_desc as usize => Some(*export),
        _ => None,
    })
}

/// Is this the query of a COPY that runs?
pub fn exports(query_desc: *const pg_sys::QueryDesc) -> bool {
    running(query_desc).is_some()
}

/// Directs the rows of a query that is about to run to the client. Returns the direction and number of rows to run it for.
///
/// # Safety
/// `query_desc` must be one that `exports`.
pub unsafe fn before_run(query_desc: *mut pg_sys::QueryDesc) -> (pg_sys::ScanDirection::Type, u64) {
    // SAFETY: as the caller promises; the export lives as long as its query.
    unsafe {
        let own = (*query_desc).dest;
        let run = running(query_desc).map(|export| (*export).before_run(query_desc));
        CURRENT.with_borrow_mut(|current| {
            if let Some(Stage::Running { receiver, .. }) = current {
                *receiver = own;
            }
        });
        run.unwrap_or((pg_sys::ScanDirection::NoMovementScanDirection, 0))
    }
}

/// The query has run without an error: ends the stream, and tells the server how many rows it had.
///
/// # Safety
/// As `before_run`.
pub unsafe fn after_run(query_desc: *mut pg_sys::QueryDesc) {
    let Some(export) = running(query_desc) else { return };
    // SAFETY: as the caller promises. The receiver is the one that COPY made and asks for the number of rows.
    unsafe {
        (*export).after_run(query_desc);
        let receiver = CURRENT.with_borrow(|current| match current {
            Some(Stage::Running { receiver, .. }) => *receiver,
            _ => std::ptr::null_mut(),
        });
        (*query_desc).dest = receiver;
        (*receiver.cast::<CopyReceiver>()).processed = (*export).rows();
    }
}

/// COPY's own receiver (copyto.c, `DR_copy`), the same in 15 to 18.
#[repr(C)]
struct CopyReceiver {
    receiver: pg_sys::DestReceiver,
    state: *mut std::ffi::c_void,
    processed: u64,
}

/// Parts of a stream below this size are gathered: a message of its own would cost more than a copy.
const SMALL: usize = 16 * 1024;

/// Sends a stream as CopyData messages of at most `size` bytes, and shows in `pg_stat_progress_copy` how far it is.
struct ToClient {
    size: usize,
    rows: i64,
    bytes: i64,
    /// Small parts that wait for company.
    open: Vec<u8>,
}

impl ToClient {
    fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if bytes.len() < SMALL.min(self.size) {
                if self.open.len() + bytes.len() > self.size {
                    self.flush();
                }
                or_raise(self.open.add_all(bytes));
                return;
            }
            self.flush();
            let (now, later) = bytes.split_at(bytes.len().min(self.size));
            socket::send(now);
            bytes = later;
        }
    }

    fn flush(&mut self) {
        if !self.open.is_empty() {
            socket::send(&self.open);
            self.open.clear();
        }
    }
}

impl Output for ToClient {
    fn schema(&mut self, message: &[u8]) {
        self.add(message);
    }

    fn batch(&mut self, rows: usize, parts: &[&[u8]]) {
        for part in parts {
            self.add(part);
            self.bytes += part.len() as i64;
        }
        self.rows += rows as i64;
        // SAFETY: writes to this backend's own place among the statistics.
        unsafe {
            pg_sys::pgstat_progress_update_param(pg_sys::PROGRESS_COPY_BYTES_PROCESSED as i32, self.bytes);
            pg_sys::pgstat_progress_update_param(pg_sys::PROGRESS_COPY_TUPLES_PROCESSED as i32, self.rows);
        }
    }

    fn end(&mut self) {
        self.add(&END_OF_STREAM);
        self.flush();
    }
}
