//! Conditions that WHERE demands beside a comparison with the clock: `tenant = 7 AND at > now() - interval '1 hour'`.
//! Of the other rows no answer has anything, so the gap is sought among the rows of that tenant alone, in an index on
//! `(tenant, at)`. Reads trees; keeps nothing.

use pgrx::pg_sys::{self, RTEKind};

use super::expression::type_of;
use super::sides::Sides;
use crate::pg::object_ids::FIRST_UNPINNED_OID;
use crate::pg::tree::{Tree, child, children, match_node};
use crate::pg::tree_making::{list_of, replaced};
use crate::query::bytewise::equality_is_bytewise;

/// Deepest nesting of AND.
const DEEPEST: usize = 8;

/// The conditions on the table whose column is compared, as conditions on the first relation of another query; null if
/// there are none. `noted` is the clock expression, or the comparison itself. None are looked for in sub-queries.
pub(super) fn beside(query: Tree<'_, pg_sys::Query>, noted: *mut pg_sys::Node) -> *mut pg_sys::List {
    relation_of(query, noted).map_or(std::ptr::null_mut(), |relation| {
        let mut found = Vec::new();
        each(query, &mut |one| found.extend(equality(one, relation)));
        list_of(found)
    })
}

/// The table of the query whose column is compared, if the comparison is one of the conditions of WHERE.
fn relation_of(query: Tree<'_, pg_sys::Query>, noted: *mut pg_sys::Node) -> Option<i32> {
    let mut relation = None;
    each(query, &mut |one| {
        let Some(call) = one.as_a::<pg_sys::OpExpr>() else { return };
        if one.as_ptr() == noted || children!(call.args as Node).any(|side| side.as_ptr() == noted) {
            relation = Sides::of(call).and_then(|sides| sides.side.as_a::<pg_sys::Var>()).map(|var| var.varno);
        }
    });
    let place = usize::try_from(relation?).ok()?.checked_sub(1)?;
    // A view or a sub-query numbers its columns otherwise.
    let entry = children!(query.rtable as RangeTblEntry).nth(place)?;
    relation.filter(|_| entry.rtekind == RTEKind::RTE_RELATION)
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
        let var = node.as_a::<pg_sys::Var>()?;
        // SAFETY: a new node.
        let other = unsafe { kept!(pg_sys::makeVar(1, var.varattno, var.vartype, var.vartypmod, var.varcollid, 0)) };
        Some(other.cast())
    };
    // SAFETY: a condition of a valid query.
    Some(unsafe { replaced(condition.as_ptr(), &mut { first }) })
}

/// Returns true for an operator of the server's own by which an index is searched for one value.
fn is_equality(operator: pg_sys::Oid) -> bool {
    // SAFETY: reads a catalog about an operator that the query uses.
    operator.to_u32() < FIRST_UNPINNED_OID && unsafe { !kept!(pg_sys::get_mergejoin_opfamilies(operator)).is_null() }
}
