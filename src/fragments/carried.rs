//! What a finished plan of the server carries of ours, so that its query can be planned otherwise when the plan starts or runs: a plan for a Bind, or
//! one that is kept, is the server's own until then. It lies in the first entry of the range table, in a field that finished plans do not use
//! (`values_lists`): the server copies it with the plan, and nobody else looks there. Entries and their number stay what they are, since EXPLAIN shows
//! them, and the server counts them when it compares the costs of kinds of plans. Keeps nothing.

use pgrx::pg_sys::{self, RTEKind};

use crate::pg::lists::node_at;
use crate::pg::tree::{Tree, children};
use crate::pg::tree_making::list_of;

/// Attaches a copy of the client's query, which may be combined of parts, to a plan. Not to one that reads one relation
/// alone: such a plan has left out all leaves.
///
/// # Safety
/// `plan` must be a plan just made, in the current memory context, and the query in the same context, nobody else's.
pub unsafe fn attach(plan: *mut pg_sys::PlannedStmt, question: *mut pg_sys::Query) {
    // SAFETY: the caller's promise.
    unsafe {
        if pg_sys::list_length((*plan).rtable) < 2 {
            return;
        }
        let first = node_at::<pg_sys::RangeTblEntry>((*plan).rtable, 0);
        if let Some(entry) = first.filter(|entry| (**entry).rtekind != RTEKind::RTE_VALUES) {
            (*entry).values_lists = list_of([question]);
        }
    }
}

/// The query that a plan carries, if it carries one.
pub fn question_of(plan: Tree<'_, pg_sys::PlannedStmt>) -> Option<Tree<'_, pg_sys::Query>> {
    let entry = children!(plan.rtable as RangeTblEntry).next()?;
    if entry.values_lists.is_null() || entry.rtekind == RTEKind::RTE_VALUES {
        return None;
    }
    // SAFETY: only `attach` has put something there: a list with a query, which lives as long as the plan.
    unsafe { Tree::enter(node_at(entry.values_lists, 0)?) }
}
