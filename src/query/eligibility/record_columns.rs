//! Anonymous records in the answer. They are stored with a description of their type (`arrow::record_types`), so all that their types are
//! made of must be known when the query is checked: what an answer rests on is found there. That is so if the query itself writes the
//! record as ROW(…), without records in it. What a function, a sub-query or a row of a join gives is refused.

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
            .any(|column| type_of(column.as_node()) == pg_sys::RECORDOID && !is_described(column.as_node()));
        refused && self.refuse(Reason::RecordType)
    }
}

/// Does the query tell what the record is made of?
fn is_described(record: Tree<'_, pg_sys::Node>) -> bool {
    record.as_a::<pg_sys::RowExpr>().is_some_and(|row| {
        children!(row.args as Node).all(|part| !matches!(type_of(part), pg_sys::RECORDOID | pg_sys::RECORDARRAYOID))
    })
}
