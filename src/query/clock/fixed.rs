//! Columns that have one value in all rows that WHERE lets pass: `tenant = 7 AND at > now() - interval '1 hour'`. Of
//! the other rows no answer has anything, so the canonical bound of such a comparison with the clock is sought among
//! the rows with that value alone, in an index on `(tenant, at)`. Reads trees; keeps nothing.

use pgrx::pg_sys::{self, Oid, RTEKind};

use super::expression::type_of;
use super::split::{Comparison, EQUALITIES, Fixed, MOST_FIXED};
use crate::pg::server;
use crate::pg::tree::{Tree, child, children, match_node};

/// Deepest nesting of AND.
const DEEPEST: usize = 8;

impl Fixed {
    /// The columns that are fixed in all rows which a comparison with the clock decides on. `query` tells the query as
    /// many levels up. None are looked for in a sub-query.
    pub fn beside<'t>(comparison: &Comparison<'t>, query: impl Fn(u32) -> Option<Tree<'t, pg_sys::Query>>) -> Self {
        let outermost = query(0).filter(|_| query(1).is_none());
        outermost.and_then(|query| Self::found(comparison, query)).unwrap_or(Self::NONE)
    }

    fn found<'t>(comparison: &Comparison<'t>, query: Tree<'t, pg_sys::Query>) -> Option<Self> {
        let from = child!(query.jointree)?;
        let relation = comparison.named.varno;
        let place = usize::try_from(relation).ok()?.checked_sub(1)?;
        // A view or a sub-query numbers its columns otherwise.
        let is_table = children!(query.rtable as RangeTblEntry).nth(place)?.rtekind == RTEKind::RTE_RELATION;
        if comparison.named.varlevelsup != 0 || !is_table {
            return None;
        }
        let (mut fixed, mut count, mut is_here) = (Self::NONE, 0, false);
        each(child!(from.quals)?, 0, &mut |one| {
            is_here |= one.as_ptr() == comparison.call;
            let found = equality(one, relation).filter(|(column, _)| !fixed.columns.contains(column));
            if let Some((column, value)) = found.filter(|_| count < MOST_FIXED) {
                (fixed.columns[count], fixed.values[count]) = (column, value);
                count += 1;
            }
        });
        (is_here && count > 0).then_some(fixed)
    }
}

/// Does something with each of the conditions that are joined by AND.
fn each<'t>(condition: Tree<'t, pg_sys::Node>, depth: usize, act: &mut dyn FnMut(Tree<'t, pg_sys::Node>)) {
    let and = condition.as_a::<pg_sys::BoolExpr>().filter(|both| both.boolop == pg_sys::BoolExprType::AND_EXPR);
    match and.filter(|_| depth < DEEPEST) {
        Some(and) => children!(and.args as Node).for_each(|one| each(one, depth + 1, act)),
        None => act(condition),
    }
}

/// The column of a relation of the query, and the value, if a condition compares both with `=`.
fn equality(condition: Tree<'_, pg_sys::Node>, relation: RelationNumber) -> Option<(i16, *mut pg_sys::Node)> {
    let call = condition.as_a::<pg_sys::OpExpr>()?;
    let (_, left_type, right_type, _) = EQUALITIES.iter().find(|(listed, ..)| *listed == call.opno.to_u32())?;
    let mut items = child!(call.args)?.items();
    let (left, right) = (items.next()??, items.next()??);
    // Equal values of one type stand on either side.
    let is_alike = *left_type == *right_type;
    let pairs = [Some((left, right)), is_alike.then_some((right, left))];
    pairs.into_iter().flatten().find_map(|(column, value)| {
        let column = column_of(column, *left_type)?;
        let is_own = column.varno == relation && column.varlevelsup == 0 && column.varattno > 0;
        // SAFETY: reads a catalog about the collation of a valid call.
        let is_bytewise = *right_type != pg_sys::TEXTOID
            || (call.inputcollid == column.varcollid
                && unsafe { kept!(pg_sys::get_collation_isdeterministic(call.inputcollid)) });
        let is_value = match_node! { value.without_relabelling();
            Const(_constant) => true,
            Param(param) => param.paramkind == pg_sys::ParamKind::PARAM_EXTERN,
            _ => false,
        } && type_of(value) == *right_type;
        (is_own && is_bytewise && is_value).then_some((column.varattno, value.as_ptr()))
    })
}

/// A number in the range table.
type RelationNumber = i32;

/// The column that an expression of this type names, such as a `varchar` that is taken for a text.
fn column_of(node: Tree<'_, pg_sys::Node>, type_oid: Oid) -> Option<Tree<'_, pg_sys::Var>> {
    // SAFETY: an expression of a valid tree.
    let (found, collation) = unsafe { (server::exprType(node.as_ptr()), server::exprCollation(node.as_ptr())) };
    let column = node.without_relabelling().as_a::<pg_sys::Var>()?;
    (found == type_oid && column.varcollid == collation).then_some(column)
}
