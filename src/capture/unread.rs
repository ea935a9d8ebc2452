//! Which relations a run that has read all of its rows has not read: partitions that were left out when the plan was
//! started, and those whose scan never began, since the values that a sub-query or a join gave have left them out. The
//! answer does not rest on them. Reads the plan and its state; keeps nothing.
//!
//! With the same values and the same rows in all other relations, a run of the plan leaves them out again, whatever has
//! become of their rows. Another plan for the same query gives the same rows.

use std::ffi::c_void;

use arrow_cache_core::RoomyVec;
use pgrx::pg_sys::{self, NodeTag};

use crate::lookup::Miss;
use crate::pg::compat::tree::walkers::planstate_tree_walker;
use crate::pg::lists::oids;
use crate::pg::query_desc::QueryDesc;
use crate::pg::tree::{Tree, children};
use crate::query::opened_relations::{is_scan_of_parts, opened_by};
use crate::query::scan_of_parts::{StateOfParts, is_combined};

/// Takes out of a miss the dependencies that its finished run has not read.
pub fn leave_out(miss: &mut Miss, query: QueryDesc<'_>) {
    let leaves_out = !query.plan().appendRelations.is_null() || is_combined(query.plan());
    if !miss.guarantees.may_be_unread || !leaves_out || query.plan_state().is_null() {
        return;
    }
    let opened = opened_by(query.plan());
    if opened.has_unknown_nodes {
        return;
    }
    // What other processes have begun is not known here.
    let begun_only = !opened.is_parallel;
    let mut read = Read { begun_only, relations: Vec::new(), left_out: Vec::new(), complete: true };
    // SAFETY: the state of a query that runs, and a context that outlives the walk. No frame of it has a destructor
    // pending.
    unsafe {
        note_node(query.plan_state(), &mut read);
        let context = (&raw mut read).cast();
        kept!(planstate_tree_walker(query.plan_state(), Some(visit), context));
    }
    if !read.complete {
        return;
    }
    // There may be thousands of each.
    let Read { mut relations, mut left_out, .. } = read;
    relations.sort_unstable();
    left_out.sort_unstable();
    let scanned = sorted(opened.tables.iter().map(|table| table.to_u32()));
    let (Some(scanned), Some(tables)) = (scanned, sorted(tables(query))) else { return };
    let is_in = |list: &[u32], relation: u32| list.binary_search(&relation).is_ok();
    let unread = |relation: u32| {
        let may_be_left_out = is_in(if is_in(&scanned, relation) { &tables } else { &left_out }, relation);
        may_be_left_out && !is_in(&relations, relation)
    };
    miss.guarantees.dependencies.retain(|dependency| dependency.relation == 0 || !unread(dependency.relation));
}

/// Relations in ascending order; `None` if there is no memory for the list.
fn sorted(relations: impl Iterator<Item = u32>) -> Option<Vec<u32>> {
    let mut list = Vec::new();
    for relation in relations {
        list.add(relation).ok()?;
    }
    list.sort_unstable();
    Some(list)
}

/// The tables among the relations of a query. The rows of a foreign one are not those of a snapshot.
fn tables(query: QueryDesc<'_>) -> impl Iterator<Item = u32> {
    let plan = query.plan();
    children!(plan.rtable as RangeTblEntry)
        .filter(|entry| entry.relkind as u8 == pg_sys::RELKIND_RELATION)
        .map(|entry| entry.relid.to_u32())
}

/// The relations that a run has read.
struct Read {
    /// Only those whose scan has begun, as far as that can be told.
    begun_only: bool,
    relations: Vec<u32>,
    /// Leaves that a scan of parts has left out.
    left_out: Vec<u32>,
    /// There was memory to list all of them.
    complete: bool,
}

impl Read {
    fn note(&mut self, scan: &pg_sys::ScanState, is_begun: bool) {
        if !scan.ss_currentRelation.is_null() && (is_begun || !self.begun_only) {
            // SAFETY: a relation that the scan holds open.
            let relation = unsafe { (*scan.ss_currentRelation).rd_id };
            self.complete &= self.relations.add(relation.to_u32()).is_ok();
        }
    }
}

/// Notes what a node of the plan has read, and goes on to the nodes below it.
///
/// # Safety
/// `state` must be a node of a plan that runs, `context` a `Read`. An error jumps over this frame.
unsafe extern "C-unwind" fn visit(state: *mut pg_sys::PlanState, context: *mut c_void) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        note_node(state, &mut *context.cast());
        direct!(planstate_tree_walker(state, Some(visit), context))
    }
}

/// Notes what a node of the plan has read itself.
///
/// # Safety
/// `state` must be a node of a plan that runs.
unsafe fn note_node(state: *mut pg_sys::PlanState, read: &mut Read) {
    // SAFETY: the tag of a node tells its type. Scans of tables and indexes begin when their first row is asked for.
    unsafe {
        match (*state).type_ {
            NodeTag::T_SeqScanState => {
                let scan = &(*state.cast::<pg_sys::SeqScanState>()).ss;
                read.note(scan, !scan.ss_currentScanDesc.is_null());
            }
            NodeTag::T_IndexScanState => {
                let scan = &*state.cast::<pg_sys::IndexScanState>();
                read.note(&scan.ss, !scan.iss_ScanDesc.is_null());
            }
            NodeTag::T_IndexOnlyScanState => {
                let scan = &*state.cast::<pg_sys::IndexOnlyScanState>();
                read.note(&scan.ss, !scan.ioss_ScanDesc.is_null());
            }
            NodeTag::T_CustomScanState if is_state_of_parts(state) => {
                for leaf in oids((*state.cast::<StateOfParts>()).left_out) {
                    read.complete &= read.left_out.add(leaf.to_u32()).is_ok();
                }
            }
            NodeTag::T_BitmapHeapScanState
            | NodeTag::T_SampleScanState
            | NodeTag::T_TidScanState
            | NodeTag::T_TidRangeScanState
            | NodeTag::T_CustomScanState => read.note(&*state.cast::<pg_sys::ScanState>(), true),
            _ => {}
        }
    }
}

/// Returns true if the state of a Custom Scan is that of a scan of parts.
///
/// # Safety
/// `state` must be such a state.
unsafe fn is_state_of_parts(state: *mut pg_sys::PlanState) -> bool {
    // SAFETY: the caller's promise: its plan is that of a Custom Scan.
    unsafe { Tree::enter((*state).plan.cast::<pg_sys::CustomScan>()).is_some_and(is_scan_of_parts) }
}
