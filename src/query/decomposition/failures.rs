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
//! LIMIT, or a client that stops reading a cursor or portal: a plan that finds its groups in the order that is asked for reads no more of them than it needs. If the order begins with an
//! aggregate, all groups are computed first, and all columns but expensive ones, which the planner computes for the rows that are left.

use pgrx::pg_sys;

use super::columns::Columns;
use super::combine::Combined;
use super::conditions::conjuncts;
use super::obstacle::Obstacle;
use super::part::Part;
use super::site::{Site, selection};
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
    reads_all: bool,
) -> Result<(), Obstacle> {
    // SAFETY: the query of the part is valid.
    let asked = unsafe { Tree::enter(part.query) }.ok_or(Obstacle::NoTable)?;
    let conditions_fail = part.bounds().iter().any(|bound| expression_may_fail(bound.clause)) || from_fails(asked);
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
    if (query.limitCount.is_null() && reads_all) || site.is_grand() {
        return Ok(());
    }
    let computes_all = sorts_by_aggregate(query);
    let groups_fail = || having_fails || columns.expressions().iter().any(|expression| computing_fails(*expression));
    // SAFETY: the caller's promise.
    if (!computes_all && groups_fail()) || unsafe { targets_show_limit(site, columns, combined, computes_all) } {
        return Err(Obstacle::Limit);
    }
    Ok(())
}

/// May computing a key, or what an aggregate adds up, fail? What it adds up to may be out of range; that is a limit of what is combined.
fn computing_fails(expression: *mut pg_sys::Node) -> bool {
    // SAFETY: an expression of a valid query.
    match unsafe { Tree::enter(expression) }.and_then(Tree::as_a::<pg_sys::Aggref>) {
        Some(aggregate) => {
            expression_may_fail(aggregate.args.cast()) || expression_may_fail(aggregate.aggfilter.cast())
        }
        None => expression_may_fail(expression),
    }
}

/// May a condition of FROM, of row security, or of WHERE of a sub-query of FROM fail?
fn from_fails(query: Tree<'_, pg_sys::Query>) -> bool {
    let from = child!(query.jointree).map_or(std::ptr::null_mut(), Tree::as_ptr);
    fails(query, from.cast())
        || children!(query.rtable as RangeTblEntry).any(|entry| {
            expression_may_fail(entry.securityQuals.cast()) || child!(entry.subquery).is_some_and(from_fails)
        })
}

/// May a condition of a query fail, where columns of sub-queries are what these compute?
fn fails(query: Tree<'_, pg_sys::Query>, condition: *mut pg_sys::Node) -> bool {
    if expression_may_fail(condition) {
        return true;
    }
    let mut fails_below = false;
    let mut examine = |node: Tree<'_, pg_sys::Node>, depth: u32| {
        let column = node.as_a::<pg_sys::Var>().filter(|column| column.varlevelsup == depth)?;
        let entry = children!(query.rtable as RangeTblEntry).nth((column.varno as usize).checked_sub(1)?)?;
        let below = selection(entry)?;
        let target = children!(below.targetList as TargetEntry).find(|target| target.resno == column.varattno)?;
        fails_below |= fails(below, target.expr.cast());
        None
    };
    // SAFETY: an expression of the query. Nothing is replaced.
    unsafe { replaced(condition, &mut examine) };
    fails_below
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
