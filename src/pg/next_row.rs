//! What a node of a plan does to give its next row, replaced by a routine of ours that does more. The server calls
//! `ExecProcNodeReal`, or that by way of `ExecProcNode` when it measures. Keeps nothing: whoever replaces it remembers
//! what the node does by itself.

use pgrx::pg_sys;

/// What a node of a plan does to give its next row.
pub type NextRow = unsafe extern "C-unwind" fn(*mut pg_sys::PlanState) -> *mut pg_sys::TupleTableSlot;

/// What a node does by itself, if it is not `ours`.
///
/// # Safety
/// A node of a query that was started.
pub unsafe fn own_routine(node: *const pg_sys::PlanState, ours: NextRow) -> Option<NextRow> {
    // SAFETY: the caller's promise.
    unsafe { (*node).ExecProcNodeReal }.filter(|own| !std::ptr::fn_addr_eq(*own, ours))
}

/// Has the server call `ours` for the next row of a node.
///
/// # Safety
/// As `own_routine`; the node has not been asked for a row yet, so the server will look at this field.
pub unsafe fn put(node: *mut pg_sys::PlanState, ours: NextRow) {
    // SAFETY: the caller's promise.
    unsafe { (*node).ExecProcNodeReal = Some(ours) };
}

/// Has the server call again what a node does by itself.
///
/// # Safety
/// As `own_routine`; `own` is what that has returned.
pub unsafe fn take_back(node: *mut pg_sys::PlanState, own: NextRow) {
    // SAFETY: the caller's promise.
    unsafe {
        let ours = (*node).ExecProcNodeReal.replace(own);
        if (*node).ExecProcNode.map(|called| called as usize) == ours.map(|called| called as usize) {
            (*node).ExecProcNode = Some(own);
        }
    }
}
