//! The expression that stands in for a call of a function in SQL: its body, with the arguments in the place of the
//! parameters. The planner does the same (optimizer/util/clauses.c, `inline_function`), under conditions of its own:
//! where it does not, it runs the body whenever the function is called, with what names and settings mean by then. In a
//! plan that is run at once that is the same, so a body may stand there where the planner would not put it: that of a
//! STRICT function, say. Keeps nothing.

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
    /// It is in a body that the planner might not have put there.
    pub is_beyond: bool,
    /// A body may stand where the planner might not put it.
    pub may_go_beyond: bool,
}

/// What stands in for a call.
pub struct Found {
    /// The expression. Calls in the body are still there.
    pub expression: *mut pg_sys::Node,
    /// The planner might not put it there.
    pub goes_beyond: bool,
}

/// The expression that may stand in for a call.
///
/// # Safety
/// A valid call, in such queries.
pub unsafe fn expression_for(call: *mut pg_sys::FuncExpr, asked: &Asked<'_>) -> Option<Found> {
    let form = asked.row.function()?;
    // SAFETY: the caller's promise; expressions of valid trees, and a global that tells of hooks.
    unsafe {
        let arguments: Vec<*mut pg_sys::Node> = nodes((*call).args).collect();
        let hook = pg_sys::needs_fmgr_hook;
        // What is called is hooked by others, is forbidden, gives several values, or refers to what is around it.
        if hook.is_some()
            || !may_execute(server::GetUserId(), (*call).funcid)
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
        let is_strict = form.proisstrict
            && !arguments.is_empty()
            && (kept!(pg_sys::contain_nonstrict_functions(body)) || uses.contains(&0));
        let mut shared = arguments.iter().zip(&uses).filter(|(_, uses)| **uses + usize::from(is_strict) > 1);
        if !shared.clone().all(|(argument, _)| is_cheap(*argument)) {
            return None;
        }
        let is_as_declared = match form.provolatile as u8 {
            pg_sys::PROVOLATILE_IMMUTABLE => !kept!(pg_sys::contain_mutable_functions(body)),
            pg_sys::PROVOLATILE_STABLE => !kept!(pg_sys::contain_volatile_functions(body)),
            _ => true,
        };
        let mut argument = |node: Tree<'_, pg_sys::Node>, _| {
            let place = node.as_a::<pg_sys::Param>()?.paramid as usize - 1;
            arguments.get(place).map(|argument| copy(*argument))
        };
        let expression = collated(replaced(body, &mut argument), (*call).funccollid);
        let expression = if is_strict { unless_null(call, &arguments, expression) } else { expression };
        // The planner runs the function itself if the arguments are constants. Then the client is not told of a
        // modifier that an argument has, and 18 may run what it has made of the body before.
        let may_be_computed = form.provolatile as u8 == pg_sys::PROVOLATILE_IMMUTABLE
            && !arguments.iter().any(|argument| is_column(*argument, asked.queries));
        let is_described_alike = exprTypmod(expression) == exprTypmod(call.cast());
        let goes_beyond = asked.is_beyond
            || is_strict
            || !is_as_declared
            || !shared.all(|(argument, _)| is_made_of_columns(*argument, asked.queries))
            || (may_be_computed && (KEEPS_BODIES || !is_described_alike));
        let may_stand = !goes_beyond || (asked.may_go_beyond && !KEEPS_BODIES && is_described_alike);
        may_stand.then_some(Found { expression, goes_beyond })
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

/// CASE WHEN an argument is NULL THEN NULL ELSE an expression END, as the value of a call.
unsafe fn unless_null(
    call: *mut pg_sys::FuncExpr,
    arguments: &[*mut pg_sys::Node],
    expression: *mut pg_sys::Node,
) -> *mut pg_sys::Node {
    let test = |argument: &*mut pg_sys::Node| {
        let test = new_node::<pg_sys::NullTest>();
        // SAFETY: a new node, and a valid expression. A row whose columns are NULL is not NULL.
        unsafe {
            (*test).arg = copy(*argument).cast();
            ((*test).nulltesttype, (*test).argisrow, (*test).location) = (pg_sys::NullTestType::IS_NULL, false, -1);
        }
        test
    };
    let tests = list_of(arguments.iter().map(test));
    let (choice, branch) = (new_node::<pg_sys::CaseExpr>(), new_node::<pg_sys::CaseWhen>());
    // SAFETY: new nodes, and a valid call and expression.
    unsafe {
        let (result, collation) = ((*call).funcresulttype, (*call).funccollid);
        (*branch).expr = kept!(pg_sys::makeBoolExpr(pg_sys::BoolExprType::OR_EXPR, tests, -1));
        (*branch).result = kept!(pg_sys::makeNullConst(result, -1, collation)).cast();
        ((*branch).location, (*choice).location) = (-1, -1);
        ((*choice).casetype, (*choice).casecollid) = (result, collation);
        (*choice).args = list_of([branch]);
        (*choice).defresult = expression.cast();
    }
    choice.cast()
}
