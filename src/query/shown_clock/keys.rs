//! Keys that ask for the time: `SELECT now() AS time, … ORDER BY 1`. They have one value in a statement, so they
//! neither sort nor tell groups apart, and the planner leaves them out as well. Changes the query that it is given.

use pgrx::pg_sys;

use super::walks::{asks_for_time, depends_on_rows};
use crate::pg::lists::nodes;
use crate::pg::tree_making::list_of;

/// Leaves keys out that ask for the time and depend on no row. The last key of groups stays, because over no row there
/// is no group, where without keys there is one.
///
/// # Safety
/// A valid query that the caller may change.
pub(super) unsafe fn leave_out_times(query: *mut pg_sys::Query) {
    // SAFETY: the caller's promise. The clauses name target entries by numbers.
    unsafe {
        // Which rows are tied, the last key tells as well.
        if (*query).limitOption == pg_sys::LimitOption::LIMIT_OPTION_WITH_TIES {
            return;
        }
        for target in nodes::<pg_sys::TargetEntry>((*query).targetList) {
            let reference = (*target).ressortgroupref;
            let expression: *mut pg_sys::Node = (*target).expr.cast();
            let is_time = reference != 0
                && asks_for_time(expression)
                && !depends_on_rows(expression)
                && !kept!(pg_sys::contain_volatile_functions(expression));
            if !is_time || is_key_of_window(query, reference) {
                continue;
            }
            let sorted = without((*query).sortClause, reference);
            let (grouped, distinct) = ((*query).groupClause, (*query).distinctClause);
            let (fewer_grouped, fewer_distinct) = (without(grouped, reference), without(distinct, reference));
            let is_last = |all: *mut pg_sys::List, fewer: *mut pg_sys::List| !all.is_null() && fewer.is_null();
            if is_last(grouped, fewer_grouped) || is_last(distinct, fewer_distinct) {
                continue;
            }
            ((*query).sortClause, (*query).groupClause, (*query).distinctClause) =
                (sorted, fewer_grouped, fewer_distinct);
            (*target).ressortgroupref = 0;
        }
    }
}

/// Does a window sort or divide by this target entry?
///
/// # Safety
/// A valid query.
unsafe fn is_key_of_window(query: *mut pg_sys::Query, reference: pg_sys::Index) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        nodes::<pg_sys::WindowClause>((*query).windowClause)
            .any(|window| names((*window).partitionClause, reference) || names((*window).orderClause, reference))
    }
}

unsafe fn names(clauses: *mut pg_sys::List, reference: pg_sys::Index) -> bool {
    // SAFETY: a list of such clauses.
    unsafe { nodes::<pg_sys::SortGroupClause>(clauses).any(|clause| (*clause).tleSortGroupRef == reference) }
}

/// The clauses without those that name a target entry.
unsafe fn without(clauses: *mut pg_sys::List, reference: pg_sys::Index) -> *mut pg_sys::List {
    // SAFETY: a list of such clauses.
    unsafe {
        list_of(nodes::<pg_sys::SortGroupClause>(clauses).filter(|clause| (**clause).tleSortGroupRef != reference))
    }
}
