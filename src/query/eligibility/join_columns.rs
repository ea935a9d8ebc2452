//! What the columns of a join stand for. A join lists all columns of its two sides, used or not; only those count that
//! the query refers to. The planner, too, puts in the place of each such reference what the list says, and drops the
//! list.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::checker::EligibilityChecker;
use crate::query::enclosing::joined;

impl EligibilityChecker {
    /// If the column is one of a join, checks the expression that it stands for: of columns merged by USING that may be
    /// any, of a row of the join it is all of its columns. Most references to a join's columns name the table below,
    /// and are none of the join's. True stops the walk.
    pub(super) fn check_join_column(&mut self, var: &pg_sys::Var) -> bool {
        if self.queries.innermost().is_none() {
            // An expression outside of a query, such as a constraint, refers to one relation.
            return false;
        }
        let Some(entry) = self.queries.entry(var) else { return self.refuse(Reason::TooComplex) };
        if entry.rtekind != pg_sys::RTEKind::RTE_JOIN {
            return false;
        }
        let Some(mut columns) = joined(var, entry) else { return self.refuse(Reason::SystemColumn) };
        // What a column stands for belongs to the query of the join.
        let around = self.queries;
        self.queries = around.above(var.varlevelsup);
        let stopped = columns.any(|column| self.check_all(column));
        self.queries = around;
        stopped
    }
}
