//! The Custom Scan that stands above the plan of a part of a statement whose rows are stored: it hands each row on, and
//! to a receiver, as the executor hands the rows of a statement to its receiver. It belongs to one query of this
//! backend.

use arrow_cache_core::OutOfMemory;
use pgrx::pg_sys::{self, NodeTag};

use super::row_slot::copy_row;
use crate::error::or_raise;
use crate::pg::custom_scan::{ScanKind, Steps};
use crate::pg::error_passing::edge;
use crate::pg::lists::nodes;
use crate::pg::own_execution;
use crate::pg::query_desc::QueryDesc;
use crate::pg::tree_making::{column_like, list_of};

/// The executor node.
#[repr(C)]
struct TapState {
    custom: pg_sys::CustomScanState,
    /// The part, as a query of its own: it is started, and has a receiver, while the tap is.
    part: *mut pg_sys::QueryDesc,
    /// The part has given its last row.
    has_ended: bool,
}

static KIND: ScanKind =
    ScanKind::new(c"ArrowCacheStore", &Steps { create: create_state, begin, next, end, rescan, explain: None });

/// A tap above the plan of a part, without the junk columns of that, in the current memory context.
///
/// # Safety
/// `part` must be about to be started as part of the statement that the tap is in, and outlive its execution.
pub unsafe fn tap(part: QueryDesc<'_>) -> *mut pg_sys::Plan {
    // SAFETY: a valid plan.
    unsafe {
        let below = (*part.plan().as_ptr()).planTree;
        let columns = nodes::<pg_sys::TargetEntry>((*below).targetlist).filter(|target| !(**target).resjunk);
        let vars = |source: i32| {
            list_of(columns.clone().zip(1i16..).map(|(target, number)| {
                let var = column_like(source, number, (*target).expr.cast());
                kept!(pg_sys::makeTargetEntry(var.cast(), number, (*target).resname, false))
            }))
        };
        let mut custom = pg_sys::CustomScan { custom_scan_tlist: vars(pg_sys::OUTER_VAR), ..Default::default() };
        custom.scan.plan = *below;
        let head = &mut custom.scan.plan;
        head.type_ = NodeTag::T_CustomScan;
        head.targetlist = vars(pg_sys::INDEX_VAR);
        head.lefttree = below;
        (head.righttree, head.qual, head.initPlan) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
        (head.parallel_aware, head.parallel_safe, head.async_capable) = (false, false, false);
        or_raise(KIND.planned(custom, part.as_ptr().cast(), std::ptr::null_mut()).ok_or(OutOfMemory))
    }
}

/// The tap below the topmost node of a query that is started, if it has one. Reads a few words and calls nothing.
fn tap_of(query: QueryDesc<'_>) -> Option<*mut TapState> {
    // SAFETY: the nodes of a query under way; only our nodes have our methods.
    unsafe {
        let below = query.plan_state().as_ref()?.lefttree;
        let is_tap = KIND.is_of(below.as_ref()?);
        is_tap.then_some(below.cast())
    }
}

/// The part of a query that is started, as a query of its own, if its rows go through a tap.
pub fn tapped(query: QueryDesc<'_>) -> Option<QueryDesc<'_>> {
    // SAFETY: the part outlives the execution of the query.
    tap_of(query).map(|tap| unsafe { QueryDesc::of_hook((*tap).part) })
}

/// Returns true if the part of a query that is started has given its last row to its tap.
pub fn tap_has_ended(query: QueryDesc<'_>) -> bool {
    // SAFETY: a node of a query under way.
    tap_of(query).is_some_and(|tap| unsafe { (*tap).has_ended })
}

/// What `palloc0` raises jumps over this frame.
unsafe extern "C-unwind" fn create_state(scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: only nodes made by `tap`, and copies of these, have our methods.
    unsafe {
        let state: *mut TapState = KIND.new_state();
        (*state).part = ScanKind::handed(scan).0.cast();
        state.cast()
    }
}

/// Starts the plan of the part. What it raises jumps over this frame.
unsafe extern "C-unwind" fn begin(node: *mut pg_sys::CustomScanState, estate: *mut pg_sys::EState, flags: i32) {
    // SAFETY: the node was made by `create_state`; the part lives longer than the execution.
    unsafe {
        let below = direct!(pg_sys::ExecInitNode((*(*node).ss.ps.plan).lefttree, estate, flags));
        (*node).ss.ps.lefttree = below;
        let part = (*node.cast::<TapState>()).part;
        (*part).estate = estate;
        (*part).planstate = below;
        (*part).tupDesc = (*(*node).ss.ss_ScanTupleSlot).tts_tupleDescriptor;
    }
}

/// The next row of the part. What it raises jumps over this frame, as does what the receiver raises.
unsafe extern "C-unwind" fn next(node: *mut pg_sys::CustomScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the node was made by `create_state`, and has started the plan below it; its slot is a virtual one.
    unsafe {
        let tap = node.cast::<TapState>();
        let slot = (*node).ss.ss_ScanTupleSlot;
        let below = (*node).ss.ps.lefttree;
        edge(|| pg_sys::ExecClearTuple(slot));
        let row = own_execution::step(below);
        if row.is_null() {
            (*tap).has_ended = true;
            return slot;
        }
        edge(|| copy_row(row, slot));
        let receiver = (*(*tap).part).dest;
        if let Some(receive) = (*receiver).receiveSlot {
            direct!(receive(slot, receiver));
        }
        slot
    }
}

unsafe extern "C-unwind" fn end(node: *mut pg_sys::CustomScanState) {
    // SAFETY: as in `next`.
    unsafe {
        let part = (*node.cast::<TapState>()).part;
        (*part).estate = std::ptr::null_mut();
        (*part).planstate = std::ptr::null_mut();
        direct!(pg_sys::ExecEndNode((*node).ss.ps.lefttree));
    }
}

unsafe extern "C-unwind" fn rescan(node: *mut pg_sys::CustomScanState) {
    // SAFETY: as in `next`.
    unsafe {
        (*node.cast::<TapState>()).has_ended = false;
        let below = (*node).ss.ps.lefttree;
        if (*below).chgParam.is_null() {
            direct!(pg_sys::ExecReScan(below));
        }
        direct!(pg_sys::ExecScanReScan(&raw mut (*node).ss));
    }
}

// PostgreSQL sees only the head of the node.
const _: () = assert!(std::mem::offset_of!(TapState, custom) == 0);
