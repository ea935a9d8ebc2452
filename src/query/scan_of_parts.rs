//! The scan of the parts that an answer is combined of, for those who meet it in a plan or in the state of one
//! (`fragments` makes it). Keeps nothing.

use pgrx::pg_sys;

use super::opened_relations::plans_of;
use super::plan_kinds::{is_combined, is_scan_of_parts};
use crate::pg::tree::{Tree, child, match_node};

/// The head of the executor's node.
#[repr(C)]
pub struct StateOfParts {
    /// What the server knows of it.
    pub custom: pg_sys::CustomScanState,
    /// The leaves (OIDs) that have no rows for the values and settings of this execution, so that nothing was read of
    /// them.
    pub left_out: *mut pg_sys::List,
}

/// The scan of parts in a plan, if it combines some.
pub fn scan_of_parts(plan: Tree<'_, pg_sys::PlannedStmt>) -> Option<Tree<'_, pg_sys::CustomScan>> {
    if !is_combined(plan) {
        return None;
    }
    child!(plan.planTree).and_then(scan_below).or_else(|| plans_of(child!(plan.subplans)).find_map(scan_below))
}

fn scan_below(plan: Tree<'_, pg_sys::Plan>) -> Option<Tree<'_, pg_sys::CustomScan>> {
    let node = plan.as_node();
    let below = match_node! { node;
        CustomScan(scan) => if is_scan_of_parts(scan) {
            return Some(scan);
        } else {
            child!(scan.custom_plans)
        },
        Append(append) => child!(append.appendplans),
        MergeAppend(append) => child!(append.mergeplans),
        SubqueryScan(scan) => return child!(scan.subplan).and_then(scan_below),
        _ => None,
    };
    plans_of(below).chain(child!(plan.lefttree)).chain(child!(plan.righttree)).find_map(scan_below)
}
