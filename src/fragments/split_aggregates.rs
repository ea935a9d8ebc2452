//! The two steps of aggregates (`query::decomposition::algebra`), marked in finished plans: the parts' give transition
//! states, and the combined one takes them. Keeps nothing.

use pgrx::pg_sys::{self, AggSplit, NodeTag};

use crate::pg::tree::Tree;
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

/// Has the plan of a combined query take the states that the scan of the parts gives: the first node that aggregates
/// what it reads.
///
/// # Safety
/// A plan just made of a combined query whose parts give states, which nobody else knows.
pub unsafe fn take_states(plan: *mut pg_sys::PlannedStmt) {
    // SAFETY: the caller's promise.
    unsafe {
        let way = Tree::enter(plan).map_or_else(Vec::new, way_to_scan);
        if let Some(first) = way.iter().rev().find(|node| node.as_node().tag() == NodeTag::T_Agg) {
            add_step(first.as_ptr(), AggSplit::AGGSPLIT_FINAL_DESERIAL);
        }
    }
}

/// # Safety
/// A node of a plan that nobody else knows.
unsafe fn add_step(node: *mut pg_sys::Plan, step: AggSplit::Type) {
    // SAFETY: the caller's promise; the tag tells the type.
    unsafe {
        if (*node).type_ == NodeTag::T_Agg {
            (*node.cast::<pg_sys::Agg>()).aggsplit |= step;
        }
    }
}
