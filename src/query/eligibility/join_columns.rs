//! What the columns of a join stand for. A join lists all columns of its two sides, used or not; only those count that
//! the query refers to. The planner, too, puts in the place of each such reference what the list says, and drops the
//! list.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::checker::EligibilityChecker;
use crate::pg::tree::{Tree, child, children};

impl EligibilityChecker {
    /// If the column is one of a join, checks the expression that it stands for: of columns merged by USING that may be
    /// any, of a row of the join it is all of its columns. Most references to a join's columns name the table below,
    /// and are none of the join's. True stops the walk.
    pub(super) fn check_join_column(&mut self, var: &pg_sys::Var) -> bool {
        if self.queries.is_empty() {
            // An expression outside of a query, such as a constraint, refers to one relation.
            return false;
        }
        let Some(level) = self.queries.len().checked_sub(1 + var.varlevelsup as usize) else {
            return self.refuse(Reason::TooComplex);
        };
        // SAFETY: the walk is inside of this query.
        let query = unsafe { Tree::<pg_sys::Query>::enter(self.queries[level]) };
        let place = (var.varno as usize).wrapping_sub(1);
        let Some(entry) = query.and_then(|query| children!(query.rtable as RangeTblEntry).nth(place)) else {
            return self.refuse(Reason::TooComplex);
        };
        if entry.rtekind != pg_sys::RTEKind::RTE_JOIN {
            return false;
        }
        let columns = child!(entry.joinaliasvars).into_iter().flat_map(Tree::items);
        let (skipped, taken) = match usize::try_from(var.varattno) {
            Ok(0) => (0, usize::MAX),
            Ok(number) => (number - 1, 1),
            Err(_) => return self.refuse(Reason::SystemColumn),
        };
        // What a column stands for belongs to the query of the join.
        let inner = self.queries.split_off(level + 1);
        let stopped = columns.skip(skipped).take(taken).flatten().any(|column| self.check_all(column));
        self.queries.extend(inner);
        stopped
    }
}
