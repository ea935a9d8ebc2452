//! The scan of the parts that an answer is combined of, for those who meet it in a plan or in the state of one
//! (`fragments` makes it). Keeps nothing.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::opened_relations::{is_scan_of_parts, plans_of};
use crate::pg::tree::{Tree, child, child_text, children, match_node};

/// The name of the tuplestore that a query combined of parts reads: the rows of all parts.
pub const TUPLESTORE_NAME: &CStr = c"arrow_cache_fragments";

/// The head of the executor's node.
#[repr(C)]
pub struct StateOfParts {
    /// What the server knows of it.
    pub custom: pg_sys::CustomScanState,
    /// The leaves (OIDs) that have no rows for the values and settings of this execution, so that nothing was read of
    /// them.
    pub left_out: *mut pg_sys::List,
}

/// Returns true if the plan combines parts of an answer. Asked of its range table, which is quicker than a walk: a
/// transition table of the same name would count as well.
pub fn is_combined(plan: Tree<'_, pg_sys::PlannedStmt>) -> bool {
    children!(plan.rtable as RangeTblEntry).any(|entry| {
        entry.rtekind == pg_sys::RTEKind::RTE_NAMEDTUPLESTORE && child_text!(entry.enrname) == Some(TUPLESTORE_NAME)
    })
}

/// The scan of parts in a plan, if it combines some.
pub fn scan_of_parts(plan: Tree<'_, pg_sys::PlannedStmt>) -> Option<Tree<'_, pg_sys::CustomScan>> {
    way_to_scan(plan).last()?.as_node().as_a()
}

/// The nodes from the top of a plan, or of a sub-plan, to the scan of parts; none if it combines none.
pub fn way_to_scan(plan: Tree<'_, pg_sys::PlannedStmt>) -> Vec<Tree<'_, pg_sys::Plan>> {
    let mut way = Vec::new();
    let _ = is_combined(plan)
        && (child!(plan.planTree).is_some_and(|top| add_way(top, &mut way))
            || plans_of(child!(plan.subplans)).any(|top| add_way(top, &mut way)));
    way
}

/// Adds a node and those below it on the way to the scan of parts; says whether that is there.
fn add_way<'t>(plan: Tree<'t, pg_sys::Plan>, way: &mut Vec<Tree<'t, pg_sys::Plan>>) -> bool {
    let node = plan.as_node();
    way.push(plan);
    let below = match_node! { node;
        CustomScan(scan) => if is_scan_of_parts(scan) {
            return true;
        } else {
            child!(scan.custom_plans)
        },
        Append(append) => child!(append.appendplans),
        MergeAppend(append) => child!(append.mergeplans),
        _ => None,
    };
    let of_query = node.as_a::<pg_sys::SubqueryScan>().and_then(|scan| child!(scan.subplan));
    let is_there = plans_of(below)
        .chain(of_query)
        .chain(child!(plan.lefttree))
        .chain(child!(plan.righttree))
        .any(|plan| add_way(plan, way));
    if !is_there {
        way.pop();
    }
    is_there
}
