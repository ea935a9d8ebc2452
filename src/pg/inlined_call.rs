//! The expression that stands in for a call of a function in SQL: its body, with the arguments in the place of the
//! parameters. The planner does the same (optimizer/util/clauses.c, `inline_function`). Where it is not sure that it
//! would, the call is left: then the body may be run whenever the function is called, with what names and settings mean
//! by then. Keeps nothing.

use pgrx::pg_sys::{self, NodeTag, RTEKind};

use super::catalog_row::CatalogRow;
use super::compat::tree::KEEPS_BODIES;
use super::compat::{has_virtual_columns, may_execute};
use super::lists::{node_at, nodes};
use super::server::{self, exprCollation, exprTypmod};
use super::sql_body::body_of;
use super::tree::Tree;
use super::tree_making::{copy, list_of, new_node, replaced};
use super::tree_search::search;

/// An argument is put in several places if computing it costs at most so many operators: the server has the same bound.
const CHEAP: f64 = 10.0;

/// A call whose arguments are all there, in their order, and where it stands.
pub struct Asked<'a> {
    /// The function, for which `sql_body::may_stand_in` is true.
    pub row: &'a CatalogRow,
    /// The queries around the call, the outermost first.
    pub queries: &'a [*mut pg_sys::Query],
    /// It is in an expression that may have a value which parts of it refer to.
    pub is_in_case: bool,
}

/// The expression that the planner would put in the place of a call. Calls in the body are still there.
///
/// # Safety
/// A valid call, in such queries.
pub unsafe fn expression_for(call: *mut pg_sys::FuncExpr, asked: &Asked<'_>) -> Option<*mut pg_sys::Node> {
    let form = asked.row.function()?;
    // SAFETY: the caller's promise; expressions of valid trees.
    unsafe {
        let arguments: Vec<*mut pg_sys::Node> = nodes((*call).args).collect();
        // What is called is forbidden, gives several values, or refers to what is around it.
        if !may_execute(server::GetUserId(), (*call).funcid)
            || arguments.len() != form.pronargs as usize
            || kept!(pg_sys::expression_returns_set((*call).args.cast()))
            || (asked.is_in_case && refers_to_case((*call).args))
        {
            return None;
        }
        let body = body_of(call, asked.row)?;
        let mut uses = vec![0; arguments.len()];
        let mut count = |node: Tree<'_, pg_sys::Node>| {
            let place = node.as_a::<pg_sys::Param>().map(|param| param.paramid as usize - 1);
            if let Some(uses) = place.and_then(|place| uses.get_mut(place)) {
                *uses += 1;
            }
            false
        };
        search(body, 0, &mut count)?;
        // Of a STRICT function nothing is computed if an argument is NULL.
        let is_null_unseen =
            form.proisstrict && (kept!(pg_sys::contain_nonstrict_functions(body)) || uses.contains(&0));
        let may_be_shared = |argument| is_cheap(argument) && is_made_of_columns(argument, asked.queries);
        let mut shared = arguments.iter().zip(&uses).filter(|(_, uses)| **uses > 1);
        let is_as_declared = match form.provolatile as u8 {
            pg_sys::PROVOLATILE_IMMUTABLE => !kept!(pg_sys::contain_mutable_functions(body)),
            pg_sys::PROVOLATILE_STABLE => !kept!(pg_sys::contain_volatile_functions(body)),
            _ => true,
        };
        if is_null_unseen || !is_as_declared || !shared.all(|(argument, _)| may_be_shared(*argument)) {
            return None;
        }
        let mut argument = |node: Tree<'_, pg_sys::Node>, _| {
            let place = node.as_a::<pg_sys::Param>()?.paramid as usize - 1;
            arguments.get(place).map(|argument| copy(*argument))
        };
        let expression = collated(replaced(body, &mut argument), (*call).funccollid);
        // The planner runs the function itself if the arguments are constants. Then the client is not told of a
        // modifier that an argument has, and 18 may run what it has made of the body before.
        let may_be_computed = form.provolatile as u8 == pg_sys::PROVOLATILE_IMMUTABLE
            && !arguments.iter().any(|argument| is_column(*argument, asked.queries));
        let is_described_alike = exprTypmod(expression) == exprTypmod(call.cast());
        (!may_be_computed || (is_described_alike && !KEEPS_BODIES)).then_some(expression)
    }
}

/// Returns true if some part refers to the value of an expression around it (CASE x WHEN …), or may do so.
unsafe fn refers_to_case(arguments: *mut pg_sys::List) -> bool {
    // SAFETY: valid expressions.
    unsafe { search(arguments.cast(), 0, &mut |node| node.tag() == NodeTag::T_CaseTestExpr) }.unwrap_or(true)
}

/// Returns true if an argument may be computed several times.
unsafe fn is_cheap(argument: *mut pg_sys::Node) -> bool {
    let mut cost = pg_sys::QualCost::default();
    // SAFETY: a valid expression. The server counts without knowing the query, if there are no sub-queries.
    unsafe {
        !kept!(pg_sys::contain_subplans(argument)) && !kept!(pg_sys::contain_volatile_functions(argument)) && {
            kept!(pg_sys::cost_qual_eval(&raw mut cost, list_of([argument]), std::ptr::null_mut()));
            cost.startup + cost.per_tuple <= CHEAP * pg_sys::cpu_operator_cost
        }
    }
}

/// Returns true if an expression is a column of a table, for which the planner puts nothing else.
unsafe fn is_column(expression: *mut pg_sys::Node, queries: &[*mut pg_sys::Query]) -> bool {
    // SAFETY: a valid expression in valid queries.
    unsafe {
        Tree::enter(expression).and_then(Tree::as_a::<pg_sys::Var>).is_some_and(|var| {
            let level = queries.len().checked_sub(1 + var.varlevelsup as usize);
            let entry: Option<*mut pg_sys::RangeTblEntry> =
                level.and_then(|level| node_at((*queries[level]).rtable, (var.varno as usize).wrapping_sub(1)));
            entry.is_some_and(|entry| (*entry).rtekind == RTEKind::RTE_RELATION && !has_virtual_columns((*entry).relid))
        })
    }
}

/// Returns true if all columns in an expression are columns of tables.
unsafe fn is_made_of_columns(expression: *mut pg_sys::Node, queries: &[*mut pg_sys::Query]) -> bool {
    let mut is_other = |node: Tree<'_, pg_sys::Node>| {
        // SAFETY: a part of a valid expression in valid queries.
        node.tag() == NodeTag::T_Var && !unsafe { is_column(node.as_ptr(), queries) }
    };
    // SAFETY: a valid expression.
    let found = unsafe { search(expression, 0, &mut is_other) };
    found == Some(false)
}

/// An expression that shows the collation of a call.
unsafe fn collated(expression: *mut pg_sys::Node, collation: pg_sys::Oid) -> *mut pg_sys::Node {
    // SAFETY: a valid expression.
    let own = unsafe { exprCollation(expression) };
    if [own, pg_sys::InvalidOid].contains(&collation) || own == pg_sys::InvalidOid {
        return expression;
    }
    let made = new_node::<pg_sys::CollateExpr>();
    // SAFETY: a new node.
    unsafe {
        ((*made).arg, (*made).collOid, (*made).location) = (expression.cast(), collation, -1);
    }
    made.cast()
}
