//! Running the plan of one part, to its end, by the server's own functions, under the snapshot of the statement. Its
//! rows are kept for the scan, and stored on the way if they may be. All of it lies in a memory context of its own,
//! which goes when the part has been read. What the server raises unwinds these frames; the abort of the transaction
//! then frees what the server holds.

use std::cell::OnceCell;
use std::ffi::c_char;
use std::rc::Rc;

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::part_plan::PART;
use crate::arrow::column::Column;
use crate::capture;
use crate::lookup::stored_parts::{self, PartKey, PlannedPart};
use crate::lookup::{Call, Eligible, Miss, Task};
use crate::pg::error_passing::keeping;
use crate::pg::memory_context::context_below;
use crate::pg::query_desc::QueryDesc;
use crate::pg::tree::Tree;
use crate::pg::{compat, server, tuplestore};
use crate::query::Versions;
use crate::query::decomposition::AskedPart;
use crate::query::hashes::EnvironmentHash;
use crate::serve::slot_values;
use crate::shmem;

/// Where the query of a part runs.
pub struct Surroundings {
    /// The state of the statement; null before its scan is started.
    pub state: *mut pg_sys::EState,
    /// The snapshot of the statement.
    pub snapshot: pg_sys::Snapshot,
    /// The text of the statement.
    pub text: *const c_char,
    /// A memory context that lives as long as the statement.
    pub context: pg_sys::MemoryContext,
    /// The columns of the parts.
    pub columns: Rc<[Column]>,
    /// The environment in the keys of its parts; `None` if they are neither looked up nor stored.
    pub environment: Option<EnvironmentHash>,
    /// The definitions by which they were looked up.
    pub versions: Versions,
    /// What is asked of each leaf by the present values; `None` if that is not known.
    pub asked: Option<AskedPart>,
    /// What there is to know of that, once it is asked for; `None` if the parts are not stored.
    pub eligible: OnceCell<Option<Eligible>>,
}

/// The rows of a part that was run.
pub struct Computed {
    rows: *mut pg_sys::Tuplestorestate,
    context: pg_sys::MemoryContext,
}

/// How the rows of a part are computed.
pub struct Source {
    /// The plan.
    pub plan: *mut pg_sys::PlannedStmt,
    /// A plan that tells what the rows rest on.
    pub reads: *mut pg_sys::PlannedStmt,
    /// What the plan finds by names; null for nothing.
    pub environment: *mut pg_sys::QueryEnvironment,
    /// Rows that it reads by a name, which go when it has run; null for none.
    pub rows: *mut pg_sys::Tuplestorestate,
}

impl Source {
    /// A plan that reads relations alone.
    pub const fn plan(plan: *mut pg_sys::PlannedStmt) -> Self {
        Self { plan, reads: plan, environment: std::ptr::null_mut(), rows: std::ptr::null_mut() }
    }
}

impl Computed {
    /// Computes a part as `source` says, which is made in the memory of the part. Its rows are stored as the `key`
    /// says, if they may be. `rewinds`: they are read more than once.
    pub fn run(
        source: impl FnOnce() -> Source,
        key: Option<PartKey>,
        surroundings: &Surroundings,
        rewinds: bool,
    ) -> Self {
        let state = surroundings.state;
        let none = std::ptr::null_mut();
        // SAFETY: the statement runs, so its state is valid, and so is the plan that lies in its memory. The memory of
        // the part is a child of that of the statement. Nobody uses the query after its end.
        unsafe {
            let context = context_below((*state).es_query_cxt, PART);
            let caller = pg_sys::MemoryContextSwitchTo(context);
            let source = source();
            let rows = kept!(pg_sys::tuplestore_begin_heap(rewinds, false, hash_memory_kilobytes()));
            let receiver = kept!(pg_sys::CreateDestReceiver(pg_sys::CommandDest::DestTuplestore));
            tuplestore::receive_into_tuplestore(receiver, rows, context);
            let (snapshot, text, params) = ((*state).es_snapshot, (*state).es_sourceText, (*state).es_param_list_info);
            let desc = kept!(pg_sys::CreateQueryDesc(
                source.plan,
                text,
                snapshot,
                none,
                receiver,
                params,
                source.environment,
                0
            ));
            let query = QueryDesc::of_hook(desc);
            keeping(|| compat::start_unshown(desc, 0));
            if let Some(Ok(miss)) =
                Tree::enter(source.reads).map(|plan| miss(plan, query.snapshot_data(), key, surroundings))
            {
                capture::begin_task(query, Task::Store(miss));
            }
            let pass = capture::before_run(query, pg_sys::ScanDirection::ForwardScanDirection, 0);
            compat::standard_executor_run(desc);
            pass.restore();
            capture::after_run(pass);
            kept!(server::standard_ExecutorFinish(desc));
            capture::end(query);
            kept!(server::standard_ExecutorEnd(desc));
            kept!(pg_sys::FreeQueryDesc(desc));
            if !source.rows.is_null() {
                kept!(pg_sys::tuplestore_end(source.rows));
            }
            pg_sys::MemoryContextSwitchTo(caller);
            Self { rows, context }
        }
    }

    /// How many rows there are.
    pub fn count(&self) -> i64 {
        // SAFETY: made by `run`.
        unsafe { kept!(pg_sys::tuplestore_tuple_count(self.rows)) }
    }

    /// Writes the next row into the values of a slot. False at the end.
    ///
    /// # Safety
    /// `tuple` must be a slot for minimal tuples, `slot` a virtual one, both with the columns of the parts; behind them
    /// `tuple` may have more.
    pub unsafe fn next(&self, tuple: *mut pg_sys::TupleTableSlot, slot: *mut pg_sys::TupleTableSlot) -> bool {
        // SAFETY: the caller's promise. The values of a minimal tuple stay until the next one takes its place.
        unsafe {
            if !self.fetch(tuple) {
                return false;
            }
            let ((values, nulls), (from_values, from_nulls)) = (slot_values(slot), slot_values(tuple));
            values.copy_from_slice(&from_values[..values.len()]);
            nulls.copy_from_slice(&from_nulls[..nulls.len()]);
            true
        }
    }

    /// Puts the next row, with all its values, into a slot. False at the end.
    ///
    /// # Safety
    /// A slot for minimal tuples with the columns of the plan that was run.
    pub unsafe fn fetch(&self, tuple: *mut pg_sys::TupleTableSlot) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            let is_there = kept!(pg_sys::tuplestore_gettupleslot(self.rows, true, false, tuple));
            if is_there {
                pg_sys::slot_getallattrs(tuple);
            }
            is_there
        }
    }

    /// Goes back to the first row, which `run` was asked for.
    pub fn rewind(&self) {
        // SAFETY: made by `run`.
        unsafe { kept!(pg_sys::tuplestore_rescan(self.rows)) };
    }

    /// Frees the rows.
    ///
    /// # Safety
    /// No slot shows one of them.
    pub unsafe fn free(self) {
        // SAFETY: made by `run`, and used no more.
        unsafe {
            kept!(pg_sys::tuplestore_end(self.rows));
            kept!(pg_sys::MemoryContextDelete(self.context));
        }
    }
}

/// How much memory a hash table may take, by the settings.
fn hash_memory_kilobytes() -> i32 {
    // SAFETY: plain globals of the backend.
    unsafe { (f64::from(pg_sys::work_mem) * pg_sys::hash_mem_multiplier) as i32 }
}

/// What is needed to store the rows of a part that has been started.
///
/// # Errors
/// Why they are not stored.
pub fn miss(
    plan: Tree<'_, pg_sys::PlannedStmt>,
    snapshot: Option<&pg_sys::SnapshotData>,
    key: Option<PartKey>,
    surroundings: &Surroundings,
) -> Result<Box<Miss>, Reason> {
    let environment = surroundings.environment.ok_or(Reason::OwnWrites)?;
    let key = key.ok_or(Reason::OwnWrites)?;
    let store = shmem::store().ok_or(Reason::NoRoom)?;
    let eligible = surroundings.eligible.get_or_init(|| {
        let query = surroundings.asked.as_ref()?.with_bounds(u64::MAX);
        // SAFETY: a query of our own, which nobody has planned.
        let call = unsafe { Call::of_hook(query, surroundings.text, 0, std::ptr::null_mut()) };
        stored_parts::before_planning(&store, &call, true).ok()
    });
    let eligible = eligible.ok_or(Reason::UnsupportedRelation)?;
    let planned = PlannedPart {
        plan,
        snapshot,
        columns: &surroundings.columns,
        key,
        environment,
        versions: surroundings.versions,
    };
    stored_parts::miss(&store, eligible, &planned)
}
