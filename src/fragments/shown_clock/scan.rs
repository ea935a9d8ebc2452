//! The Custom Scan that gives the rows of a clock-free part, and computes the columns of the answer from each: what the executor calls. Its nodes
//! belong to one query of this backend.

use std::ffi::c_void;

use pgrx::pg_sys::{self, NodeTag};

use crate::error::or_raise;
use crate::fragments::part_run::{PartRun, Source, with_description};
use crate::fragments::parts::{copy_values, next_tuple};
use crate::lookup::clock_free::{Answer, Reading};
use crate::lookup::{self, Task};
use crate::pg::error_passing::{direct, edge, kept};
use crate::pg::lists::{integers, node_at};
use crate::pg::server;
use crate::pg::tree::Tree;
use crate::pg::tree_making::{list_of, list_of_numbers};
use crate::query::plan_kinds::CLOCK_NAME;
use crate::query::row_bound;
use crate::serve::{Hold, next_of_plan, slot_values};
use crate::session;

/// The executor node.
#[repr(C)]
pub struct ClockScanState {
    custom: pg_sys::CustomScanState,
    /// Null before the scan is started.
    rows: *mut RowsOfPart,
}

/// Where the rows come from.
enum Rows {
    /// From the store: pinned.
    Stored(*mut Hold),
    /// From running the plan of the part, which is still to be started.
    Waiting,
    /// From running it.
    Running(PartRun),
    /// They were read.
    Read,
}

/// The rows of the part; dropped with the memory of the statement.
struct RowsOfPart {
    callback: pg_sys::MemoryContextCallback,
    state: *mut pg_sys::EState,
    reading: Reading,
    /// The plan of the part.
    plan: *mut pg_sys::PlannedStmt,
    rows: Rows,
    /// What to do while it runs.
    task: Option<Task>,
    /// How many rows it has given while it runs.
    taken: u64,
    /// The most rows that it can give, if its plan proves that: a client that reads with a limit of rows leaves before the end is seen.
    most: Option<u64>,
    /// Carries the rows of a tuplestore.
    tuple: *mut pg_sys::TupleTableSlot,
    is_stored: bool,
}

struct ScanMethods(pg_sys::CustomScanMethods);
struct ExecMethods(pg_sys::CustomExecMethods);

// SAFETY: constant tables of function pointers and literals.
unsafe impl Sync for ScanMethods {}
// SAFETY: as above.
unsafe impl Sync for ExecMethods {}

static SCAN_METHODS: ScanMethods = ScanMethods(pg_sys::CustomScanMethods {
    CustomName: CLOCK_NAME.as_ptr(),
    CreateCustomScanState: Some(create_state),
});

static EXEC_METHODS: ExecMethods = ExecMethods(pg_sys::CustomExecMethods {
    CustomName: CLOCK_NAME.as_ptr(),
    BeginCustomScan: Some(begin),
    ExecCustomScan: Some(next),
    EndCustomScan: Some(end),
    ReScanCustomScan: Some(rescan),
    MarkPosCustomScan: None,
    RestrPosCustomScan: None,
    EstimateDSMCustomScan: None,
    InitializeDSMCustomScan: None,
    ReInitializeDSMCustomScan: None,
    InitializeWorkerCustomScan: None,
    ShutdownCustomScan: None,
    ExplainCustomScan: Some(show),
});

/// Makes the node type known by name.
pub fn register() {
    // SAFETY: a constant table, registered once while libraries are preloaded.
    unsafe { pg_sys::RegisterCustomScanMethods(&raw const SCAN_METHODS.0) };
}

/// A plan node over the plan of a part. `columns` are target entries for the columns of the part, and `reading` tells when its rows will be read.
pub fn plan_node(
    columns: *mut pg_sys::List,
    part: *mut pg_sys::PlannedStmt,
    reading: Reading,
) -> *mut pg_sys::CustomScan {
    let scan = pg_sys::CustomScan {
        scan: pg_sys::Scan { plan: pg_sys::Plan { type_: NodeTag::T_CustomScan, ..Default::default() }, scanrelid: 0 },
        custom_scan_tlist: columns,
        methods: &raw const SCAN_METHODS.0,
        ..Default::default()
    };
    // SAFETY: as many bytes as are written; a new list.
    unsafe {
        let place: *mut pg_sys::CustomScan = pg_sys::palloc(size_of::<pg_sys::CustomScan>()).cast();
        place.write(scan);
        (*place).custom_private = private_list(part, reading);
        place
    }
}

/// What a node carries.
fn private_list(part: *mut pg_sys::PlannedStmt, reading: Reading) -> *mut pg_sys::List {
    list_of::<pg_sys::Node>([part.cast(), list_of_numbers([reading.number()]).cast()])
}

/// Changes when the rows of the part will be read.
///
/// # Safety
/// A valid plan, whose topmost node `plan_node` has made, and which nobody else has.
pub unsafe fn set_reading(plan: *mut pg_sys::PlannedStmt, part: *mut pg_sys::PlannedStmt, reading: Reading) {
    // SAFETY: the caller's promise.
    unsafe { (*(*plan).planTree.cast::<pg_sys::CustomScan>()).custom_private = private_list(part, reading) };
}

/// When the rows of the part are read.
///
/// # Safety
/// A node that `plan_node` has made.
unsafe fn reading_of(scan: *mut pg_sys::CustomScan) -> Reading {
    // SAFETY: the caller's promise.
    unsafe {
        let numbers = node_at::<pg_sys::List>((*scan).custom_private, 1);
        numbers.and_then(|numbers| integers(numbers).next()).map_or(Reading::InParts, Reading::of_number)
    }
}

/// The plan of the part below a plan that applies the clock.
///
/// # Safety
/// A valid plan, whose topmost node `plan_node` has made.
pub unsafe fn part_of(plan: *mut pg_sys::PlannedStmt) -> Option<*mut pg_sys::PlannedStmt> {
    // SAFETY: the caller's promise.
    unsafe { node_at((*(*plan).planTree.cast::<pg_sys::CustomScan>()).custom_private, 0) }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn create_state(_scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: zeroed memory is a state that is not started.
    unsafe {
        let state: *mut ClockScanState = pg_sys::palloc0(size_of::<ClockScanState>()).cast();
        (*state).custom.ss.ps.type_ = NodeTag::T_CustomScanState;
        (*state).custom.methods = &raw const EXEC_METHODS.0;
        state.cast()
    }
}

/// Looks the part up, under the snapshot of the statement.
unsafe extern "C-unwind" fn begin(node: *mut pg_sys::CustomScanState, state: *mut pg_sys::EState, _flags: i32) {
    // SAFETY: the node was made by `create_state` from a node that has a plan in its private list. The callback lies in the memory whose end it
    // reports.
    unsafe {
        edge(|| {
            let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
            let Some(plan) = node_at::<pg_sys::PlannedStmt>((*scan).custom_private, 0) else { return };
            let context = (*state).es_query_cxt;
            let rows: *mut RowsOfPart = pg_sys::MemoryContextAlloc(context, size_of::<RowsOfPart>()).cast();
            let row_type = (*(*node).ss.ss_ScanTupleSlot).tts_tupleDescriptor;
            rows.write(RowsOfPart {
                callback: pg_sys::MemoryContextCallback {
                    func: Some(context_gone),
                    arg: rows.cast(),
                    next: std::ptr::null_mut(),
                },
                state,
                reading: reading_of(scan),
                plan,
                rows: Rows::Waiting,
                task: None,
                taken: 0,
                most: None,
                tuple: pg_sys::MakeSingleTupleTableSlot(row_type, &raw const pg_sys::TTSOpsMinimalTuple),
                is_stored: false,
            });
            pg_sys::MemoryContextRegisterResetCallback(context, &raw mut (*rows).callback);
            (*node.cast::<ClockScanState>()).rows = rows;
            (*rows).look_up();
        });
    }
}

/// The next row, projected.
unsafe extern "C-unwind" fn next(node: *mut pg_sys::CustomScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the node was made by `create_state`. What computing raises jumps over this frame.
    unsafe { direct!(server::ExecScan(&raw mut (*node).ss, Some(next_of_part), Some(holds))) }
}

/// What comes next.
#[derive(Clone, Copy)]
enum Step {
    Filled,
    End,
    /// This query is to be taken one step on.
    Run(*mut pg_sys::QueryDesc),
}

/// The next row of the part. What a step of its plan raises jumps over this frame.
unsafe extern "C-unwind" fn next_of_part(node: *mut pg_sys::ScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: called by `next` with its own node; the slot of a custom scan is a virtual one. A query that is to be taken on is under way, and
    // works in its own memory.
    unsafe {
        let slot = (*node).ss_ScanTupleSlot;
        let scan = node.cast::<ClockScanState>();
        edge(|| pg_sys::ExecClearTuple(slot));
        let step = edge(|| (*scan).rows.as_mut().map_or(Step::End, |rows| rows.next_or_previous(slot)));
        let Step::Run(query) = step else { return slot };
        let caller = pg_sys::MemoryContextSwitchTo((*(*query).estate).es_query_cxt);
        let row = next_of_plan(query, pg_sys::ScanDirection::ForwardScanDirection);
        pg_sys::MemoryContextSwitchTo(caller);
        edge(|| {
            if let Some(rows) = (*scan).rows.as_mut() {
                rows.take(row, slot);
            }
        });
        slot
    }
}

/// Rows are never checked again: nobody locks them.
unsafe extern "C-unwind" fn holds(_node: *mut pg_sys::ScanState, _slot: *mut pg_sys::TupleTableSlot) -> bool {
    true
}

unsafe extern "C-unwind" fn end(node: *mut pg_sys::CustomScanState) {
    // SAFETY: the node was made by `create_state`; its rows lie in the memory of the query, which is still there.
    unsafe {
        edge(|| {
            if let Some(rows) = (*node.cast::<ClockScanState>()).rows.as_mut() {
                rows.end();
            }
        });
    }
}

/// Reads the rows once more: those that were computed are computed again, and not stored.
unsafe extern "C-unwind" fn rescan(node: *mut pg_sys::CustomScanState) {
    // SAFETY: as in `end`.
    unsafe {
        edge(|| {
            if let Some(rows) = (*node.cast::<ClockScanState>()).rows.as_mut() {
                rows.rewind();
            }
        });
        direct!(server::ExecScanReScan(&raw mut (*node).ss));
    }
}

/// Does a started query that applies the clock read a stored answer?
///
/// # Safety
/// A started query, whose topmost node is such a scan.
pub unsafe fn reads_stored(query: *mut pg_sys::QueryDesc) -> bool {
    // SAFETY: the caller's promise; the rows live as long as the query.
    unsafe { (*(*query).planstate.cast::<ClockScanState>()).rows.as_ref().is_some_and(|rows| rows.is_stored) }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn show(
    node: *mut pg_sys::CustomScanState,
    _ancestors: *mut pg_sys::List,
    explain: *mut pg_sys::ExplainState,
) {
    // SAFETY: EXPLAIN's own state; it runs before ExecutorEnd.
    unsafe {
        if let Some(rows) = (*node.cast::<ClockScanState>()).rows.as_ref() {
            pg_sys::ExplainPropertyBool(c"Stored".as_ptr(), rows.is_stored, explain);
        }
    }
}

impl RowsOfPart {
    /// Looks the answer of the part up.
    ///
    /// # Safety
    /// The statement is being started, with a registered snapshot.
    unsafe fn look_up(&mut self) {
        if self.reading == Reading::AtOnce && !session::at_top_level() {
            return;
        }
        // SAFETY: the caller's promise. The descriptor serves the question alone.
        let answer = unsafe {
            let context = (*self.state).es_query_cxt;
            with_description(self.state, self.plan, |query| lookup::clock_free::at_start(query, context, self.reading))
        };
        match answer {
            Answer::Stored(hold) => {
                self.rows = Rows::Stored(hold);
                self.is_stored = true;
            }
            Answer::Run(task) => self.task = task,
        }
    }

    /// The next row, or the one before if the statement is read backward.
    ///
    /// # Safety
    /// The slot must be a virtual one with the columns of the part.
    unsafe fn next_or_previous(&mut self, slot: *mut pg_sys::TupleTableSlot) -> Step {
        // SAFETY: the statement runs; the caller's promise. Holds last until the part was read.
        unsafe {
            if (*self.state).es_direction != pg_sys::ScanDirection::BackwardScanDirection {
                return self.next(slot);
            }
            // Only statements whose part is stored are read backward.
            let Rows::Stored(hold) = &self.rows else { return Step::End };
            let (values, nulls) = slot_values(slot);
            if !(**hold).rows().is_some_and(|rows| or_raise(rows.previous(values, nulls))) {
                return Step::End;
            }
            pg_sys::ExecStoreVirtualTuple(slot);
            Step::Filled
        }
    }

    /// # Safety
    /// The slot must be a virtual one with the columns of the part.
    unsafe fn next(&mut self, slot: *mut pg_sys::TupleTableSlot) -> Step {
        if matches!(self.rows, Rows::Waiting) {
            // SAFETY: the statement runs.
            let run = unsafe { PartRun::of_plan(self.state, self.plan, |_query| self.task.take()) };
            self.rows = Rows::Running(run);
            self.taken = 0;
            self.most = self.most_rows();
        }
        // SAFETY: the caller's promise; holds and tuplestores last until the part was read.
        let filled = unsafe {
            match &self.rows {
                Rows::Stored(hold) => {
                    let (values, nulls) = slot_values(slot);
                    (**hold).rows().is_some_and(|rows| or_raise(rows.next(values, nulls)))
                }
                Rows::Running(run) => match run.source() {
                    Source::Plan(query) => return Step::Run(query),
                    Source::Tuples(rows) => next_tuple(rows, self.tuple, slot),
                },
                Rows::Waiting | Rows::Read => false,
            }
        };
        if filled {
            // SAFETY: all values were written.
            unsafe { pg_sys::ExecStoreVirtualTuple(slot) };
            return Step::Filled;
        }
        self.leave();
        Step::End
    }

    /// Takes the row that a step has given, null for the end.
    ///
    /// # Safety
    /// The row must be one of the query that `next` has asked for; the slot as for `next`.
    unsafe fn take(&mut self, row: *mut pg_sys::TupleTableSlot, slot: *mut pg_sys::TupleTableSlot) {
        if row.is_null() {
            return self.leave();
        }
        // SAFETY: the caller's promise.
        unsafe {
            if let Rows::Running(run) = &mut self.rows {
                run.take(row);
            }
            copy_values(row, slot);
            pg_sys::ExecStoreVirtualTuple(slot);
            self.taken += 1;
            if self.most == Some(self.taken) {
                // The values lie in the memory of the part, which goes.
                if let Some(materialize) = (*(*slot).tts_ops).materialize {
                    kept!(materialize(slot));
                }
                self.leave();
            }
        }
    }

    /// The most rows that the part can give, if its plan, which is started, proves that.
    fn most_rows(&self) -> Option<u64> {
        if self.reading == Reading::AtOnce {
            return None;
        }
        // SAFETY: the plan and the values live as long as the statement.
        unsafe { row_bound::of(Tree::enter(self.plan)?, Tree::enter((*self.state).es_param_list_info)) }
    }

    /// The last row was read.
    fn leave(&mut self) {
        if matches!(self.rows, Rows::Running(_))
            && let Rows::Running(run) = std::mem::replace(&mut self.rows, Rows::Read)
        {
            // SAFETY: a slot of ours, which may show a row of the part's memory.
            unsafe { pg_sys::ExecClearTuple(self.tuple) };
            run.end(true);
        }
    }

    fn rewind(&mut self) {
        match std::mem::replace(&mut self.rows, Rows::Waiting) {
            Rows::Stored(hold) => {
                // SAFETY: a hold lasts as long as the statement.
                if let Some(rows) = unsafe { (*hold).rows() } {
                    rows.rewind();
                }
                self.rows = Rows::Stored(hold);
            }
            Rows::Running(run) => run.end(false),
            Rows::Waiting | Rows::Read => {}
        }
    }

    fn end(&mut self) {
        match std::mem::replace(&mut self.rows, Rows::Read) {
            // SAFETY: a hold was made for this statement, and is used no more.
            Rows::Stored(hold) => unsafe { (*hold).release() },
            Rows::Running(run) => run.end(false),
            Rows::Waiting | Rows::Read => {}
        }
        self.task = None;
    }
}

/// The memory of the statement goes: its end, or an error. Frees Rust memory and does nothing else.
unsafe extern "C-unwind" fn context_gone(rows: *mut c_void) {
    // SAFETY: registered with the address of the rows, which the context still contains.
    unsafe {
        let rows = rows.cast::<RowsOfPart>();
        (*rows).task = None;
        drop(std::mem::replace(&mut (*rows).rows, Rows::Read));
    }
}

// PostgreSQL sees only the head of the node.
const _: () = assert!(std::mem::offset_of!(ClockScanState, custom) == 0);
