//! Which queries may give another answer each time they are executed, with the same data and under the same snapshot.
//!
//! SQL leaves open in which order rows are met, and so whatever is chosen by that order. For caching this does no harm: each of the
//! answers is right. For comparing an answer with another (`verify_sample_rate`) it does, so such queries are not compared. Left open are:
//!
//! | form | what |
//! |---|---|
//! | LIMIT, OFFSET, FETCH in a sub-query | which rows, unless the order is total |
//! | DISTINCT ON | which row of each group |
//! | grouping sets, and parameters | a plan for all values takes a parameter for the grouping column that it equals, which is NULL in some rows |
//! | window functions | rank, neighbours and running sums among rows that sort alike |
//! | `ARRAY(SELECT …)` | the order of the elements |
//! | aggregates outside `ORDER_BLIND` | the result may depend on the order of the input: `array_agg`, `string_agg`, sums of floats |
//! | GROUP BY, DISTINCT, UNION, INTERSECT, EXCEPT, min, max | which one of several equal values is shown, if equal values may differ (1.0 and 1.00) |
//!
//! Each is searched for in every node of the tree, sub-queries included, even where it could not reach the answer: a
//! comparison that is not made costs nothing, a false alarm does. LIMIT and OFFSET of the query itself leave less open:
//! where the answer was cut (`verify::cut`). TABLESAMPLE and volatile functions are not cached in the first place.

use pgrx::pg_sys;

use super::bytewise::{equality_is_bytewise, is_bytewise, sorted_target};
use super::parameters;
use crate::pg::tree::{Tree, child, child_oids, children, match_node};

/// Returns true if this node of a query tree, by itself, leaves the answer open. `is_whole` tells that it is the query
/// itself.
pub fn leaves_open(node: Tree<'_, pg_sys::Node>, is_whole: bool) -> bool {
    match_node! { node;
        Query(query) => (!is_whole && is_limited(query)) || query_leaves_open(query),
        SetOperationStmt(operation) => set_operation_leaves_open(operation),
        Aggref(aggregate) => aggregate_leaves_open(aggregate),
        WindowFunc(_call) => true,
        SubLink(link) => link.subLinkType == pg_sys::SubLinkType::ARRAY_SUBLINK,
        _ => false,
    }
}

/// Returns true if a query has LIMIT, OFFSET or FETCH.
pub fn is_limited(query: Tree<'_, pg_sys::Query>) -> bool {
    !query.limitCount.is_null() || !query.limitOffset.is_null()
}

fn query_leaves_open(query: Tree<'_, pg_sys::Query>) -> bool {
    // SAFETY: a valid query.
    let has_parameters = || unsafe { parameters::named_by(query.as_ptr()) } != 0;
    if query.hasDistinctOn || (!query.groupingSets.is_null() && has_parameters()) {
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
    let function = aggregate.aggfnoid.to_u32();
    if COUNTS.contains(&function) {
        return false;
    }
    if EXTREMES.binary_search(&function).is_ok() {
        return !equality_is_bytewise(aggregate.aggtype, aggregate.inputcollid);
    }
    if ORDER_BLIND.binary_search(&function).is_err() {
        return true;
    }
    // Which of several equal values DISTINCT lets through shows in the scale of a sum.
    !aggregate.aggdistinct.is_null()
        && !children!(aggregate.args as TargetEntry).all(|argument| is_bytewise(child!(argument.expr)))
}

/// count("any") and count(*): of equal values it does not matter which one is counted.
const COUNTS: [u32; 2] = [2147, 2803];

/// min and max over the types of `equality_is_bytewise`; of any other type they show an arbitrary one of equal values. Ascending.
const EXTREMES: &[u32] = &[
    2115, // max(bigint)
    2116, // max(integer)
    2117, // max(smallint)
    2118, // max(oid)
    2122, // max(date)
    2123, // max(time without time zone)
    2125, // max(money)
    2126, // max(timestamp without time zone)
    2127, // max(timestamp with time zone)
    2129, // max(text)
    2131, // min(bigint)
    2132, // min(integer)
    2133, // min(smallint)
    2134, // min(oid)
    2138, // min(date)
    2139, // min(time without time zone)
    2141, // min(money)
    2142, // min(timestamp without time zone)
    2143, // min(timestamp with time zone)
    2145, // min(text)
    3526, // max(anyenum)
    3527, // min(anyenum)
];

/// Aggregates that compute exactly, so that the order of their input cannot show. Ascending.
const ORDER_BLIND: &[u32] = &[
    2100, // avg(bigint)
    2101, // avg(integer)
    2102, // avg(smallint)
    2103, // avg(numeric)
    2106, // avg(interval)
    2107, // sum(bigint)
    2108, // sum(integer)
    2109, // sum(smallint)
    2112, // sum(money)
    2113, // sum(interval)
    2114, // sum(numeric)
    2148, // variance(bigint)
    2149, // variance(integer)
    2150, // variance(smallint)
    2153, // variance(numeric)
    2154, // stddev(bigint)
    2155, // stddev(integer)
    2156, // stddev(smallint)
    2159, // stddev(numeric)
    2236, // bit_and(smallint)
    2237, // bit_or(smallint)
    2238, // bit_and(integer)
    2239, // bit_or(integer)
    2240, // bit_and(bigint)
    2241, // bit_or(bigint)
    2242, // bit_and(bit)
    2243, // bit_or(bit)
    2517, // bool_and(boolean)
    2518, // bool_or(boolean)
    2519, // every(boolean)
    2641, // var_samp(bigint)
    2642, // var_samp(integer)
    2643, // var_samp(smallint)
    2646, // var_samp(numeric)
    2712, // stddev_samp(bigint)
    2713, // stddev_samp(integer)
    2714, // stddev_samp(smallint)
    2717, // stddev_samp(numeric)
    2718, // var_pop(bigint)
    2719, // var_pop(integer)
    2720, // var_pop(smallint)
    2723, // var_pop(numeric)
    2724, // stddev_pop(bigint)
    2725, // stddev_pop(integer)
    2726, // stddev_pop(smallint)
    2729, // stddev_pop(numeric)
    6164, // bit_xor(smallint)
    6165, // bit_xor(integer)
    6166, // bit_xor(bigint)
    6167, // bit_xor(bit)
];
