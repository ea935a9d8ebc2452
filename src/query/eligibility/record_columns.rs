//! Anonymous records in the answer: a session numbers their types as it meets them, and the number stands in each
//! value. They are refused.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::checker::EligibilityChecker;
use super::node_kinds::type_of;
use crate::pg::tree::{Tree, child, children};

impl EligibilityChecker {
    /// Checks the columns of the query that a client has sent. True stops the walk.
    pub(super) fn check_record_columns(&mut self, query: Tree<'_, pg_sys::Query>) -> bool {
        let refused = children!(query.targetList as TargetEntry)
            .filter(|target| !target.resjunk)
            .filter_map(|target| child!(target.expr))
            .any(|column| type_of(column.as_node()) == pg_sys::RECORDOID);
        refused && self.refuse(Reason::RecordType)
    }
}
