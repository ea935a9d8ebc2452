//! Whether computing an expression, or a query, may raise an error. Asked of what a stored part computes beyond what
//! its statement has to compute: an error in that would have no cause in the statement. Everything counts as
//! something that may fail, but for the kinds of nodes and the functions that are known never to do so.

use pgrx::pg_sys::{self, NodeTag as Tag};

use super::clock::asks_for_time;
use crate::pg::compat;
use crate::pg::lists::oids;
use crate::pg::lone_expression;
use crate::pg::object_ids::{DATETIME_FAMILY_OID, FIRST_UNPINNED_OID, FLOAT_FAMILY_OID, INTEGER_FAMILY_OID};
use crate::pg::tree::{Tree, child, match_node};
use crate::pg::tree_search::search;

/// Functions and aggregates that raise no error, whatever values of their types they are given.
#[rustfmt::skip]
const NEVER_FAIL: [u32; 54] = [
    // Casts between numbers.
    235, 236, 311, 313, 316, 318, 481, 482, 652, 754, 1740, 1781, 1782,
    // avg and sum of integers.
    2100, 2101, 2102, 2107, 2108, 2109,
    // max.
    2115, 2116, 2117, 2118, 2119, 2120, 2122, 2123, 2124, 2125, 2126, 2127, 2128, 2130,
    // min.
    2131, 2132, 2133, 2134, 2135, 2136, 2138, 2139, 2140, 2141, 2142, 2143, 2144, 2146,
    // count; row_number, rank, dense_rank, percent_rank and cume_dist.
    2147, 2803, 3100, 3101, 3102, 3103, 3104,
];

/// Aggregates of numbers whose transition states raise no error, though making a result of one may: avg and sum.
const STATES_NEVER_FAIL: [u32; 2] = [2103, 2114];

fn never_fails(function: pg_sys::Oid) -> bool {
    NEVER_FAIL.contains(&function.to_u32())
}

/// Returns true if computing an expression without sub-queries, or a list of them, may raise an error.
pub fn expression_may_fail(node: *mut pg_sys::Node) -> bool {
    finds_failure(node, false, false)
}

/// Returns true if computing a query may raise an error. Its own LIMIT does not count.
pub fn query_may_fail(query: Tree<'_, pg_sys::Query>) -> bool {
    finds_failure(query.as_node().as_ptr(), true, false)
}

/// As `query_may_fail`, for a query whose aggregates give their transition states.
pub fn query_of_states_may_fail(query: Tree<'_, pg_sys::Query>) -> bool {
    finds_failure(query.as_node().as_ptr(), true, true)
}

fn finds_failure(node: *mut pg_sys::Node, is_query: bool, of_states: bool) -> bool {
    let mut look = |below: Tree<'_, pg_sys::Node>| {
        let is_itself = is_query && below.as_ptr() == node;
        let is_state =
            || below.as_a::<pg_sys::Aggref>().is_some_and(|call| STATES_NEVER_FAIL.contains(&call.aggfnoid.to_u32()));
        !is_itself && may_fail(below, is_query) && !(of_states && is_state())
    };
    // SAFETY: null, or a valid tree: the caller's walk has seen it.
    unsafe { search(node, pg_sys::QTW_EXAMINE_SORTGROUP, &mut look) }.unwrap_or(true)
}

/// Returns true if a node may fail by itself. Outside of any query, sub-queries count as such.
fn may_fail(node: Tree<'_, pg_sys::Node>, is_in_query: bool) -> bool {
    match_node! { node;
        // A limit must not be negative.
        Query(query) => !(query.limitCount.is_null() && query.limitOffset.is_null()),
        WindowClause(window) => !(window.startOffset.is_null() && window.endOffset.is_null()),
        SortGroupClause(clause) => clause.eqop != pg_sys::InvalidOid && !is_of_order(clause.eqop),
        // What the owner of a foreign table promises is not that reading it succeeds. The planner puts the
        // expressions of virtual columns in their places.
        RangeTblEntry(entry) => {
            entry.relkind as u8 == pg_sys::RELKIND_FOREIGN_TABLE
                || (entry.rtekind == pg_sys::RTEKind::RTE_RELATION && compat::has_virtual_columns(entry.relid))
        },
        FuncExpr(call) => !(never_fails(call.funcid) || asks_for_time(call.funcid)),
        OpExpr | T_DistinctExpr | T_NullIfExpr (operator) => !only_compares(operator.opno, operator.inputcollid),
        ScalarArrayOpExpr(operator) => !only_compares(operator.opno, operator.inputcollid),
        Aggref(call) => !(never_fails(call.aggfnoid) && call.aggorder.is_null() && call.aggdistinct.is_null()),
        WindowFunc(call) => !never_fails(call.winfnoid),
        SubLink(link) => !(is_in_query && gives_one_value(link)),
        // Parts that are arrays must fit each other.
        ArrayExpr(array) => array.multidims,
        _ => !computes_safely(node.tag()),
    }
}

/// Returns true for a kind of nodes that computes nothing, or nothing that may raise an error, but for what is below
/// it.
#[rustfmt::skip]
fn computes_safely(tag: Tag) -> bool {
    matches!(
        tag,
        Tag::T_List | Tag::T_TargetEntry | Tag::T_FromExpr | Tag::T_JoinExpr | Tag::T_RangeTblRef
            | Tag::T_RangeTblFunction | Tag::T_CommonTableExpr | Tag::T_CTESearchClause | Tag::T_CTECycleClause
            | Tag::T_NamedArgExpr | Tag::T_SQLValueFunction | Tag::T_RowExpr | Tag::T_Var | Tag::T_Const | Tag::T_Param
            | Tag::T_GroupingFunc | Tag::T_CaseExpr | Tag::T_FieldSelect | Tag::T_BoolExpr | Tag::T_NullTest
            | Tag::T_BooleanTest | Tag::T_CoalesceExpr | Tag::T_ArrayCoerceExpr | Tag::T_ConvertRowtypeExpr
            | Tag::T_CaseTestExpr | Tag::T_RelabelType | Tag::T_CollateExpr
    )
}

/// Returns true if a sub-query has one value or none, whatever it reads. One that stands for a value must not give two
/// rows, and the arrays that it gathers must fit each other.
fn gives_one_value(link: Tree<'_, pg_sys::SubLink>) -> bool {
    use pg_sys::SubLinkType::{ALL_SUBLINK, ANY_SUBLINK, EXISTS_SUBLINK, EXPR_SUBLINK};
    match link.subLinkType {
        EXISTS_SUBLINK | ANY_SUBLINK | ALL_SUBLINK => true,
        EXPR_SUBLINK => {
            let gives_one_row = |query: Tree<'_, pg_sys::Query>| is_one_row(&query);
            lone_expression::of_sub_query(link).is_some()
                || child!(link.subselect).and_then(Tree::as_a).is_some_and(gives_one_row)
        }
        _ => false,
    }
}

/// Returns true if a query gives one row, whatever it reads.
fn is_one_row(query: &pg_sys::Query) -> bool {
    query.hasAggs
        && !query.hasTargetSRFs
        && query.groupClause.is_null()
        && query.groupingSets.is_null()
        && query.setOperations.is_null()
}

/// Returns true if an operator puts values in order, which cannot fail, and the collation of its arguments is known
/// where it needs one.
fn only_compares(operator: pg_sys::Oid, collation: pg_sys::Oid) -> bool {
    // SAFETY: reads catalogs about an operator that the query uses.
    let needs_collation = || unsafe { kept!(pg_sys::get_typcollation(left_type(operator))) } != pg_sys::InvalidOid;
    // SAFETY: as above. `<>`, `<=` and `>=` are known by their negators.
    (is_of_order(operator) || is_of_order(unsafe { kept!(pg_sys::get_negator(operator)) }))
        && (collation != pg_sys::InvalidOid || !needs_collation())
}

fn left_type(operator: pg_sys::Oid) -> pg_sys::Oid {
    let (mut left, mut right) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
    // SAFETY: reads a catalog about an operator that the query uses.
    unsafe { kept!(pg_sys::op_input_types(operator, &raw mut left, &raw mut right)) };
    left
}

/// Returns true for an operator of the server's own that is the `=`, `<` or `>` of an order: of values of one type, or
/// of different times, floats or integers. The comparison of a date or a timestamp that has no place among the values
/// of the other type is one with an infinite value.
fn is_of_order(operator: pg_sys::Oid) -> bool {
    const FAMILIES_OF_SEVERAL_TYPES: [u32; 3] = [DATETIME_FAMILY_OID, FLOAT_FAMILY_OID, INTEGER_FAMILY_OID];
    // What is in rows, arrays and ranges may have no order.
    let compares_parts = || {
        let types = [pg_sys::RECORDOID, pg_sys::ANYARRAYOID, pg_sys::ANYRANGEOID, pg_sys::ANYMULTIRANGEOID];
        types.contains(&left_type(operator))
    };
    if operator == pg_sys::InvalidOid || operator.to_u32() >= FIRST_UNPINNED_OID || compares_parts() {
        return false;
    }
    // SAFETY: reads catalogs; nothing is found about what is in no family. The list holds OIDs.
    unsafe {
        let is_in = |family: u32| kept!(pg_sys::get_op_opfamily_strategy(operator, family.into())) != 0;
        FAMILIES_OF_SEVERAL_TYPES.into_iter().any(is_in)
            || oids(kept!(pg_sys::get_mergejoin_opfamilies(operator))).next().is_some()
            || kept!(pg_sys::get_equality_op_for_ordering_op(operator, std::ptr::null_mut())) != pg_sys::InvalidOid
    }
}
