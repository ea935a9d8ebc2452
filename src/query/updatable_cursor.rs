//! Whether another statement can name the current row of a cursor (UPDATE … WHERE CURRENT OF). The server searches for
//! the scan of a table in the cursor's plan, and a plan that serves an entry has none.

use pgrx::pg_sys::{self, NodeTag};

use super::node_table::{HIDES_ROWS, in_plan};
use crate::pg::tree::{Tree, child, children, match_node};
use crate::pg::tree_search::entry_at;

/// Returns true if the server could find the scan of a table in this plan, for WHERE CURRENT OF (search_plan_tree in
/// execCurrent.c). The answer may be yes too often: it is for a node of an unknown kind. No statement changes the rows
/// of a materialized view: the server refuses it when it starts, before it looks for the cursor's row.
pub fn is_updatable_scan(plan: Tree<'_, pg_sys::PlannedStmt>) -> bool {
    finds_scan(plan, child!(plan.planTree))
}

fn finds_scan(whole: Tree<'_, pg_sys::PlannedStmt>, plan: Option<Tree<'_, pg_sys::Plan>>) -> bool {
    let Some(plan) = plan else { return false };
    let node = plan.as_node();
    match_node! { node;
        Append(append) => children!(append.appendplans as Plan).any(|child| finds_scan(whole, Some(child))),
        SubqueryScan(scan) => finds_scan(whole, child!(scan.subplan)),
        SeqScan | T_IndexScan | T_IndexOnlyScan | T_BitmapHeapScan (scan) => {
            let entry = entry_at(child!(whole.rtable), scan.scan.scanrelid);
            entry.is_none_or(|entry| entry.relkind as u8 != pg_sys::RELKIND_MATVIEW)
        },
        _ => match node.tag() {
            NodeTag::T_Result | NodeTag::T_Limit => finds_scan(whole, child!(plan.lefttree)),
            tag => !in_plan(tag, HIDES_ROWS),
        },
    }
}
