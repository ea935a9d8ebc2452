//! ORDER BY of a difference between the clock and a column: `ORDER BY now() - created_at`. Times are numbers of
//! microseconds, and the server compares their differences by length. So the column, in the other direction if it is
//! subtracted, gives the same order with the same ties, and NULL for NULL. From 2000 on, no difference to the clock
//! overflows.

use pgrx::pg_sys;

use super::walks::{asks_for_time, depends_on_rows, is_clock};
use crate::pg::compat;
use crate::pg::lists::{node_at, nodes};
use crate::pg::tree::Tree;
use crate::query::volatility::definition::is_behind;

/// `<` and `>` of intervals, each with the function behind it: interval_lt, interval_gt.
const DIRECTIONS: [(u32, u32); 2] = [(1332, 1164), (1334, 1167)];

/// `-` of two timestamps with the function behind it (timestamptz_mi, timestamp_mi), and `=`, `<` and `>` of such.
const DIFFERENCES: [(u32, u32, u32, [u32; 2]); 2] =
    [(1328, 1188, 1320, [1322, 1324]), (2067, 2031, 2060, [2062, 2064])];

/// Has a query order by the column alone, if a target entry is such a difference, and a key of nothing but ORDER BY.
/// Returns the column, which is a part of the difference.
///
/// # Safety
/// A valid query, which the caller may change, and a target entry of it.
pub(super) unsafe fn order_by_column(
    query: *mut pg_sys::Query,
    target: *mut pg_sys::TargetEntry,
) -> Option<*mut pg_sys::Node> {
    // SAFETY: the caller's promise: a difference has two sides.
    unsafe {
        let call = Tree::enter((*target).expr.cast::<pg_sys::Node>())?.as_a::<pg_sys::OpExpr>()?;
        let (_, subtracts, equal, directions) =
            *DIFFERENCES.iter().find(|(operator, ..)| *operator == call.opno.to_u32())?;
        let (left, right) = (node_at(call.args, 0)?, node_at(call.args, 1)?);
        let is_subtracted = Tree::enter(left).is_some_and(is_clock);
        let (time, column) = if is_subtracted { (left, right) } else { (right, left) };
        if !Tree::enter(time).is_some_and(is_clock) || !depends_on_rows(column) || asks_for_time(column) {
            return None;
        }
        let reference = (*target).ressortgroupref;
        let named_in = |clauses: *mut pg_sys::List| {
            nodes::<pg_sys::SortGroupClause>(clauses).find(|clause| (**clause).tleSortGroupRef == reference)
        };
        let windows = nodes::<pg_sys::WindowClause>((*query).windowClause)
            .flat_map(|window| [(*window).partitionClause, (*window).orderClause]);
        let mut others = [(*query).groupClause, (*query).distinctClause].into_iter().chain(windows);
        if others.any(|clauses| named_in(clauses).is_some()) {
            return None;
        }
        let clause = named_in((*query).sortClause)?;
        let place = DIRECTIONS.iter().position(|(operator, _)| *operator == (*clause).sortop.to_u32())?;
        if !is_behind(subtracts, call.opno) || !is_behind(DIRECTIONS[place].1, (*clause).sortop) {
            return None;
        }
        let place = if is_subtracted { 1 - place } else { place };
        let nulls_first = (*clause).nulls_first;
        *clause = *compat::order_clause(reference, equal.into(), directions[place].into(), place == 1);
        (*clause).nulls_first = nulls_first;
        Some(column)
    }
}
