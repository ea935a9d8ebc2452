//! Can the current row of a cursor be named by another statement (UPDATE … WHERE CURRENT OF)? The server looks for the
//! scan of a table in the cursor's plan, and a plan that serves an entry has none.

use pgrx::pg_sys::{self, NodeTag};

use super::plan_kinds::opens_nothing_itself;
use crate::pg::tree::{Tree, child, children, match_node};

/// Could the server find the scan of a table by descending from this node as it does for WHERE CURRENT OF
/// (search_plan_tree in execCurrent.c)? The answer may be yes too often: it is for a node of an unknown kind.
pub fn is_updatable_scan(plan: Option<Tree<'_, pg_sys::Plan>>) -> bool {
    let Some(plan) = plan else { return false };
    let node = plan.as_node();
    match_node! { node;
        Append(append) => children!(append.appendplans as Plan).any(|child| is_updatable_scan(Some(child))),
        SubqueryScan(scan) => is_updatable_scan(child!(scan.subplan)),
        _ => match node.tag() {
            NodeTag::T_Result | NodeTag::T_Limit => is_updatable_scan(child!(plan.lefttree)),
            NodeTag::T_MergeAppend
            | NodeTag::T_ModifyTable
            | NodeTag::T_BitmapAnd
            | NodeTag::T_BitmapOr
            | NodeTag::T_BitmapIndexScan => false,
            tag => !opens_nothing_itself(tag),
        },
    }
}
