//! The Custom Scan that gives the rows of a clock-free part, and computes the columns of the answer from each: what the executor calls. Its nodes
//! belong to one query of this backend.

use pgrx::pg_sys::{self, NodeTag};

use super::rows_of_part::{RowsOfPart, Step};
use crate::lookup::clock_free::Reading;
use crate::pg::error_passing::{direct, edge};
use crate::pg::lists::{integers, node_at};
use crate::pg::server;
use crate::pg::tree_making::{list_of, list_of_numbers};
use crate::query::plan_kinds::CLOCK_NAME;
use crate::serve::next_of_plan;

/// The executor node.
#[repr(C)]
pub struct ClockScanState {
    custom: pg_sys::CustomScanState,
    /// Null before the scan is started.
    rows: *mut RowsOfPart,
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
    // SAFETY: the node was made by `create_state` from a node that has a plan in its private list.
    unsafe {
        edge(|| {
            let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
            let Some(plan) = node_at::<pg_sys::PlannedStmt>((*scan).custom_private, 0) else { return };
            let row_type = (*(*node).ss.ss_ScanTupleSlot).tts_tupleDescriptor;
            let rows = RowsOfPart::make(state, plan, reading_of(scan), row_type);
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

// PostgreSQL sees only the head of the node.
const _: () = assert!(std::mem::offset_of!(ClockScanState, custom) == 0);
