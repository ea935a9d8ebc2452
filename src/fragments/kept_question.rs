//! The client's query, carried inside its finished plan, so that it can be planned otherwise when the plan starts: a plan for a Bind, or one
//! that is kept, is the server's own until then. It stands at the end of the range table, as a sub-query that nothing reads: the server
//! copies it with the plan, and neither locks it nor checks a permission for it. Keeps nothing.

use std::ffi::CStr;

use pgrx::pg_sys::{self, NodeTag, RTEKind};

use crate::pg::tree::{Tree, child, child_text, children};

/// The name of the entry.
const NAME: &CStr = c"arrow_cache_question";

/// Attaches a query to a plan.
///
/// # Safety
/// `plan` must be a plan just made, in the current memory context; `question` a copy of its query that nobody else has.
pub unsafe fn attach(plan: *mut pg_sys::PlannedStmt, question: *mut pg_sys::Query) {
    // SAFETY: the caller's promise; as many bytes as are written.
    unsafe {
        let entry: *mut pg_sys::RangeTblEntry = pg_sys::palloc(size_of::<pg_sys::RangeTblEntry>()).cast();
        entry.write(pg_sys::RangeTblEntry {
            type_: NodeTag::T_RangeTblEntry,
            rtekind: RTEKind::RTE_SUBQUERY,
            subquery: question,
            eref: pg_sys::makeAlias(NAME.as_ptr(), std::ptr::null_mut()),
            ..Default::default()
        });
        (*plan).rtable = pg_sys::lappend((*plan).rtable, entry.cast());
    }
}

/// The query that was attached to a plan, if one was.
pub fn of(plan: Tree<'_, pg_sys::PlannedStmt>) -> Option<Tree<'_, pg_sys::Query>> {
    let last = children!(plan.rtable as RangeTblEntry).last()?;
    let is_question = last.rtekind == RTEKind::RTE_SUBQUERY
        && child!(last.eref).is_some_and(|name| child_text!(name.aliasname) == Some(NAME));
    if is_question { child!(last.subquery) } else { None }
}
