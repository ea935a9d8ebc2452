//! The tables that a plan's executor would hold open: while it does, the server refuses DDL on them in the same session.

use pgrx::pg_sys::{self, NodeTag};

use super::types::nodes;
use crate::compat;

/// The relations that the nodes of a plan scan, each at least once. Partitions that may be left out when the plan starts
/// are not among them.
///
/// # Safety
/// `plan` must be valid.
pub unsafe fn scanned_relations(plan: *const pg_sys::PlannedStmt) -> Vec<pg_sys::Oid> {
    let mut places = Vec::new();
    // SAFETY: as the caller promises; places in the range table count from 1.
    unsafe {
        collect((*plan).planTree, &mut places);
        for subplan in nodes::<pg_sys::Plan>((*plan).subplans) {
            collect(subplan, &mut places);
        }
        let entries: Vec<_> = nodes::<pg_sys::RangeTblEntry>((*plan).rtable).collect();
        places.iter().filter_map(|place| entries.get(*place as usize - 1)).map(|entry| (**entry).relid).collect()
    }
}

/// # Safety
/// `plan` must be null or valid.
unsafe fn collect(plan: *const pg_sys::Plan, places: &mut Vec<u32>) {
    if plan.is_null() {
        return;
    }
    // SAFETY: as the caller promises; each cast follows the node's tag.
    unsafe {
        let children: *const pg_sys::List = match (*plan).type_ {
            NodeTag::T_SeqScan
            | NodeTag::T_SampleScan
            | NodeTag::T_IndexScan
            | NodeTag::T_IndexOnlyScan
            | NodeTag::T_BitmapHeapScan
            | NodeTag::T_TidScan
            | NodeTag::T_TidRangeScan
            | NodeTag::T_ForeignScan => {
                let place = (*plan.cast::<pg_sys::Scan>()).scanrelid;
                // A join that a foreign server does has no table of its own.
                if place > 0 {
                    places.push(place);
                }
                std::ptr::null()
            }
            NodeTag::T_Append => {
                let append = &*plan.cast::<pg_sys::Append>();
                if compat::may_leave_out_children(append) { std::ptr::null() } else { append.appendplans }
            }
            NodeTag::T_MergeAppend => {
                let append = &*plan.cast::<pg_sys::MergeAppend>();
                if compat::may_leave_out_sorted_children(append) { std::ptr::null() } else { append.mergeplans }
            }
            NodeTag::T_SubqueryScan => {
                collect((*plan.cast::<pg_sys::SubqueryScan>()).subplan, places);
                std::ptr::null()
            }
            _ => std::ptr::null(),
        };
        for child in nodes::<pg_sys::Plan>(children) {
            collect(child, places);
        }
        collect((*plan).lefttree, places);
        collect((*plan).righttree, places);
    }
}
