//! Running the plan of one part: started, run and ended by the server's own functions, under the snapshot of the
//! statement. Its rows are given as they come, and stored on the way if they may be. All of it lies in a memory context
//! of its own, which goes when the part has been read. What the server raises unwinds these frames; the abort of the
//! transaction then frees what the server holds.

use std::cell::OnceCell;
use std::ffi::c_char;
use std::rc::Rc;

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::part_plan::{context_below, hash_memory_kilobytes};
use crate::arrow::column::Column;
use crate::capture;
use crate::lookup::parts::{self, PartKey, PlannedPart};
use crate::lookup::{Call, Eligible, Lead, Miss, Task};
use crate::pg::error_passing::keeping;
use crate::pg::query_desc::QueryDesc;
use crate::pg::{compat, server, tuplestore};
use crate::query::Versions;
use crate::query::decomposition::AskedPart;
use crate::query::hashes::EnvironmentHash;
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
    /// The relations that every part reads, beside its leaf.
    pub dimensions: Vec<u32>,
    /// The environment in the keys of its parts; `None` if they are neither looked up nor stored.
    pub environment: Option<EnvironmentHash>,
    /// The definitions by which they were looked up.
    pub versions: Versions,
    /// What is asked of each leaf by the present values; `None` if that is not known.
    pub asked: Option<AskedPart>,
    /// What there is to know of that, once it is asked for; `None` if the parts are not stored.
    pub eligible: OnceCell<Option<Eligible>>,
}

/// The leaf of a part that is run.
#[derive(Clone, Copy)]
pub struct RunLeaf {
    /// One of the bounds that are asked in it is about a partition key.
    pub is_at_end: bool,
    /// What its rows are stored as; `None` if they are not.
    pub key: Option<PartKey>,
}

/// How the rows of a part come.
#[derive(Clone, Copy)]
pub enum Source {
    /// One by one, by steps of this query, whose rows are to be handed to `PartRun::take`.
    Plan(*mut pg_sys::QueryDesc),
    /// All at once, into a tuplestore: other processes have computed them, and nothing but the query may run beside
    /// these.
    Tuples(*mut pg_sys::Tuplestorestate),
}

/// The query of a part under way.
pub struct PartRun {
    desc: *mut pg_sys::QueryDesc,
    context: pg_sys::MemoryContext,
    /// `None` once its run is over.
    pass: Option<capture::Pass<'static>>,
    source: Source,
}

impl PartRun {
    /// Starts the plan of a leaf's query. Runs it, too, if other processes take part. Its rows are stored, if they may be;
    /// others wait for them if `lead` has its claim.
    pub fn start(plan: *mut pg_sys::PlannedStmt, leaf: RunLeaf, surroundings: &Surroundings, lead: Lead) -> Self {
        let state = surroundings.state;
        // SAFETY: the statement runs, so its state is valid, and so is the plan that lies in its memory. The memory of the
        // part is a child of that of the statement.
        unsafe {
            let context = context_below((*state).es_query_cxt);
            let caller = pg_sys::MemoryContextSwitchTo(context);
            let is_parallel = (*plan).parallelModeNeeded;
            let (rows, receiver) = if is_parallel { tuples(context) } else { (std::ptr::null_mut(), nowhere()) };
            let desc = describe(state, plan, receiver);
            let query = QueryDesc::of_hook(desc);
            keeping(|| compat::start_unshown(desc, 0));
            if let Ok(mut miss) = miss(query, leaf, surroundings) {
                miss.lead = Rc::new(lead);
                capture::begin_task(query, Task::Store(miss));
            }
            let pass = capture::before_run(query, pg_sys::ScanDirection::ForwardScanDirection, 0);
            let source = if is_parallel { Source::Tuples(rows) } else { Source::Plan(desc) };
            let mut run = Self { desc, context, pass: Some(pass), source };
            if is_parallel {
                compat::standard_executor_run(desc);
                run.leave_run(true);
            } else {
                run.open_receiver();
            }
            pg_sys::MemoryContextSwitchTo(caller);
            run
        }
    }

    /// How its rows come.
    pub fn source(&self) -> Source {
        self.source
    }

    /// Takes the next row of its plan, to be stored.
    ///
    /// # Safety
    /// The row must be the one that a step of the query has just given.
    pub unsafe fn take(&mut self, row: *mut pg_sys::TupleTableSlot) {
        // SAFETY: the query is under way, with a valid receiver.
        unsafe {
            let receiver = (*self.desc).dest;
            if let Some(receive) = (*receiver).receiveSlot {
                kept!(receive(row, receiver));
            }
        }
    }

    /// Ends it. `is_complete`: its plan has given its last row, so that they can be stored.
    pub fn end(mut self, is_complete: bool) {
        // SAFETY: the query is under way; nobody uses it, nor its memory, after this.
        unsafe {
            let query = QueryDesc::of_hook(self.desc);
            if self.pass.is_some() {
                let receiver = (*self.desc).dest;
                if let Some(shutdown) = (*receiver).rShutdown {
                    kept!(shutdown(receiver));
                }
                self.leave_run(is_complete);
            }
            let desc = self.desc;
            kept!(server::standard_ExecutorFinish(desc));
            capture::end(query);
            kept!(server::standard_ExecutorEnd(desc));
            kept!(pg_sys::FreeQueryDesc(desc));
            if let Source::Tuples(rows) = self.source {
                kept!(pg_sys::tuplestore_end(rows));
            }
            kept!(pg_sys::MemoryContextDelete(self.context));
        }
    }

    /// Has its receiver get ready for rows.
    fn open_receiver(&mut self) {
        // SAFETY: the query was started: it has a receiver and a description of its rows.
        unsafe {
            let (receiver, row_type) = ((*self.desc).dest, (*self.desc).tupDesc);
            let operation = (*self.desc).operation as i32;
            if let Some(startup) = (*receiver).rStartup {
                kept!(startup(receiver, operation, row_type));
            }
        }
    }

    /// Its run is over: what was captured is stored, if that was all.
    fn leave_run(&mut self, is_complete: bool) {
        let Some(pass) = self.pass.take() else { return };
        pass.restore();
        if is_complete {
            capture::after_run(pass);
        }
    }
}

/// The description of a plan that is about to be started in a statement, under its snapshot.
///
/// # Safety
/// `state` must be that of a statement that is started.
unsafe fn describe(
    state: *mut pg_sys::EState,
    plan: *mut pg_sys::PlannedStmt,
    receiver: *mut pg_sys::DestReceiver,
) -> *mut pg_sys::QueryDesc {
    let (no_snapshot, no_environment) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the caller's promise.
    unsafe {
        let (snapshot, text, params) = ((*state).es_snapshot, (*state).es_sourceText, (*state).es_param_list_info);
        kept!(pg_sys::CreateQueryDesc(plan, text, snapshot, no_snapshot, receiver, params, no_environment, 0))
    }
}

/// A tuplestore for the rows of a part, with as much memory as the server gives to a hash table of groups, and a
/// receiver for it.
///
/// # Safety
/// The context must live as long as both.
unsafe fn tuples(context: pg_sys::MemoryContext) -> (*mut pg_sys::Tuplestorestate, *mut pg_sys::DestReceiver) {
    // SAFETY: the caller's promise.
    unsafe {
        let rows = kept!(pg_sys::tuplestore_begin_heap(false, false, hash_memory_kilobytes()));
        let receiver = kept!(pg_sys::CreateDestReceiver(pg_sys::CommandDest::DestTuplestore));
        tuplestore::receive_into_tuplestore(receiver, rows, context);
        (rows, receiver)
    }
}

/// The receiver that does nothing.
fn nowhere() -> *mut pg_sys::DestReceiver {
    // SAFETY: a constant of the server.
    unsafe { pg_sys::None_Receiver }
}

/// What is needed to store the rows of a part that is about to be started.
///
/// # Errors
/// Why they are not stored.
fn miss(part: QueryDesc<'_>, leaf: RunLeaf, surroundings: &Surroundings) -> Result<Box<Miss>, Reason> {
    let environment = surroundings.environment.ok_or(Reason::OwnWrites)?;
    let key = leaf.key.ok_or(Reason::OwnWrites)?;
    let store = shmem::store().ok_or(Reason::NoRoom)?;
    let eligible = surroundings.eligible.get_or_init(|| {
        let query = surroundings.asked.as_ref()?.with_bounds();
        // SAFETY: a query of our own, which nobody has planned.
        let call = unsafe { Call::of_hook(query, surroundings.text, 0, std::ptr::null_mut()) };
        parts::before_planning(&store, &call, true).ok()
    });
    let eligible = eligible.ok_or(Reason::UnsupportedRelation)?;
    let planned = PlannedPart {
        plan: part.plan(),
        snapshot: part.snapshot_data(),
        columns: &surroundings.columns,
        key,
        environment,
        versions: surroundings.versions,
        is_at_end: leaf.is_at_end,
    };
    parts::miss(&store, eligible, &planned)
}
