//! Whether computing an expression, or a query, may raise an error. Asked of what a stored part computes beyond what
//! its statement has to compute: an error in that would have no cause in the statement. Everything counts as
//! something that may fail, but for a short list.

use std::ffi::c_void;

use pgrx::pg_sys::{self, NodeTag};

use super::clock::asks_for_time;
use crate::pg::compat::tree::walkers;
use crate::pg::compat::{self, tree::walkers::exprCollation};
use crate::pg::error_passing::edge;
use crate::pg::lists::oids;
use crate::pg::lone_expression;
use crate::pg::object_ids::FIRST_UNPINNED_OID;
use crate::pg::server;
use crate::pg::tree::{Tree, child, child_oids, children, match_node};

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
/// btree families whose operators compare values of different types, none of which fails: times, floats, integers. The
/// comparison of a date or a timestamp that has no place among the values of the other type is one with an infinite
/// value.
const FAMILIES_OF_SEVERAL_TYPES: [u32; 3] = [434, 1970, 1976];
/// max, min and count("any") of the types that have functions of their own (catalog/pg_aggregate.dat).
const EXTREMES_AND_COUNT: std::ops::RangeInclusive<u32> = 2115..=2147;
/// max and min of text and bpchar
const EXTREMES_OF_TEXTS: [u32; 4] = [2129, 2130, 2145, 2146];
/// count(*)
const COUNT_ALL: u32 = 2803;
/// row_number, rank, dense_rank, percent_rank, cume_dist
const RANKS: std::ops::RangeInclusive<u32> = 3100..=3104;

/// Returns true if computing an expression without sub-queries, or a list of them, may raise an error.
pub fn expression_may_fail(node: *mut pg_sys::Node) -> bool {
    let mut walk = Walk { query: std::ptr::null_mut() };
    // SAFETY: null, or a valid tree: the caller's walk has seen it. The walk is lent to the walker alone.
    unsafe { visit(node, (&raw mut walk).cast()) }
}

/// Returns true if computing a query may raise an error. Its own LIMIT does not count.
pub fn query_may_fail(query: Tree<'_, pg_sys::Query>) -> bool {
    let mut walk = Walk { query: std::ptr::null_mut() };
    walk.below(query)
}

struct Walk {
    /// The innermost query; null outside of any.
    query: *mut pg_sys::Query,
}

impl Walk {
    /// Returns true if something in a query may fail.
    fn below(&mut self, query: Tree<'_, pg_sys::Query>) -> bool {
        let around = std::mem::replace(&mut self.query, query.as_ptr());
        let flags = pg_sys::QTW_EXAMINE_RTES_BEFORE | pg_sys::QTW_EXAMINE_SORTGROUP;
        let context = std::ptr::from_mut(self).cast();
        // SAFETY: a valid query; what the walker calls gets this walk back.
        let fails = unsafe { kept!(walkers::query_tree_walker(query.as_ptr(), Some(visit), context, flags as i32)) };
        self.query = around;
        fails || converts(query)
    }

    /// Returns true if a node may fail by itself.
    fn may_fail(&self, node: Tree<'_, pg_sys::Node>) -> bool {
        match_node! { node;
            // A limit must not be negative.
            Query(query) => !(query.limitCount.is_null() && query.limitOffset.is_null()),
            WindowClause(window) => !(window.startOffset.is_null() && window.endOffset.is_null()),
            SortGroupClause(clause) => {
                clause.eqop != pg_sys::InvalidOid
                    && !self.collation_of(&clause).is_some_and(|collation| only_compares(clause.eqop, collation))
            },
            SetOperationStmt(operation) => children!(operation.groupClauses as SortGroupClause)
                .zip(child_oids!(operation.colCollations))
                .any(|(clause, collation)| !only_compares(clause.eqop, collation)),
            // What the owner of a foreign table promises is not that reading it succeeds. The planner puts the
            // expressions of virtual columns in their places.
            RangeTblEntry(entry) => {
                entry.relkind as u8 == pg_sys::RELKIND_FOREIGN_TABLE
                    || (entry.rtekind == pg_sys::RTEKind::RTE_RELATION && compat::has_virtual_columns(entry.relid))
            },
            FuncExpr(call) => !(is_widening(call.funcid) || asks_for_time(call.funcid)),
            OpExpr | T_DistinctExpr | T_NullIfExpr (operator) => !only_compares(operator.opno, operator.inputcollid),
            ScalarArrayOpExpr(operator) => !only_compares(operator.opno, operator.inputcollid),
            Aggref(call) => {
                !(only_counts(call.aggfnoid, call.inputcollid) && call.aggorder.is_null() && call.aggdistinct.is_null())
            },
            WindowFunc(call) => {
                !only_counts(call.winfnoid, call.inputcollid) && !RANKS.contains(&call.winfnoid.to_u32())
            },
            SubLink(link) => self.query.is_null() || !gives_one_value(link),
            // Parts that are arrays must fit each other.
            ArrayExpr(array) => array.multidims,
            SubscriptingRef(subscript) => !subscript.refassgnexpr.is_null(),
            _ => !never_fails(node.tag()),
        }
    }

    /// The collation of what a clause of the innermost query sorts or groups.
    fn collation_of(&self, clause: &pg_sys::SortGroupClause) -> Option<pg_sys::Oid> {
        // SAFETY: the query around a node that is walked is valid.
        let query = unsafe { Tree::enter(self.query)? };
        let column = children!(query.targetList as TargetEntry)
            .find(|column| column.ressortgroupref == clause.tleSortGroupRef)?;
        let expression = child!(column.expr)?;
        // SAFETY: an expression of a valid query.
        Some(unsafe { exprCollation(expression.as_ptr().cast()) })
    }
}

unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    let body = || {
        // SAFETY: the node is null or part of the tree that is walked.
        let Some(tree) = (unsafe { Tree::enter(node) }) else { return false };
        // SAFETY: the context is the walk, which nobody else uses while the walker calls.
        let walk = unsafe { &mut *context.cast::<Walk>() };
        walk.may_fail(tree)
            || match_node! { tree;
                Query(query) => walk.below(query),
                // The walker of queries descends into it by itself.
                RangeTblEntry(_entry) => false,
                // SAFETY: a node that the server's walker knows; what it calls gets this walk back.
                _ => unsafe { kept!(walkers::expression_tree_walker(node, Some(visit), context)) },
            }
    };
    // SAFETY: the server calls this; no frame between has destructors.
    unsafe { edge(body) }
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

/// Returns true if a set operation of the query converts the columns of a side. The parser leaves that to the planner.
fn converts(query: Tree<'_, pg_sys::Query>) -> bool {
    let Some(operation) = child!(query.setOperations).and_then(Tree::as_a::<pg_sys::SetOperationStmt>) else {
        return false;
    };
    children!(query.rtable as RangeTblEntry).filter_map(|entry| child!(entry.subquery)).any(|side| {
        let columns = children!(side.targetList as TargetEntry).filter(|column| !column.resjunk);
        // SAFETY: expressions of a valid query.
        let types = columns.map(|column| unsafe { server::exprType(column.expr.cast()) });
        !types.eq(child_oids!(operation.colTypes))
    })
}

/// Returns true if nothing is computed in a node of this kind, or nothing that may raise an error.
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

/// Returns true if a query gives one row, whatever it reads.
fn is_one_row(query: &pg_sys::Query) -> bool {
    query.hasAggs
        && !query.hasTargetSRFs
        && query.groupClause.is_null()
        && query.groupingSets.is_null()
        && query.setOperations.is_null()
}

/// Returns true for a cast of a number to a wider type.
fn is_widening(function: pg_sys::Oid) -> bool {
    WIDENING.binary_search(&function.to_u32()).is_ok()
}

fn only_counts(aggregate: pg_sys::Oid, collation: pg_sys::Oid) -> bool {
    let number = aggregate.to_u32();
    if EXTREMES_OF_TEXTS.contains(&number) && collation == pg_sys::InvalidOid {
        return false;
    }
    SUMS.contains(&number) || EXTREMES_AND_COUNT.contains(&number) || number == COUNT_ALL
}

/// Returns true if an operator of the server's own puts values of one type in order, which cannot fail. `collation` is
/// the one of its arguments.
fn only_compares(operator: pg_sys::Oid, collation: pg_sys::Oid) -> bool {
    if operator.to_u32() >= FIRST_UNPINNED_OID {
        return false;
    }
    let (mut left, mut right) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
    // SAFETY: reads catalogs about an operator that the query uses.
    unsafe {
        kept!(pg_sys::op_input_types(operator, &raw mut left, &raw mut right));
        // What is in rows, arrays and ranges may have no order. So may texts whose collation nobody knows.
        if matches!(left, pg_sys::RECORDOID | pg_sys::ANYARRAYOID | pg_sys::ANYRANGEOID | pg_sys::ANYMULTIRANGEOID)
            || (collation == pg_sys::InvalidOid && kept!(pg_sys::get_typcollation(left)) != pg_sys::InvalidOid)
        {
            return false;
        }
        // `<>`, `<=` and `>=` are known by their negators.
        orders(operator) || orders(kept!(pg_sys::get_negator(operator)))
    }
}

/// Returns true for the `=`, `<` or `>` of an order.
fn orders(operator: pg_sys::Oid) -> bool {
    // SAFETY: reads catalogs; nothing is found about what is no operator. The list holds OIDs.
    unsafe {
        if FAMILIES_OF_SEVERAL_TYPES
            .iter()
            .any(|family| kept!(pg_sys::get_op_opfamily_strategy(operator, (*family).into())) != 0)
        {
            return true;
        }
        oids(kept!(pg_sys::get_mergejoin_opfamilies(operator))).next().is_some()
            || kept!(pg_sys::get_equality_op_for_ordering_op(operator, std::ptr::null_mut())) != pg_sys::InvalidOid
    }
}
