//! Running the query of one part: planned, started, run and ended by the server's own functions, under the snapshot of the statement. Its
//! rows go into a tuplestore, and are stored on the way if they may be. What the server raises unwinds these frames.

use std::ffi::c_char;

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use crate::arrow::column::Column;
use crate::capture;
use crate::lookup::parts::{self, PartKey};
use crate::lookup::{Call, Eligible, Miss, Task};
use crate::pg::error_passing::kept;
use crate::pg::query_desc::QueryDesc;
use crate::pg::tree::Tree;
use crate::pg::{compat, server, tuplestore};
use crate::shmem;

/// Where the query of a part runs.
pub struct Surroundings {
    /// The state of the statement.
    pub state: *mut pg_sys::EState,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its parts may be stored.
    pub may_store: bool,
}

/// Runs the query of a part to its end. Returns its rows, in a tuplestore that lives as long as the statement.
pub fn run(
    query: *mut pg_sys::Query,
    key: Option<&PartKey>,
    is_of_bounds: bool,
    surroundings: &Surroundings,
) -> *mut pg_sys::Tuplestorestate {
    let state = surroundings.state;
    // SAFETY: the statement runs, so its state is valid. All that is made here lies in its memory, and goes with it after an error; errors of
    // the server leave the memory context to the statement's own clean-up.
    unsafe {
        let caller = pg_sys::MemoryContextSwitchTo((*state).es_query_cxt);
        let (plan, eligible) = plan(query, (*state).es_sourceText);
        let rows = pg_sys::tuplestore_begin_heap(true, false, pg_sys::work_mem);
        let receiver = pg_sys::CreateDestReceiver(pg_sys::CommandDest::DestTuplestore);
        tuplestore::receive_into_tuplestore(receiver, rows, (*state).es_query_cxt);
        let (snapshot, no_environment) = ((*state).es_snapshot, std::ptr::null_mut());
        let (no_params, text) = (std::ptr::null_mut(), (*state).es_sourceText);
        let desc = kept!(server::CreateQueryDesc(
            plan,
            text,
            snapshot,
            std::ptr::null_mut(),
            receiver,
            no_params,
            no_environment,
            0
        ));
        let part = QueryDesc::of_hook(desc);
        let miss = eligible.and_then(|eligible| miss(part, eligible, key?, is_of_bounds, surroundings).ok());
        capture::prepare(part, miss.map(Task::Store));
        kept!(server::standard_ExecutorStart(desc, 0));
        capture::begin(part);
        let pass = capture::before_run(part, pg_sys::ScanDirection::ForwardScanDirection, 0);
        compat::standard_executor_run(desc);
        pass.restore();
        capture::after_run(pass);
        kept!(server::standard_ExecutorFinish(desc));
        capture::end(part);
        kept!(server::standard_ExecutorEnd(desc));
        kept!(server::FreeQueryDesc(desc));
        pg_sys::MemoryContextSwitchTo(caller);
        rows
    }
}

/// The plan of a part's query, and what there is to know for storing its rows, if they may be stored.
///
/// # Safety
/// The query must be one of our own, which nobody has planned; `text` that of the statement.
unsafe fn plan(query: *mut pg_sys::Query, text: *const c_char) -> (*mut pg_sys::PlannedStmt, Option<Eligible>) {
    let options = pg_sys::CURSOR_OPT_PARALLEL_OK as i32;
    // SAFETY: the caller's promise.
    let call = unsafe { Call::of_hook(query, text, options, std::ptr::null_mut()) };
    let eligible = shmem::store().and_then(|store| parts::before_planning(&store, &call).ok());
    (parts::plan(&call), eligible)
}

/// What is needed to store the rows of a part that is about to be started.
fn miss(
    part: QueryDesc<'_>,
    eligible: Eligible,
    key: &PartKey,
    is_of_bounds: bool,
    surroundings: &Surroundings,
) -> Result<Box<Miss>, Reason> {
    if !surroundings.may_store {
        return Err(Reason::OwnWrites);
    }
    let store = shmem::store().ok_or(Reason::NoRoom)?;
    let plan: Tree<'_, pg_sys::PlannedStmt> = part.plan();
    parts::miss(&store, eligible, plan, key, &surroundings.columns, part.snapshot_data(), is_of_bounds)
}
