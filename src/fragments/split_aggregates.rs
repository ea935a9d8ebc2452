//! The two steps of aggregates (`query::decomposition::algebra`), marked in finished plans: the parts' give transition
//! states, and the combined one takes them. Keeps nothing.

use pgrx::pg_sys::{self, AggSplit, NodeTag};

use crate::pg::lists::nodes;
use crate::pg::tree::Tree;
use crate::pg::tree_making::{copy, list_of};
use crate::pg::tree_search::search;
use crate::query::scan_of_parts::way_to_scan;

/// Has the plan of a part give the states of its aggregates, in the form in which they are stored.
///
/// # Safety
/// A plan just made of the query of a part, which nobody else knows.
pub unsafe fn give_states(plan: *mut pg_sys::PlannedStmt) {
    // SAFETY: the caller's promise. A part aggregates once, and reads nothing that does. So all nodes that aggregate
    // lie on the way down from the top: one, or another one below it that gives states to it from other processes.
    unsafe {
        let mut node = (*plan).planTree;
        while !node.is_null() {
            add_step(node, AggSplit::AGGSPLIT_INITIAL_SERIAL);
            node = (*node).lefttree;
        }
    }
}

/// Has the plan that merges parts take states as well as give them.
///
/// # Safety
/// As `give_states`, after that.
pub unsafe fn merge_states(plan: *mut pg_sys::PlannedStmt) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut node = (*plan).planTree;
        while !node.is_null() {
            add_step(node, AggSplit::AGGSPLIT_FINAL_DESERIAL);
            node = (*node).lefttree;
        }
    }
}

/// Has the plan of a combined query take the states that the scan of the parts gives: the first node that aggregates
/// what it reads. `given` are the target entries of a part. The scan names its columns by the aggregates whose states
/// they are, as the server shows a plan by those.
///
/// # Safety
/// A plan just made of a combined query whose parts give states, which nobody else knows; those entries.
pub unsafe fn take_states(plan: *mut pg_sys::PlannedStmt, given: *mut pg_sys::List) {
    // SAFETY: the caller's promise. The columns of the scan are those of a part, in their order.
    unsafe {
        let way = Tree::enter(plan).map_or_else(Vec::new, way_to_scan);
        let Some(first) = way.iter().rev().find(|node| node.as_node().tag() == NodeTag::T_Agg) else { return };
        add_step(first.as_ptr(), AggSplit::AGGSPLIT_FINAL_DESERIAL);
        let Some(scan) = way.last().and_then(|node| node.as_node().as_a::<pg_sys::CustomScan>()) else { return };
        let columns = nodes::<pg_sys::TargetEntry>(scan.custom_scan_tlist);
        for (column, given) in columns.zip(nodes::<pg_sys::TargetEntry>(given)) {
            if (*(*given).expr).type_ == NodeTag::T_Aggref {
                let state: *mut pg_sys::Aggref = copy((*given).expr).cast();
                if !(*state).aggstar {
                    let argument = kept!(pg_sys::makeTargetEntry((*column).expr, 1, std::ptr::null_mut(), false));
                    (*state).args = list_of([argument]);
                }
                (*state).aggfilter = std::ptr::null_mut();
                (*state).aggsplit = AggSplit::AGGSPLIT_INITIAL_SERIAL;
                (*column).expr = state.cast();
            }
        }
    }
}

/// Marks a node, if it aggregates, and its aggregates: the executor reads the mark of the node, and the server shows
/// those of the aggregates.
///
/// # Safety
/// A node of a plan that nobody else knows.
unsafe fn add_step(node: *mut pg_sys::Plan, step: AggSplit::Type) {
    // SAFETY: the caller's promise; the tag tells the type.
    unsafe {
        if (*node).type_ != NodeTag::T_Agg {
            return;
        }
        (*node.cast::<pg_sys::Agg>()).aggsplit |= step;
        for list in [(*node).targetlist, (*node).qual] {
            search(list.cast(), 0, &mut |found| {
                if let Some(aggregate) = found.as_a::<pg_sys::Aggref>() {
                    (*aggregate.as_ptr()).aggsplit |= step;
                }
                false
            });
        }
    }
}
