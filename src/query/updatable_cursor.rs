//! Whether another statement can name the current row of a cursor (UPDATE … WHERE CURRENT OF). The server searches for
//! the scan of a table in the cursor's plan, and a plan that serves an entry has none.

use pgrx::pg_sys::{self, NodeTag};

use super::node_table::{HIDES_ROWS, in_plan};
use crate::pg::tree::{Tree, child, children, match_node};

/// Returns true if the server could find the scan of a table in this plan, for WHERE CURRENT OF (search_plan_tree in
/// execCurrent.c). The answer may be yes too often: it is for a node of an unknown kind. No statement changes the rows
/// of a materialized view: the server refuses it when it starts, before it looks for the cursor's row.
pub fn is_updatable_scan(plan: Tree<'_, pg_sys::PlannedStmt>) -> bool {
    Search { plan }.finds_scan(child!(plan.planTree))
}

struct Search<'t> {
    plan: Tree<'t, pg_sys::PlannedStmt>,
}

impl<'t> Search<'t> {
    fn finds_scan(&self, plan: Option<Tree<'t, pg_sys::Plan>>) -> bool {
        let Some(plan) = plan else { return false };
        let node = plan.as_node();
        match_node! { node;
            Append(append) => children!(append.appendplans as Plan).any(|child| self.finds_scan(Some(child))),
            SubqueryScan(scan) => self.finds_scan(child!(scan.subplan)),
            SeqScan(scan) => self.may_be_changed(scan.scan.scanrelid),
            IndexScan(scan) => self.may_be_changed(scan.scan.scanrelid),
            IndexOnlyScan(scan) => self.may_be_changed(scan.scan.scanrelid),
            BitmapHeapScan(scan) => self.may_be_changed(scan.scan.scanrelid),
            _ => match node.tag() {
                NodeTag::T_Result | NodeTag::T_Limit => self.finds_scan(child!(plan.lefttree)),
                tag => !in_plan(tag, HIDES_ROWS),
            },
        }
    }

    /// Returns true if statements can change rows of the relation at this place of the range table.
    fn may_be_changed(&self, place: u32) -> bool {
        let plan = self.plan;
        let entry = children!(plan.rtable as RangeTblEntry).nth((place as usize).wrapping_sub(1));
        entry.is_none_or(|entry| entry.relkind as u8 != pg_sys::RELKIND_MATVIEW)
    }
}
