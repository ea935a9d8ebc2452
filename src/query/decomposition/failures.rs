//! May the combination raise an error that the server's own plan does not raise, or hide one that it raises? Then the query is not combined.
//! Asked of queries that may fail at all.
//!
//! | what may fail | |
//! |---|---|
//! | conditions of FROM and WHERE, and of row security | not combined: the server leaves out leaves for reasons that are not known here (CHECK constraints, IN, OR, partitions by hash), and asks conditions in an order of its own |
//! | keys, arguments of aggregates, FILTER | for the rows that pass the conditions, here and there, if all of them are read |
//! | HAVING | for each group, if it is one condition; the planner sorts several by their costs, and what is combined costs more |
//! | columns of the answer | for each group that passes HAVING, if there is no LIMIT |
//!
//! LIMIT: a plan that finds its groups in the order that is asked for reads no more of them than it needs. If the order begins with an
//! aggregate, all groups are computed first, and all columns but expensive ones, which the planner computes for the rows that are left.

use pgrx::pg_sys;

use super::columns::Columns;
use super::combine::Combined;
use super::conditions::conjuncts;
use super::obstacle::Obstacle;
use super::part::Part;
use super::site::Site;
use crate::pg::lists::nodes;
use crate::pg::tree::{Tree, child, children};
use crate::pg::tree_making::replaced;
use crate::query::bytewise::sorted_target;
use crate::query::eligibility::expression_may_fail;

/// In units of `cpu_operator_cost`: the planner computes a column that costs more after LIMIT (`make_sort_input_target`).
const EXPENSIVE: f64 = 10.0;

/// Checks that the combination of a site fails where the site itself does. `combined` is the site over the tuplestore.
///
/// # Errors
/// What may fail in only one of them.
///
/// # Safety
/// All of it must be of the same site, and valid.
pub(super) unsafe fn check(
    site: &Site<'_>,
    columns: &Columns,
    part: &Part,
    combined: &Combined,
) -> Result<(), Obstacle> {
    // SAFETY: the query of the part is valid.
    let conditions_fail = unsafe {
        expression_may_fail(part.all_conditions())
            || expression_may_fail((*(*part.query).jointree).fromlist.cast())
            || nodes::<pg_sys::RangeTblEntry>((*part.query).rtable)
                .any(|entry| expression_may_fail((*entry).securityQuals.cast()))
    };
    if conditions_fail {
        return Err(Obstacle::Condition);
    }
    let query = site.query;
    let having = conjuncts(child!(query.havingQual));
    // SAFETY: expressions of the site.
    let having_fails = having.iter().any(|one| unsafe { fails_above_groups(one.as_ptr(), columns) });
    if having_fails && having.len() > 1 {
        return Err(Obstacle::Having);
    }
    // Without GROUP BY there is one row, which is computed or not.
    if query.limitCount.is_null() || site.is_grand() {
        return Ok(());
    }
    let computes_all = sorts_by_aggregate(query);
    let groups_fail =
        || having_fails || columns.expressions().iter().any(|expression| expression_may_fail(*expression));
    // SAFETY: the caller's promise.
    if (!computes_all && groups_fail()) || unsafe { targets_show_limit(site, columns, combined, computes_all) } {
        return Err(Obstacle::Limit);
    }
    Ok(())
}

/// May it show in errors for which rows LIMIT leaves the columns uncomputed?
///
/// # Safety
/// As `check`.
unsafe fn targets_show_limit(site: &Site<'_>, columns: &Columns, combined: &Combined, computes_all: bool) -> bool {
    let query = site.query;
    // SAFETY: the targets of the site, in their order.
    let targets = unsafe { nodes::<pg_sys::TargetEntry>(combined.targets) };
    children!(query.targetList as TargetEntry).zip(targets).any(|(target, combined)| {
        // SAFETY: valid expressions.
        unsafe {
            fails_above_groups(target.expr.cast(), columns)
                && (!computes_all
                    || pg_sys::contain_subplans(target.expr.cast())
                    || [target.expr, (*combined).expr].into_iter().any(|expression| is_expensive(expression.cast())))
        }
    })
}

/// Are the rows of a query sorted by an aggregate before anything else, and nothing is computed on the way but the columns?
fn sorts_by_aggregate(query: Tree<'_, pg_sys::Query>) -> bool {
    let first = children!(query.sortClause as SortGroupClause).next().and_then(|clause| sorted_target(query, clause));
    query.windowClause.is_null()
        && query.distinctClause.is_null()
        // SAFETY: an expression of a valid query.
        && first.is_some_and(|target| unsafe { pg_sys::contain_aggs_of_level(target.expr.cast(), 0) })
}

/// May computing an expression fail once its aggregates and keys are there?
///
/// # Safety
/// A valid expression of the site.
unsafe fn fails_above_groups(expression: *mut pg_sys::Node, columns: &Columns) -> bool {
    // SAFETY: the caller's promise; null constants stand for what is there.
    let rest = unsafe {
        replaced(expression, &mut |node, depth| {
            let is_there = depth == 0
                && (node.as_a::<pg_sys::Aggref>().is_some_and(|aggregate| aggregate.agglevelsup == 0)
                    || columns.key(node, 0).is_some());
            is_there.then(|| {
                let none = pg_sys::InvalidOid;
                pg_sys::makeConst(pg_sys::INT4OID, -1, none, 4, pg_sys::Datum::from(0), true, true).cast()
            })
        })
    };
    expression_may_fail(rest)
}

/// Would the planner compute such a column after LIMIT?
///
/// # Safety
/// A valid expression without sub-queries.
unsafe fn is_expensive(expression: *mut pg_sys::Node) -> bool {
    let mut cost = pg_sys::QualCost::default();
    // SAFETY: the caller's promise. No state of the planner is needed for what is not planned yet.
    unsafe {
        pg_sys::cost_qual_eval_node(&raw mut cost, expression, std::ptr::null_mut());
        cost.per_tuple > EXPENSIVE * pg_sys::cpu_operator_cost
    }
}
