//! The clock in the columns of an answer: `SELECT name, now() - joined FROM t`. Such an answer changes all the time,
//! but only through what is computed last. So the query is taken apart: the *clock-free part* is the same query with
//! the expressions below the clock as columns, and the *projection* computes the columns of the answer from those, row
//! by row, at each execution.
//!
//! Exact because both compute the same functions of the same rows:
//!
//! * The part has the FROM, WHERE, groups, windows, order and limit of the query, so it has the same rows in the same
//!   order. None of these may ask for the time to the microsecond, which the check of the part finds out.
//! * Columns of the answer that do not ask for the time are columns of the part as they are. Of the others, what
//!   depends on rows becomes one: columns, aggregates, keys of GROUP BY. The query computes it for each of its rows, or
//!   it cannot fail, or nothing in the part can (`hoisting`). All else remains in the projection. So an error comes
//!   only if computing the query may raise it.
//! * A key of GROUP BY, DISTINCT or ORDER BY that asks for the time has one value in a statement, shown or not. So has
//!   the NULL that takes its place in the part.
//!
//! Reads trees; what it makes lies in the current memory context. Keeps nothing.

mod hoisting;
mod walks;

use pgrx::pg_sys;

use crate::pg::compat::tree::name_grouped_columns;
use crate::pg::folding::fold;
use crate::pg::lists::nodes;
use crate::pg::server;
use crate::pg::tree::{Tree, children};
use crate::pg::tree_making::{copy, list_of};
use crate::query::failures::query_may_fail;
use hoisting::Hoisting;
use walks::asks_for_time;

/// A query that was taken apart.
#[derive(Clone, Copy)]
pub struct ShownClock {
    /// The clock-free part.
    pub part: *mut pg_sys::Query,
    /// The target entries of the projection. `Var`s of `OUTER_VAR` name the columns of the part.
    pub projection: *mut pg_sys::List,
    /// Columns of the part are sub-queries, or columns of sub-queries in FROM that may fail, and the query might never
    /// have computed them.
    computes_more: bool,
}

impl ShownClock {
    /// Returns true if computing the part may raise an error in what the query might never have computed.
    pub fn may_fail_beside(&self) -> bool {
        // SAFETY: the part is a valid query.
        self.computes_more && unsafe { Tree::enter(self.part) }.is_none_or(query_may_fail)
    }
}

/// Returns true if a column of the answer, or a key that is not shown, asks for the time. Quick to tell.
pub fn is_shown(query: Tree<'_, pg_sys::Query>) -> bool {
    children!(query.targetList as TargetEntry).any(|target| asks_for_time(target.as_node().as_ptr()))
}

/// Takes a query apart that is planned for these values of its parameters, or for all. `None` if the part would ask for
/// the time wherever the query does, or something stands in the way.
pub fn take_apart(query: Tree<'_, pg_sys::Query>, params: pg_sys::ParamListInfo) -> Option<ShownClock> {
    let is_plain = query.commandType == pg_sys::CmdType::CMD_SELECT
        && query.setOperations.is_null()
        && query.groupingSets.is_null()
        && query.rowMarks.is_null()
        && !(query.hasTargetSRFs || query.hasModifyingCTE || query.hasForUpdate);
    if !is_plain || !is_shown(query) {
        return None;
    }
    // SAFETY: a valid query, of which a copy is changed.
    unsafe {
        let part = copy(query.as_ptr());
        name_grouped_columns(part);
        let mut hoisting = Hoisting::of(part);
        let (mut shown, mut junk) = (Vec::new(), Vec::new());
        let mut asks_less = false;
        for target in nodes::<pg_sys::TargetEntry>((*part).targetList) {
            let expression: *mut pg_sys::Node = (*target).expr.cast();
            let output = copy(target);
            (*output).ressortgroupref = 0;
            let is_one_time = (*target).ressortgroupref != 0 && is_time(expression) && !has_distances(part);
            if is_one_time {
                (*target).expr = null_like(expression);
                asks_less = true;
            }
            if (*target).resjunk {
                junk.push(target);
                continue;
            }
            (*output).expr = if is_one_time {
                hoisting.keep(target);
                (*output).expr
            } else if (*target).ressortgroupref != 0 || !asks_for_time(expression) {
                hoisting.keep(target).cast()
            } else if keeps_columns(expression, params) {
                asks_less = true;
                hoisting.project(expression)?.cast()
            } else {
                return None;
            };
            shown.push(output);
        }
        let computes_more = hoisting.computes_more();
        let projection = list_of(shown);
        let columns = hoisting.finish(junk);
        let is_wrong = columns.is_null()
            || !asks_less
            || (*columns).length > pg_sys::MaxTupleAttributeNumber as i32
            || kept!(pg_sys::contain_volatile_functions(projection.cast()));
        (*part).targetList = columns;
        (!is_wrong).then_some(ShownClock { part, projection, computes_more })
    }
}

/// Returns true if an expression asks for the time, and has one value in a statement.
///
/// # Safety
/// An expression of a valid query.
unsafe fn is_time(expression: *mut pg_sys::Node) -> bool {
    // SAFETY: the caller's promise.
    let is_volatile = || unsafe { kept!(pg_sys::contain_volatile_functions(expression)) };
    asks_for_time(expression) && !walks::depends_on_rows(expression) && !is_volatile()
}

/// Returns true if a window reaches to a distance from the value of its key, which NULL has not.
///
/// # Safety
/// A valid query.
unsafe fn has_distances(query: *mut pg_sys::Query) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        nodes::<pg_sys::WindowClause>((*query).windowClause).any(|window| {
            (*window).startInRangeFunc != pg_sys::InvalidOid || (*window).endInRangeFunc != pg_sys::InvalidOid
        })
    }
}

/// NULL of the type of an expression.
///
/// # Safety
/// An expression of a valid query.
unsafe fn null_like(expression: *mut pg_sys::Node) -> *mut pg_sys::Expr {
    // SAFETY: the caller's promise; a new node.
    unsafe {
        let collation = server::exprCollation(expression);
        kept!(pg_sys::makeNullConst(server::exprType(expression), server::exprTypmod(expression), collation)).cast()
    }
}

/// Returns true if the planner leaves out no column, no aggregate and no window function of an expression because
/// constants say that it is never reached.
///
/// # Safety
/// An expression of a valid query, and valid values.
unsafe fn keeps_columns(expression: *mut pg_sys::Node, params: pg_sys::ParamListInfo) -> bool {
    // SAFETY: the caller's promise: a copy is folded, as the planner will do it.
    unsafe {
        let folded = fold(copy(expression), params).expression;
        walks::count_columns(folded) == walks::count_columns(expression)
    }
}
