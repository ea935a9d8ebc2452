//! Can the current row of a cursor be named by another statement (UPDATE … WHERE CURRENT OF)? The server looks for the
//! scan of a table in the cursor's plan, and a plan that serves an entry has none.

use pgrx::pg_sys::{self, NodeTag};

use crate::pg::lists::nodes;

/// Could the server find the scan of a table by descending from this node as it does for WHERE CURRENT OF
/// (search_plan_tree in execCurrent.c)? The answer may be yes too often.
///
/// # Safety
/// `plan` must be null or valid.
pub unsafe fn is_updatable_scan(plan: *const pg_sys::Plan) -> bool {
    if plan.is_null() {
        return false;
    }
    // SAFETY: as the caller promises; each cast follows the node's tag.
    unsafe {
        match (*plan).type_ {
            NodeTag::T_SeqScan
            | NodeTag::T_SampleScan
            | NodeTag::T_IndexScan
            | NodeTag::T_IndexOnlyScan
            | NodeTag::T_BitmapHeapScan
            | NodeTag::T_TidScan
            | NodeTag::T_TidRangeScan
            | NodeTag::T_ForeignScan
            | NodeTag::T_CustomScan => true,
            NodeTag::T_Append => nodes::<pg_sys::Plan>((*plan.cast::<pg_sys::Append>()).appendplans)
                .any(|child| is_updatable_scan(child)),
            NodeTag::T_Result | NodeTag::T_Limit => is_updatable_scan((*plan).lefttree),
            NodeTag::T_SubqueryScan => is_updatable_scan((*plan.cast::<pg_sys::SubqueryScan>()).subplan),
            _ => false,
        }
    }
}
