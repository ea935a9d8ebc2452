//! May computing a part of a query raise an error? If so, it shows in which plan the part is computed: the planner drops parts by the values of a
//! Bind, and computes others itself. Everything counts as something that may fail, but for a short list.

use std::ffi::c_void;

use pgrx::pg_sys::{self, NodeTag};

use crate::pg::compat::tree::walkers::exprCollation;
use crate::pg::lists::oids;
use crate::pg::lone_expression;
use crate::pg::object_ids::FIRST_UNPINNED_OID;
use crate::pg::tree::{Tree, child, child_oids, children, match_node};
use crate::query::clock::asks_for_time;

/// Casts of numbers to wider types. Ascending.
const WIDENING: &[u32] = &[
    235,  // float8(int2)
    236,  // float4(int2)
    311,  // float8(float4)
    313,  // int4(int2)
    316,  // float8(int4)
    318,  // float4(int4)
    481,  // int8(int4)
    482,  // float8(int8)
    652,  // float4(int8)
    754,  // int8(int2)
    1740, // numeric(int4)
    1781, // numeric(int8)
    1782, // numeric(int2)
];

/// sum and avg of integers. Sums of other numbers may be out of range.
const SUMS: [u32; 6] = [2100, 2101, 2102, 2107, 2108, 2109];
/// btree families whose operators compare values of different types, none of which fails: times, floats, integers. The comparison of a date or a
/// timestamp that has no place among the values of the other type is one with an infinite value.
const FAMILIES_OF_SEVERAL_TYPES: [u32; 3] = [434, 1970, 1976];
/// max, min and count("any") of the types that have functions of their own (catalog/pg_aggregate.dat).
const EXTREMES_AND_COUNT: std::ops::RangeInclusive<u32> = 2115..=2147;
/// max and min of text and bpchar
const EXTREMES_OF_TEXTS: [u32; 4] = [2129, 2130, 2145, 2146];
/// count(*)
const COUNT_ALL: u32 = 2803;
/// row_number, rank, dense_rank, percent_rank, cume_dist
const RANKS: std::ops::RangeInclusive<u32> = 3100..=3104;

/// May this node, by itself, raise an error when it is computed? `around` are the queries around it, the outermost first.
pub(super) fn may_fail(node: Tree<'_, pg_sys::Node>, around: &[*mut pg_sys::Query]) -> bool {
    let is_inner = !around.is_empty();
    match_node! { node;
        // A limit must not be negative. That of the outermost query is read whatever its plan.
        Query(query) => is_inner && !(query.limitCount.is_null() && query.limitOffset.is_null()),
        WindowClause(window) => !(window.startOffset.is_null() && window.endOffset.is_null()),
        SortGroupClause(clause) => {
            clause.eqop != pg_sys::InvalidOid
                && !collation_of(&clause, around).is_some_and(|collation| only_compares(clause.eqop, collation))
        },
        SetOperationStmt(operation) => children!(operation.groupClauses as SortGroupClause)
            .zip(child_oids!(operation.colCollations))
            .any(|(clause, collation)| !only_compares(clause.eqop, collation)),
        // What the owner of a foreign table promises is not that reading it succeeds.
        RangeTblEntry(entry) => entry.relkind as u8 == pg_sys::RELKIND_FOREIGN_TABLE,
        FuncExpr(call) => !(is_widening(call.funcid) || asks_for_time(call.funcid)),
        OpExpr | T_DistinctExpr | T_NullIfExpr (operator) => !only_compares(operator.opno, operator.inputcollid),
        ScalarArrayOpExpr(operator) => !only_compares(operator.opno, operator.inputcollid),
        Aggref(call) => {
            !(only_counts(call.aggfnoid, call.inputcollid) && call.aggorder.is_null() && call.aggdistinct.is_null())
        },
        WindowFunc(call) => !only_counts(call.winfnoid, call.inputcollid) && !RANKS.contains(&call.winfnoid.to_u32()),
        // One that stands for a value must not give two rows, and the arrays that it gathers must fit each other.
        SubLink(link) => match link.subLinkType {
            pg_sys::SubLinkType::EXISTS_SUBLINK | pg_sys::SubLinkType::ANY_SUBLINK | pg_sys::SubLinkType::ALL_SUBLINK => false,
            pg_sys::SubLinkType::EXPR_SUBLINK => {
                let gives_one_row = |query: Tree<'_, pg_sys::Query>| is_one_row(&query);
                lone_expression::of_sub_query(link).is_none()
                    && !child!(link.subselect).and_then(Tree::as_a).is_some_and(gives_one_row)
            },
            _ => true,
        },
        // Parts that are arrays must fit each other.
        ArrayExpr(array) => array.multidims,
        SubscriptingRef(subscript) => !subscript.refassgnexpr.is_null(),
        _ => !never_fails(node.tag()),
    }
}

/// May this node of an expression without sub-queries, by itself, raise an error when it is computed?
pub fn node_may_fail(node: Tree<'_, pg_sys::Node>) -> bool {
    matches!(node.tag(), NodeTag::T_SubLink | NodeTag::T_Query) || may_fail(node, &[])
}

/// May computing an expression without sub-queries, or a list of them, raise an error? `node` may be a part of FROM as well.
pub fn expression_may_fail(node: *mut pg_sys::Node) -> bool {
    #[pgrx::pg_guard]
    unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, _context: *mut c_void) -> bool {
        // SAFETY: the node is null or part of the tree that is walked.
        unsafe {
            Tree::enter(node).is_some_and(|tree| {
                node_may_fail(tree) || pg_sys::expression_tree_walker(node, Some(visit), std::ptr::null_mut())
            })
        }
    }
    // SAFETY: null, or a valid tree: the caller's walk has seen it.
    unsafe { visit(node, std::ptr::null_mut()) }
}

/// Is nothing computed in a node of this kind, or nothing that may raise an error?
fn never_fails(tag: NodeTag) -> bool {
    matches!(
        tag,
        NodeTag::T_List
            | NodeTag::T_Const
            | NodeTag::T_Param
            | NodeTag::T_Var
            | NodeTag::T_TargetEntry
            | NodeTag::T_FromExpr
            | NodeTag::T_JoinExpr
            | NodeTag::T_RangeTblRef
            | NodeTag::T_RangeTblFunction
            | NodeTag::T_CommonTableExpr
            | NodeTag::T_CTESearchClause
            | NodeTag::T_CTECycleClause
            | NodeTag::T_GroupingSet
            | NodeTag::T_GroupingFunc
            | NodeTag::T_NamedArgExpr
            | NodeTag::T_BoolExpr
            | NodeTag::T_NullTest
            | NodeTag::T_BooleanTest
            | NodeTag::T_CaseExpr
            | NodeTag::T_CaseWhen
            | NodeTag::T_CaseTestExpr
            | NodeTag::T_CoalesceExpr
            | NodeTag::T_RowExpr
            | NodeTag::T_FieldSelect
            | NodeTag::T_RelabelType
            | NodeTag::T_ArrayCoerceExpr
            | NodeTag::T_ConvertRowtypeExpr
            | NodeTag::T_CollateExpr
            | NodeTag::T_SQLValueFunction
    )
}

/// Does a query give one row, whatever it reads?
fn is_one_row(query: &pg_sys::Query) -> bool {
    query.hasAggs
        && !query.hasTargetSRFs
        && query.groupClause.is_null()
        && query.groupingSets.is_null()
        && query.setOperations.is_null()
}

/// Is this a query over tables that gives one row, made of aggregates, whose columns are computed of the same rows in every plan? None of its
/// columns has a parameter, by whose value a part of it could be dropped or computed in advance, nor a column of a sub-query, which might
/// stand for one.
pub(super) fn gives_one_row(query: Tree<'_, pg_sys::Query>) -> bool {
    query.hasAggs
        && !(query.hasWindowFuncs || query.hasTargetSRFs || query.hasSubLinks || query.hasDistinctOn)
        && [query.groupClause, query.groupingSets, query.distinctClause, query.cteList]
            .into_iter()
            .all(|list| list.is_null())
        && [query.havingQual, query.limitCount, query.limitOffset, query.setOperations]
            .into_iter()
            .all(|node| node.is_null())
        && children!(query.rtable as RangeTblEntry)
            .all(|entry| matches!(entry.rtekind, pg_sys::RTEKind::RTE_RELATION | pg_sys::RTEKind::RTE_JOIN))
        && !has_parameter(query.targetList.cast())
        && !has_aggregate_in_order(query.targetList.cast())
}

/// sum and avg of numeric: exact, in any order.
const SUMS_OF_NUMERIC: [u32; 2] = [2103, 2114];

/// Is there an aggregate in an expression, or in a list of expressions, that may fail or not by the order in which it gets its rows? Each kind of plan has an
/// order of its own.
fn has_aggregate_in_order(node: *mut pg_sys::Node) -> bool {
    #[pgrx::pg_guard]
    unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, _context: *mut c_void) -> bool {
        // SAFETY: the node is null or part of the tree that is walked.
        unsafe {
            let Some(tree) = Tree::enter(node) else { return false };
            let is_in_order = tree.as_a::<pg_sys::Aggref>().is_some_and(|call| {
                !only_counts(call.aggfnoid, call.inputcollid) && !SUMS_OF_NUMERIC.contains(&call.aggfnoid.to_u32())
            });
            is_in_order || pg_sys::expression_tree_walker(node, Some(visit), std::ptr::null_mut())
        }
    }
    // SAFETY: a valid tree without sub-queries.
    unsafe { visit(node, std::ptr::null_mut()) }
}

/// Is there a parameter in an expression, or in a list of expressions?
pub(super) fn has_parameter(node: *mut pg_sys::Node) -> bool {
    #[pgrx::pg_guard]
    unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, _context: *mut c_void) -> bool {
        // SAFETY: the node is null or part of the tree that is walked.
        unsafe {
            !node.is_null()
                && ((*node).type_ == NodeTag::T_Param
                    || pg_sys::expression_tree_walker(node, Some(visit), std::ptr::null_mut()))
        }
    }
    // SAFETY: a valid tree without sub-queries.
    unsafe { visit(node, std::ptr::null_mut()) }
}

/// Is it a cast of a number to a wider type?
pub(super) fn is_widening(function: pg_sys::Oid) -> bool {
    WIDENING.binary_search(&function.to_u32()).is_ok()
}

fn only_counts(aggregate: pg_sys::Oid, collation: pg_sys::Oid) -> bool {
    let number = aggregate.to_u32();
    if EXTREMES_OF_TEXTS.contains(&number) && collation == pg_sys::InvalidOid {
        return false;
    }
    SUMS.contains(&number) || EXTREMES_AND_COUNT.contains(&number) || number == COUNT_ALL
}

/// The collation of what a clause of the innermost query sorts or groups.
fn collation_of(clause: &pg_sys::SortGroupClause, around: &[*mut pg_sys::Query]) -> Option<pg_sys::Oid> {
    // SAFETY: the queries around a node that is walked are valid.
    let query = unsafe { Tree::enter(*around.last()?)? };
    let column =
        children!(query.targetList as TargetEntry).find(|column| column.ressortgroupref == clause.tleSortGroupRef)?;
    let expression = child!(column.expr)?;
    // SAFETY: an expression of a valid query.
    Some(unsafe { exprCollation(expression.as_ptr().cast()) })
}

/// Does an operator of the server's own put values of one type in order, which cannot fail? `collation` is the one of its arguments.
fn only_compares(operator: pg_sys::Oid, collation: pg_sys::Oid) -> bool {
    if operator.to_u32() >= FIRST_UNPINNED_OID {
        return false;
    }
    let (mut left, mut right) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
    // SAFETY: reads catalogs about an operator that the query uses.
    unsafe {
        pg_sys::op_input_types(operator, &raw mut left, &raw mut right);
        // What is in rows, arrays and ranges may have no order. So may texts whose collation nobody knows.
        if matches!(left, pg_sys::RECORDOID | pg_sys::ANYARRAYOID | pg_sys::ANYRANGEOID | pg_sys::ANYMULTIRANGEOID)
            || (collation == pg_sys::InvalidOid && pg_sys::get_typcollation(left) != pg_sys::InvalidOid)
        {
            return false;
        }
        // `<>`, `<=` and `>=` are known by their negators.
        orders(operator) || orders(pg_sys::get_negator(operator))
    }
}

/// Is it the `=`, `<` or `>` of an order?
fn orders(operator: pg_sys::Oid) -> bool {
    // SAFETY: reads catalogs; nothing is found about what is no operator. The list holds OIDs.
    unsafe {
        if FAMILIES_OF_SEVERAL_TYPES
            .iter()
            .any(|family| pg_sys::get_op_opfamily_strategy(operator, (*family).into()) != 0)
        {
            return true;
        }
        oids(pg_sys::get_mergejoin_opfamilies(operator)).next().is_some()
            || pg_sys::get_equality_op_for_ordering_op(operator, std::ptr::null_mut()) != pg_sys::InvalidOid
    }
}
