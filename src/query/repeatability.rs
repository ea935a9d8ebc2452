//! Which queries may give another answer each time they are executed, with the same data and under the same snapshot.
//!
//! SQL leaves open in which order rows are met, and so whatever is chosen by that order. For caching this does no harm:
//! each of the answers is right. For comparing an answer with another (`verify_sample_rate`) it does, so such queries
//! are not compared. Left open are:
//!
//! | form | what |
//! |---|---|
//! | LIMIT, OFFSET, FETCH | which rows; not by a LIMIT around the whole that leaves none out (`row_bound`) |
//! | DISTINCT ON | which row of each group |
//! | grouping sets, and parameters | a plan for all values takes a parameter for the grouping column that it equals, which is NULL in some rows |
//! | window functions | rank, neighbours and running sums among rows that sort alike |
//! | `ARRAY(SELECT …)` | the order of the elements |
//! | aggregates that do not compute exactly | the result may depend on the order of the input: `array_agg`, `string_agg`, sums of floats |
//! | GROUP BY, DISTINCT, UNION, INTERSECT, EXCEPT, min, max | which one of several equal values is shown, if equal values may differ (1.0 and 1.00) |
//!
//! Each is searched for in every node of the tree, sub-queries included, even where it could not reach the answer: a
//! comparison that is not made costs nothing, a false alarm does. TABLESAMPLE and volatile functions are not cached in
//! the first place.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::bytewise::equality_is_bytewise;
use crate::pg::object_ids::FIRST_UNPINNED_OID;
use crate::pg::server;
use crate::pg::tree::{Tree, child, child_oids, children, match_node};
use crate::pg::tree_search::{search, sorted_target};

/// The server's aggregates that compute exactly, but of floats: the order of their input cannot show.
const EXACT: [&CStr; 15] = [
    c"avg",
    c"bit_and",
    c"bit_or",
    c"bit_xor",
    c"bool_and",
    c"bool_or",
    c"count",
    c"every",
    c"stddev",
    c"stddev_pop",
    c"stddev_samp",
    c"sum",
    c"var_pop",
    c"var_samp",
    c"variance",
];

/// Returns true if a query that nobody has planned may give another answer, or nests too deeply to be searched.
pub fn leaves_open(query: Tree<'_, pg_sys::Query>) -> bool {
    let mut leaves_open = |node: Tree<'_, pg_sys::Node>| {
        let is_whole = std::ptr::eq(node.as_ptr(), query.as_node().as_ptr());
        if is_whole { query_leaves_open(query, !is_limited(query)) } else { node_leaves_open(node) }
    };
    // SAFETY: a valid query that nobody has planned.
    unsafe { search(query.as_node().as_ptr(), 0, &mut leaves_open) }.unwrap_or(true)
}

/// Returns true if a LIMIT, alone, may leave rows of the whole query out.
pub fn is_limited(query: Tree<'_, pg_sys::Query>) -> bool {
    !query.limitCount.is_null() && query.limitOffset.is_null()
}

/// Returns true if this node of a query tree, by itself, leaves the answer open.
fn node_leaves_open(node: Tree<'_, pg_sys::Node>) -> bool {
    match_node! { node;
        Query(query) => query_leaves_open(query, true),
        SetOperationStmt(operation) => set_operation_leaves_open(operation),
        Aggref(aggregate) => aggregate_leaves_open(aggregate),
        WindowFunc(_call) => true,
        SubLink(link) => link.subLinkType == pg_sys::SubLinkType::ARRAY_SUBLINK,
        _ => false,
    }
}

fn query_leaves_open(query: Tree<'_, pg_sys::Query>, limit_counts: bool) -> bool {
    let mut is_parameter = |node: Tree<'_, pg_sys::Node>| node.tag() == pg_sys::NodeTag::T_Param;
    // SAFETY: a valid query.
    let mut has_parameters = || unsafe { search(query.as_node().as_ptr(), 0, &mut is_parameter) } != Some(false);
    let is_cut = limit_counts && (!query.limitCount.is_null() || !query.limitOffset.is_null());
    if is_cut || query.hasDistinctOn || (!query.groupingSets.is_null() && has_parameters()) {
        return true;
    }
    let is_open = |clause| sorted_target(query, clause).is_none_or(|target| !is_bytewise(child!(target.expr)));
    children!(query.groupClause as SortGroupClause).any(is_open)
        || children!(query.distinctClause as SortGroupClause).any(is_open)
}

fn set_operation_leaves_open(operation: Tree<'_, pg_sys::SetOperationStmt>) -> bool {
    // UNION ALL compares nothing, and has no clauses. Both lists hold one OID per column.
    !operation.groupClauses.is_null()
        && child_oids!(operation.colTypes)
            .zip(child_oids!(operation.colCollations))
            .any(|(type_oid, collation)| !equality_is_bytewise(type_oid, collation))
}

fn aggregate_leaves_open(aggregate: Tree<'_, pg_sys::Aggref>) -> bool {
    // SAFETY: reads a catalog; the name is a copy, or null.
    let name = unsafe { kept!(pg_sys::get_func_name(aggregate.aggfnoid)) };
    if name.is_null() || aggregate.aggfnoid.to_u32() >= FIRST_UNPINNED_OID {
        return true;
    }
    // SAFETY: a copy that ends with NUL, in the current memory context.
    let name = unsafe { CStr::from_ptr(name) };
    if [c"min", c"max"].contains(&name) {
        return !equality_is_bytewise(aggregate.aggtype, aggregate.inputcollid);
    }
    let is_of_floats =
        child_oids!(aggregate.aggargtypes).any(|argument| matches!(argument, pg_sys::FLOAT4OID | pg_sys::FLOAT8OID));
    if is_of_floats || !EXACT.contains(&name) {
        return true;
    }
    // Which of several equal values DISTINCT lets through shows in the scale of a sum, and not in a number of values.
    !aggregate.aggdistinct.is_null()
        && !equality_is_bytewise(aggregate.aggtype, aggregate.aggcollid)
        && !children!(aggregate.args as TargetEntry).all(|argument| is_bytewise(child!(argument.expr)))
}

/// Returns true if there is an expression, and its values are equal only if their bytes are.
fn is_bytewise(expression: Option<Tree<'_, pg_sys::Expr>>) -> bool {
    expression.is_some_and(|expression| {
        let expression = expression.as_node().as_ptr();
        // SAFETY: an expression of a valid tree.
        unsafe { equality_is_bytewise(server::exprType(expression), server::exprCollation(expression)) }
    })
}
