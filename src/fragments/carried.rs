//! What a finished plan of the server carries of ours, so that its query can be planned otherwise when the plan starts or runs: a plan for a Bind, or
//! one that is kept, is the server's own until then. It lies in the first entry of the range table, in a field that finished plans do not use
//! (`values_lists`): the server copies it with the plan, and nobody else looks there. Entries and their number stay what they are, since EXPLAIN shows
//! them, and the server counts them when it compares the costs of kinds of plans. Keeps nothing.

use pgrx::pg_sys::{self, RTEKind};

use crate::pg::lists::node_at;
use crate::pg::tree::{Tree, children};
use crate::pg::tree_making::list_of;

/// What a plan is to carry; null for nothing. Plain data.
#[derive(Clone, Copy)]
pub struct Carried {
    /// A copy of the client's query, which may be combined of parts.
    pub question: *mut pg_sys::Query,
    /// The query, taken apart, if the clock is in its columns (`shown_clock::kept`).
    pub clock_free: *mut pg_sys::List,
}

impl Carried {
    /// Nothing.
    pub const NOTHING: Self = Self { question: std::ptr::null_mut(), clock_free: std::ptr::null_mut() };

    /// Is there nothing to carry?
    pub fn is_nothing(self) -> bool {
        self.question.is_null() && self.clock_free.is_null()
    }
}

/// Attaches these to a plan. No question to one that reads one relation alone: such a plan has left out all leaves.
///
/// # Safety
/// `plan` must be a plan just made, in the current memory context, and what it is to carry in the same context, nobody else's.
pub unsafe fn attach(plan: *mut pg_sys::PlannedStmt, mut carried: Carried) {
    // SAFETY: the caller's promise.
    unsafe {
        if pg_sys::list_length((*plan).rtable) < 2 {
            carried.question = std::ptr::null_mut();
        }
        if carried.is_nothing() {
            return;
        }
        let first = node_at::<pg_sys::RangeTblEntry>((*plan).rtable, 0);
        if let Some(entry) = first.filter(|entry| (**entry).rtekind != RTEKind::RTE_VALUES) {
            (*entry).values_lists = list_of::<pg_sys::Node>([carried.question.cast(), carried.clock_free.cast()]);
        }
    }
}

/// The query that a plan carries, if it carries one.
pub fn question_of(plan: Tree<'_, pg_sys::PlannedStmt>) -> Option<Tree<'_, pg_sys::Query>> {
    // SAFETY: `attach` has put a query there, or null; it lives as long as the plan.
    unsafe { Tree::enter(part_of::<pg_sys::Query>(plan, 0)?) }
}

/// The list that a plan carries about its clock-free part, if it carries one.
pub fn clock_free_of(plan: Tree<'_, pg_sys::PlannedStmt>) -> Option<*mut pg_sys::List> {
    part_of(plan, 1).filter(|list: &*mut pg_sys::List| !list.is_null())
}

/// May a plan carry a clock-free part? It does not if it carries nothing.
#[inline]
pub fn may_wait_for_clock(plan: Tree<'_, pg_sys::PlannedStmt>) -> bool {
    children!(plan.rtable as RangeTblEntry).next().is_some_and(|entry| !entry.values_lists.is_null())
}

/// One of the two parts of what a plan carries.
fn part_of<T>(plan: Tree<'_, pg_sys::PlannedStmt>, place: usize) -> Option<*mut T> {
    let entry = children!(plan.rtable as RangeTblEntry).next()?;
    if entry.values_lists.is_null() || entry.rtekind == RTEKind::RTE_VALUES {
        return None;
    }
    // SAFETY: only `attach` has put something there: a list of two.
    unsafe { node_at(entry.values_lists, place) }
}
