//! Slots that still hold the row that a node changes, as it was read. Reading it again would take a third of what the
//! heap takes to delete it. Keeps nothing.

use std::ffi::c_void;

use pgrx::pg_sys::{self, NodeTag};

use crate::pg::compat::tree::walkers::planstate_tree_walker;

/// The scan of a target that is looked for.
struct Wanted {
    /// The number of the target among the relations of the statement.
    number: u32,
    /// Where the scan has its row; null before it is found.
    slot: *mut pg_sys::TupleTableSlot,
}

/// The slot in which a scan has the rows of a target that a node changes; null if there is none.
///
/// # Safety
/// The query of the node must be under way, and the target be one of the node's own, of a heap table.
pub unsafe fn slot_of_scan(
    node: *mut pg_sys::ModifyTableState,
    target: *const pg_sys::ResultRelInfo,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the caller's promise. The context outlives the walk, of which no frame has a destructor pending.
    unsafe {
        let mut wanted = Wanted { number: (*target).ri_RangeTableIndex, slot: std::ptr::null_mut() };
        let context = (&raw mut wanted).cast();
        kept!(planstate_tree_walker(node.cast(), Some(visit), context));
        wanted.slot
    }
}

/// Looks at a node, and at those below it. Returns true if it is the scan that is looked for.
///
/// # Safety
/// `state` must be a node of a query that is under way, `wanted` a `Wanted`. An error jumps over this frame.
unsafe extern "C-unwind" fn visit(state: *mut pg_sys::PlanState, wanted: *mut c_void) -> bool {
    // SAFETY: the caller's promise; the state of a scan begins with a `ScanState`, and its plan with a `Scan`.
    unsafe {
        // These scan the heap itself, so their slots hold the tuples of pages that are pinned.
        let is_scan = matches!(
            (*state).type_,
            NodeTag::T_SeqScanState
                | NodeTag::T_IndexScanState
                | NodeTag::T_BitmapHeapScanState
                | NodeTag::T_TidScanState
                | NodeTag::T_TidRangeScanState
        );
        let own = wanted.cast::<Wanted>();
        if is_scan && (*(*state).plan.cast::<pg_sys::Scan>()).scanrelid == (*own).number {
            (*own).slot = (*state.cast::<pg_sys::ScanState>()).ss_ScanTupleSlot;
            return true;
        }
        direct!(planstate_tree_walker(state, Some(visit), wanted))
    }
}

/// Returns true if a slot holds a version of a row, by its place. No other version has taken the place since: the slot
/// keeps the page from being cleaned, or the snapshot that has seen the row keeps its version.
///
/// # Safety
/// Null, or a slot for versions in the heap.
#[inline]
pub unsafe fn holds(slot: *const pg_sys::TupleTableSlot, version: pg_sys::ItemPointerData) -> bool {
    // SAFETY: the caller's promise.
    unsafe { slot.as_ref() }.is_some_and(|slot| {
        let place = |at: pg_sys::ItemPointerData| (at.ip_blkid.bi_hi, at.ip_blkid.bi_lo, at.ip_posid);
        u32::from(slot.tts_flags) & pg_sys::TTS_FLAG_EMPTY == 0 && place(slot.tts_tid) == place(version)
    })
}
