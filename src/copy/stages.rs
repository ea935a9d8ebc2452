//! The stages of a COPY, from the statement to the end of its query. The hooks call these in order; the state belongs
//! to one process, which runs one COPY at a time.

use arrow_cache_core::ExportOptions;
use pgrx::pg_sys;

use super::client_stream::ToClient;
use super::{copy_statement, opening_response};
use crate::error::CacheError;
use crate::export::{self, Decision, Export};
use crate::pg::attention::{Attended, Matter};
use crate::pg::backend_local::Local;
use crate::pg::copy_receiver;
use crate::pg::query_desc::QueryDesc;
use crate::pg::tree::Tree;
use crate::session;
use crate::shmem;

/// A statement on its way from the utility hook to its executor.
enum Stage {
    /// The server is about to plan and start it. Planning may run functions, and these a COPY of their own, nested
    /// deeper.
    Announced { options: ExportOptions, depth: u32 },
    /// The cache has been asked, and the query is being started.
    Decided { query: usize, options: ExportOptions, decision: Decision },
    /// It runs. The export lives in the query's own memory.
    Running { query: usize, export: *mut Export<ToClient>, receiver: *mut pg_sys::DestReceiver },
}

/// The COPY under way: a backend has one at most, since none can be nested in another.
static CURRENT: Local<Attended<Option<Stage>>> = Local::new(Attended::new(Matter::Copy, None));

/// Takes a COPY statement over, if it asks for Arrow. Returns the statement that the server is to run in its place.
/// `leave` is to be called on every path out.
pub fn enter(plan: Tree<'_, pg_sys::PlannedStmt>) -> Option<*mut pg_sys::PlannedStmt> {
    let copy = copy_statement::parse(plan)?;
    let depth = session::depth();
    CURRENT.replace(Some(Stage::Announced { options: copy.options, depth }));
    Some(copy.plan)
}

/// The statement is over, perhaps by an error. Cannot raise.
pub fn leave() {
    opening_response::restore();
    CURRENT.take();
}

/// Returns true if this query, which is about to be started, is that of the COPY that was announced.
pub fn claims(query: QueryDesc<'_>) -> bool {
    let announced = CURRENT
        .with_borrow(|current| matches!(current, Some(Stage::Announced { depth, .. }) if *depth == session::depth()));
    // SAFETY: a receiver, if the query has one, is valid as long as the query.
    announced && unsafe { query.receiver().as_ref() }.is_some_and(|to| to.mydest == pg_sys::CommandDest::DestCopyOut)
}

/// Asks the cache about a query that `claims`, before it is started.
#[cold]
#[inline(never)]
pub fn before_start(query: QueryDesc<'_>) {
    let Some(Stage::Announced { options, .. }) = CURRENT.take() else { return };
    if query.plan().hasModifyingCTE {
        CacheError::not_one_select("a WITH clause that changes data").raise();
    }
    let decision = export::decide(&shmem::required(), query, false);
    CURRENT.replace(Some(Stage::Decided { query: query.address(), options, decision }));
}

/// Returns true if there is an export to begin, once its query has been started.
pub fn is_deciding() -> bool {
    CURRENT.with_borrow(|current| matches!(current, Some(Stage::Decided { .. })))
}

/// Begins the export of a query that has just been started, if the cache was asked about it.
#[cold]
#[inline(never)]
pub fn after_start(query: QueryDesc<'_>) {
    let decided = CURRENT.with_borrow_mut(|current| {
        current.take_if(|stage| matches!(stage, Stage::Decided { query: own, .. } if *own == query.address()))
    });
    let Some(Stage::Decided { options, decision, .. }) = decided else { return };
    let export = Export::begin(query, decision, &options, ToClient::new(options.chunk_bytes));
    // SAFETY: the export was made just now, and lives as long as its query.
    opening_response::announce_bytes(unsafe { (*export).columns() } as u16);
    let receiver = std::ptr::null_mut();
    CURRENT.replace(Some(Stage::Running { query: query.address(), export, receiver }));
}

/// The export of this query, if it has one.
fn running(query: usize) -> Option<*mut Export<ToClient>> {
    CURRENT.with_borrow(|current| match current {
        Some(Stage::Running { query: own, export, .. }) if *own == query => Some(*export),
        _ => None,
    })
}

/// Returns true if this is the query of a COPY that runs.
pub fn exports(query: QueryDesc<'_>) -> bool {
    running(query.address()).is_some()
}

/// Directs the rows of a query that `exports`, and is about to run, to the client. Returns the direction and number of
/// rows to run it for.
#[cold]
#[inline(never)]
pub fn before_run(query: QueryDesc<'_>) -> (pg_sys::ScanDirection::Type, u64) {
    let own = query.receiver();
    // SAFETY: the export lives as long as its query.
    let run = running(query.address()).map(|export| unsafe { (*export).before_run() });
    CURRENT.with_borrow_mut(|current| {
        if let Some(Stage::Running { receiver, .. }) = current {
            *receiver = own;
        }
    });
    run.unwrap_or((pg_sys::ScanDirection::NoMovementScanDirection, 0))
}

/// A query that `exports` has run without an error: ends the stream, and tells the server how many rows it had.
#[cold]
#[inline(never)]
pub fn after_run(query: QueryDesc<'_>) {
    let Some(export) = running(query.address()) else { return };
    // SAFETY: the export lives as long as its query. The receiver is the one that COPY made, which asks for the number
    // of rows.
    unsafe {
        (*export).after_run();
        let receiver = CURRENT.with_borrow(|current| match current {
            Some(Stage::Running { receiver, .. }) => *receiver,
            _ => std::ptr::null_mut(),
        });
        query.set_receiver(receiver);
        if let Some(count) = copy_receiver::count_of(receiver) {
            count.write((*export).rows());
        }
    }
}
