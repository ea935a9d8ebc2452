//! Where the values of a column come from that a query names. Reads trees; keeps nothing.

use pgrx::pg_sys::{self, NodeTag, Oid, RTEKind};

use crate::pg::tree::{Tree, child, children};
use crate::pg::tree_search::column_at;
use crate::query::enclosing::Enclosing;

/// Most sub-queries that a column is handed on by.
const DEEPEST: u32 = 8;

/// Where values come from.
pub struct Origin {
    /// The relation.
    pub relation: Oid,
    /// The number of its column.
    pub column: i16,
    /// They are handed on by `max` or `min`.
    pub is_extreme: bool,
    /// A sub-query or the like hands them on.
    pub is_handed_on: bool,
}

/// max and min of date, timestamp and timestamptz, each with its transition function and the function behind its sort
/// operator.
pub const EXTREMES: [(u32, u32, u32); 6] = [
    (2122, 1138, 1089),
    (2126, 2036, 2057),
    (2127, 1196, 1157),
    (2138, 1139, 1087),
    (2142, 2035, 2054),
    (2143, 1195, 1154),
];

/// The column that has all values of an expression, NULLs aside: the expression itself, or what it is the greatest or
/// least value of.
pub(super) fn column_with_values(node: Tree<'_, pg_sys::Node>) -> Option<Tree<'_, pg_sys::Var>> {
    let Some(call) = node.as_a::<pg_sys::Aggref>() else { return node.as_a::<pg_sys::Var>() };
    let is_extreme = EXTREMES.iter().any(|(aggregate, ..)| *aggregate == call.aggfnoid.to_u32());
    let argument = children!(call.args as TargetEntry).next().filter(|_| is_extreme && call.agglevelsup == 0)?;
    child!(argument.expr)?.as_node().as_a::<pg_sys::Var>().filter(|column| column.varlevelsup == 0)
}

/// The relation, and the number of its column, that all values of a column come from which a query names; NULLs aside,
/// which a join or an aggregate may add. The query may name it through sub-queries, views and WITH queries, which hand
/// it on as it is, or its greatest or least value. `queries` are those around the expression.
pub fn origin<'t>(expression: Tree<'t, pg_sys::Node>, mut queries: Enclosing<'t>) -> Option<Origin> {
    let mut column = column_with_values(expression)?;
    let mut is_extreme = expression.tag() == NodeTag::T_Aggref;
    for depth in 0..DEEPEST {
        let entry = queries.entry(&column)?;
        if entry.rtekind == RTEKind::RTE_RELATION {
            return Some(Origin {
                relation: entry.relid,
                column: column.varattno,
                is_extreme,
                is_handed_on: depth > 0,
            });
        }
        queries = queries.above(column.varlevelsup).inside(entry)?;
        // The columns of a set operation come from more than one query.
        let query = queries.innermost().filter(|query| query.setOperations.is_null())?;
        let inner = column_at(query, column.varattno)?;
        column = column_with_values(inner)?;
        is_extreme |= inner.tag() == NodeTag::T_Aggref;
        if column.varlevelsup != 0 || column.varattno <= 0 {
            return None;
        }
    }
    None
}
