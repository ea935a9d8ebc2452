//! Conditions that WHERE demands beside a comparison with the clock: `tenant = 7 AND at > now() - interval '1 hour'`.
//! Of the other rows no answer has anything, so the gap is sought among the rows of that tenant alone, in an index on
//! `(tenant, at)`. Reads trees; keeps nothing.

use pgrx::pg_sys;

use super::expression::type_of;
use crate::pg::tree::{Tree, child, children, match_node};
use crate::pg::tree_making::{column_like, list_of, replaced};
use crate::query::bytewise::{equality_is_bytewise, is_equality};

/// Deepest nesting of AND.
const DEEPEST: usize = 8;

/// The conditions of WHERE on a table of the query, by its number, as conditions on the first relation of another
/// query; null if there are none. Whatever the query does with a row that they reject, its answer has nothing of it.
pub(super) fn of_table(query: Tree<'_, pg_sys::Query>, table: i32) -> *mut pg_sys::List {
    let mut found = Vec::new();
    each(query, &mut |one| found.extend(equality(one, table)));
    list_of(found)
}

/// Does something with each of the conditions of WHERE that are joined by AND.
fn each<'t>(query: Tree<'t, pg_sys::Query>, act: &mut dyn FnMut(Tree<'t, pg_sys::Node>)) {
    fn walk<'t>(condition: Tree<'t, pg_sys::Node>, depth: usize, act: &mut dyn FnMut(Tree<'t, pg_sys::Node>)) {
        let and = condition.as_a::<pg_sys::BoolExpr>().filter(|both| both.boolop == pg_sys::BoolExprType::AND_EXPR);
        match and.filter(|_| depth < DEEPEST) {
            Some(and) => children!(and.args as Node).for_each(|one| walk(one, depth + 1, act)),
            None => act(condition),
        }
    }
    if let Some(all) = child!(query.jointree).and_then(|from| child!(from.quals)) {
        walk(all, 0, act);
    }
}

/// A condition that compares a column of the relation with a constant or a parameter by an `=` that cannot fail, as one
/// on the first relation.
fn equality(condition: Tree<'_, pg_sys::Node>, relation: i32) -> Option<*mut pg_sys::Node> {
    let call = condition.as_a::<pg_sys::OpExpr>()?;
    let (mut columns, mut values) = (0, 0);
    for side in children!(call.args as Node) {
        match_node! { side.without_relabelling();
            Var(var) => {
                let is_own = var.varno == relation && var.varlevelsup == 0 && var.varattno > 0;
                columns += usize::from(is_own && equality_is_bytewise(type_of(side), call.inputcollid));
            },
            Const(_constant) => values += 1,
            Param(param) => values += usize::from(param.paramkind == pg_sys::ParamKind::PARAM_EXTERN),
            _ => {},
        }
    }
    if (columns, values) != (1, 1) || !is_equality(call.opno) {
        return None;
    }
    let first = |node: Tree<'_, pg_sys::Node>, _depth: u32| {
        let number = node.as_a::<pg_sys::Var>()?.varattno;
        // SAFETY: a column of a valid query.
        Some(unsafe { column_like(1, number, node.as_ptr()).cast() })
    };
    // SAFETY: a condition of a valid query.
    Some(unsafe { replaced(condition.as_ptr(), &mut { first }) })
}
