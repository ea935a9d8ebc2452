//! How many rows a plan can give at most, as far as its topmost nodes prove that: LIMIT, an aggregate without
//! GROUP BY, or nothing to read. A client that reads with a limit of rows leaves a query before its end is seen. If it
//! has read as many rows as there can be, it has read all.

use pgrx::pg_sys::{self, NodeTag};

use super::node_table::{ADDS_NO_ROWS, in_plan};
use crate::pg::given_values::given;
use crate::pg::tree::{Tree, child, match_node};

/// The most rows that a plan gives with these parameters; `None` if it does not prove a bound.
pub fn of(plan: Tree<'_, pg_sys::PlannedStmt>, params: Option<Tree<'_, pg_sys::ParamListInfoData>>) -> Option<u64> {
    most(child!(plan.planTree)?, params)
}

/// How many rows the LIMIT that is the topmost node of a plan lets through; `None` if that is not known.
pub fn limit(plan: Tree<'_, pg_sys::PlannedStmt>, params: Option<Tree<'_, pg_sys::ParamListInfoData>>) -> Option<u64> {
    let top = child!(plan.planTree)?.as_node();
    let limit = top.as_a::<pg_sys::Limit>()?;
    number(child!(limit.limitCount)?, params)
}

/// The most rows that a node gives.
fn most(plan: Tree<'_, pg_sys::Plan>, params: Option<Tree<'_, pg_sys::ParamListInfoData>>) -> Option<u64> {
    let node = plan.as_node();
    match_node! { node;
        Agg(aggregate) => {
            let is_one = aggregate.aggstrategy == pg_sys::AggStrategy::AGG_PLAIN && aggregate.groupingSets.is_null();
            (is_one && aggregate.chain.is_null()).then_some(1)
        },
        // It stops without looking for another row, unless it gives rows WITH TIES.
        Limit(limit) => {
            let counts = limit.limitOption == pg_sys::LimitOption::LIMIT_OPTION_COUNT;
            let below = child!(limit.plan.lefttree).and_then(|below| most(below, params));
            let count = child!(limit.limitCount).filter(|_| counts).and_then(|count| number(count, params));
            below.into_iter().chain(count).min()
        },
        SubqueryScan(scan) => most(child!(scan.subplan)?, params),
        _ => match node.tag() {
            NodeTag::T_Result if plan.lefttree.is_null() => Some(1),
            tag if in_plan(tag, ADDS_NO_ROWS) => most(child!(plan.lefttree)?, params),
            _ => None,
        },
    }
}

/// The value of an expression of type bigint that is a constant or a parameter of the statement.
fn number(expression: Tree<'_, pg_sys::Node>, params: Option<Tree<'_, pg_sys::ParamListInfoData>>) -> Option<u64> {
    let datum = if let Some(constant) = expression.as_a::<pg_sys::Const>() {
        (constant.consttype == pg_sys::INT8OID && !constant.constisnull).then_some(constant.constvalue)
    } else {
        let given = expression.as_a::<pg_sys::Param>().and_then(|param| given(&param, params))?;
        (given.ptype == pg_sys::INT8OID && !given.isnull).then_some(given.value)
    };
    u64::try_from(datum?.value() as i64).ok()
}
