//! The Custom Scan that gives the rows of all parts: what the executor calls. Its nodes belong to one query of this
//! backend.

use std::ffi::CStr;

use pgrx::pg_sys::{self, NodeTag};

use super::parts::{Counts, Parts};
use super::recipe::Recipe;
use crate::pg::custom_scan::{ScanKind, Steps};
use crate::pg::error_passing::edge;
use crate::pg::lists::nodes;
use crate::pg::row_type::RowType;
use crate::pg::tree::Tree;
use crate::pg::tree_making::list_of;
use crate::query::opened_relations::SCAN_NAME;
use crate::query::scan_of_parts::{StateOfParts, scan_of_parts};

/// The executor node.
#[repr(C)]
pub struct FragmentScanState {
    head: StateOfParts,
    /// Null before the scan is started.
    parts: *mut Parts,
    /// The tables that are held open.
    open: *mut pg_sys::List,
}

static KIND: ScanKind =
    ScanKind::new(SCAN_NAME, &Steps { create: create_state, begin, next, end, rescan, explain: Some(show) });

/// Makes the node type known by name.
pub fn register() {
    KIND.register();
}

/// A plan node that gives the rows of a recipe's parts. `columns` are target entries for the columns of the parts.
pub fn plan_node(columns: *mut pg_sys::List, recipe: *mut pg_sys::List) -> *mut pg_sys::CustomScan {
    let scan = pg_sys::CustomScan {
        scan: pg_sys::Scan { plan: pg_sys::Plan { type_: NodeTag::T_CustomScan, ..Default::default() }, scanrelid: 0 },
        custom_private: recipe,
        custom_scan_tlist: columns,
        methods: KIND.methods(),
        ..Default::default()
    };
    // SAFETY: as many bytes as are written.
    unsafe {
        let place: *mut pg_sys::CustomScan = kept!(pg_sys::palloc(size_of::<pg_sys::CustomScan>())).cast();
        place.write(scan);
        place
    }
}

/// The recipe of a plan node of ours.
///
/// # Safety
/// A node that `plan_node` has made, or a copy of it, which outlives the result.
unsafe fn recipe_of(scan: *const pg_sys::CustomScan) -> Option<Recipe> {
    // SAFETY: the caller's promise.
    unsafe { Recipe::of_list((*scan).custom_private) }
}

/// The names of the columns by which the parts of a plan are grouped, if they are in a grain.
pub fn grain_of(plan: Tree<'_, pg_sys::PlannedStmt>) -> Option<Vec<&CStr>> {
    let scan = scan_of_parts(plan)?;
    // SAFETY: a scan of parts is ours, and part of the plan.
    let recipe = unsafe { recipe_of(scan.as_ptr()) }.filter(|recipe| recipe.grain != 0)?;
    Some(recipe.part.key_names())
}

/// What `palloc0` raises jumps over this frame.
unsafe extern "C-unwind" fn create_state(_scan: *mut pg_sys::CustomScan) -> *mut pg_sys::Node {
    // SAFETY: zeroed memory is a state that is not started.
    unsafe { KIND.new_state::<FragmentScanState>().cast() }
}

/// Holds open what the executor of an undivided plan would hold open, and looks for the stored parts.
unsafe extern "C-unwind" fn begin(node: *mut pg_sys::CustomScanState, estate: *mut pg_sys::EState, _flags: i32) {
    // SAFETY: the node was made by `create_state` from a node with a recipe; planning has locked the tables. The
    // references are given back by `end`, or by the resource owner of the portal.
    unsafe {
        edge(|| {
            let scan = node.cast::<FragmentScanState>();
            let plan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
            let row_type = RowType::of((*(*node).ss.ss_ScanTupleSlot).tts_tupleDescriptor);
            let Some(parts) = Parts::begin((*plan).custom_private, estate, row_type) else { return };
            for relation in (*parts).relations() {
                let open = kept!(pg_sys::relation_open(relation, pg_sys::NoLock as _));
                (*scan).open = kept!(pg_sys::lappend((*scan).open, open.cast()));
            }
            (*scan).parts = parts;
            (*scan).head.left_out = (*parts).left_out();
        });
    }
}

/// The next row, projected and filtered as the plan says.
unsafe extern "C-unwind" fn next(node: *mut pg_sys::CustomScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the node was made by `create_state`. What computing raises jumps over this frame.
    unsafe { direct!(pg_sys::ExecScan(&raw mut (*node).ss, Some(next_of_parts), Some(holds))) }
}

/// The next row of the parts, as they give it.
unsafe extern "C-unwind" fn next_of_parts(node: *mut pg_sys::ScanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: called by `next` with its own node; the slot of a custom scan is a virtual one.
    unsafe {
        let slot = (*node).ss_ScanTupleSlot;
        let scan = node.cast::<FragmentScanState>();
        edge(|| {
            pg_sys::ExecClearTuple(slot);
            if let Some(parts) = (*scan).parts.as_mut() {
                parts.next(slot);
            }
        });
        slot
    }
}

/// Rows of parts are never checked again: nobody locks them.
unsafe extern "C-unwind" fn holds(_node: *mut pg_sys::ScanState, _slot: *mut pg_sys::TupleTableSlot) -> bool {
    true
}

unsafe extern "C-unwind" fn end(node: *mut pg_sys::CustomScanState) {
    // SAFETY: the node was made by `create_state`; its parts lie in the memory of the query, which is still there.
    unsafe {
        edge(|| {
            let scan = node.cast::<FragmentScanState>();
            if let Some(parts) = (*scan).parts.as_mut() {
                parts.end();
            }
            for relation in nodes::<pg_sys::RelationData>((*scan).open) {
                kept!(pg_sys::relation_close(relation, pg_sys::NoLock as _));
            }
        });
    }
}

unsafe extern "C-unwind" fn rescan(node: *mut pg_sys::CustomScanState) {
    // SAFETY: as in `end`.
    unsafe {
        edge(|| {
            if let Some(parts) = (*node.cast::<FragmentScanState>()).parts.as_mut() {
                parts.rewind();
            }
        });
        direct!(pg_sys::ExecScanReScan(&raw mut (*node).ss));
    }
}

/// EXPLAIN shows how many parts are stored, and how many were, or would be, computed; and the keys of their grain.
unsafe extern "C-unwind" fn show(
    node: *mut pg_sys::CustomScanState,
    _ancestors: *mut pg_sys::List,
    explain: *mut pg_sys::ExplainState,
) {
    let body = || {
        // SAFETY: as in `end`: EXPLAIN runs before ExecutorEnd.
        unsafe {
            if let Some(parts) = (*node.cast::<FragmentScanState>()).parts.as_ref() {
                let Counts { stored, computed } = parts.counts();
                for (label, value) in [(c"Stored Parts", stored), (c"Computed Parts", computed)] {
                    kept!(pg_sys::ExplainPropertyInteger(label.as_ptr(), std::ptr::null(), value as i64, explain));
                }
                if let Some(recipe) = recipe_of((*node).ss.ps.plan.cast()).filter(|recipe| recipe.grain != 0) {
                    let names = list_of(recipe.part.key_names().into_iter().map(|name| name.as_ptr().cast_mut()));
                    kept!(pg_sys::ExplainPropertyList(c"Grain".as_ptr(), names, explain));
                }
            }
        }
    };
    // SAFETY: the server calls this; no frame between has destructors.
    unsafe { edge(body) }
}

// PostgreSQL sees only the head of the node.
const _: () = assert!(std::mem::offset_of!(FragmentScanState, head) == 0);
