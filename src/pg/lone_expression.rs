//! A query that does no more than compute one expression: `SELECT now() - interval '1 day'`. It gives one row, so
//! it has the value of that expression wherever it stands for a value. Reads trees; keeps nothing.

use pgrx::pg_sys::{self, CmdType, SubLinkType};

use super::tree::{Tree, child, children};

/// The expression that a sub-query for a value consists of, if it is no more than that.
pub fn of_sub_query(link: Tree<'_, pg_sys::SubLink>) -> Option<Tree<'_, pg_sys::Node>> {
    let query = child!(link.subselect)?.as_a::<pg_sys::Query>()?;
    if link.subLinkType == SubLinkType::EXPR_SUBLINK { lone_expression(query) } else { None }
}

/// The expression that a query consists of, if it is no more than that.
pub fn lone_expression(query: Tree<'_, pg_sys::Query>) -> Option<Tree<'_, pg_sys::Node>> {
    if !computes_one_row(&query) {
        return None;
    }
    let mut targets = children!(query.targetList as TargetEntry);
    let (target, None) = (targets.next()?, targets.next()) else { return None };
    child!(target.expr).map(Tree::as_node)
}

/// Returns true if it is a SELECT without FROM, which gives one row whatever its expressions are. That of a view may
/// have entries in its range table all the same.
pub fn computes_one_row(query: &pg_sys::Query) -> bool {
    let lists = [
        query.cteList,
        query.groupClause,
        query.groupingSets,
        query.windowClause,
        query.distinctClause,
        query.sortClause,
        query.rowMarks,
    ];
    let nodes = [query.havingQual, query.limitOffset, query.limitCount, query.setOperations];
    // SAFETY: null, or what a valid query is made of.
    let reads =
        unsafe { query.jointree.as_ref() }.is_some_and(|from| !(from.quals.is_null() && from.fromlist.is_null()));
    query.commandType == CmdType::CMD_SELECT
        && !(query.hasAggs || query.hasWindowFuncs || query.hasTargetSRFs || reads)
        && lists.iter().all(|list| list.is_null())
        && nodes.iter().all(|node| node.is_null())
}
