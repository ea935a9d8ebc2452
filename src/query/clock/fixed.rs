//! Columns that have one value in all rows that WHERE lets pass: `tenant = 7 AND at > now() - interval '1 hour'`. Of
//! the other rows no answer has anything, so the canonical bound of such a comparison with the clock is sought among
//! the rows with that value alone, in an index on `(tenant, at)`. It takes a query in whose FROM and WHERE nothing can
//! fail: otherwise a row of another tenant might raise an error, or not, by the order in which the server asks the
//! conditions. Reads trees; keeps nothing.

use pgrx::pg_sys::{self, Oid, RTEKind};

use super::expression::{closed, type_of};
use super::split::{Comparison, EQUALITIES, Fixed, MOST_FIXED};
use crate::pg::compat;
use crate::pg::tree::{Tree, child, children, match_node};

/// Most conditions of WHERE.
const MOST_CONDITIONS: usize = 24;

/// Deepest nesting of AND, and of joins.
const DEEPEST: usize = 8;

impl Fixed {
    /// The columns that are fixed in all rows which a comparison with the clock decides on. `query` tells the query as
    /// many levels up. In a sub-query there are none: the server may ask conditions from around it first.
    pub fn beside<'t>(comparison: &Comparison<'t>, query: impl Fn(u32) -> Option<Tree<'t, pg_sys::Query>>) -> Self {
        let outermost = query(0).filter(|_| query(1).is_none());
        outermost.and_then(|query| Self::found(comparison, query)).unwrap_or(Self::NONE)
    }

    fn found<'t>(comparison: &Comparison<'t>, query: Tree<'t, pg_sys::Query>) -> Option<Self> {
        let from = child!(query.jointree)?;
        let conditions = Conditions::of(child!(from.quals)?)?;
        let relation = comparison.named.varno;
        if comparison.named.varlevelsup != 0 || !conditions.all().any(|one| one.as_ptr() == comparison.call) {
            return None;
        }
        let mut fixed = Self::NONE;
        let mut count = 0;
        for (column, value) in conditions.all().filter_map(|one| equality(one, relation)) {
            if count < MOST_FIXED && !fixed.columns.contains(&column) {
                (fixed.columns[count], fixed.values[count]) = (column, value);
                count += 1;
            }
        }
        (count > 0 && is_plain(query) && conditions.all().all(|one| cannot_fail(one, query))).then_some(fixed)
    }
}

/// The conditions that are joined by AND.
struct Conditions<'t> {
    nodes: [Option<Tree<'t, pg_sys::Node>>; MOST_CONDITIONS],
    count: usize,
}

impl<'t> Conditions<'t> {
    /// `None` if there are too many.
    fn of(quals: Tree<'t, pg_sys::Node>) -> Option<Self> {
        let mut found = Self { nodes: [None; MOST_CONDITIONS], count: 0 };
        found.add(quals, 0).then_some(found)
    }

    fn add(&mut self, node: Tree<'t, pg_sys::Node>, depth: usize) -> bool {
        let and = node.as_a::<pg_sys::BoolExpr>().filter(|both| both.boolop == pg_sys::BoolExprType::AND_EXPR);
        if let Some(and) = and {
            return depth < DEEPEST && children!(and.args as Node).all(|one| self.add(one, depth + 1));
        }
        let Some(place) = self.nodes.get_mut(self.count) else { return false };
        *place = Some(node);
        self.count += 1;
        true
    }

    fn all(&self) -> impl Iterator<Item = Tree<'t, pg_sys::Node>> {
        self.nodes.into_iter().take(self.count).flatten()
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
                && unsafe { pg_sys::get_collation_isdeterministic(call.inputcollid) });
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
    let (found, collation) = unsafe { (pg_sys::exprType(node.as_ptr()), pg_sys::exprCollation(node.as_ptr())) };
    let column = node.without_relabelling().as_a::<pg_sys::Var>()?;
    (found == type_oid && column.varcollid == collation).then_some(column)
}

/// Does FROM consist of relations and their joins alone, without row security and without virtual columns, which are
/// computed and may fail, and are there no sub-queries?
fn is_plain(query: Tree<'_, pg_sys::Query>) -> bool {
    let is_plain_entry = |entry: Tree<'_, pg_sys::RangeTblEntry>| {
        matches!(entry.rtekind, RTEKind::RTE_RELATION | RTEKind::RTE_JOIN)
            && entry.securityQuals.is_null()
            && entry.tablesample.is_null()
            && !(entry.rtekind == RTEKind::RTE_RELATION && compat::has_virtual_columns(entry.relid))
    };
    !query.hasSubLinks
        && query.cteList.is_null()
        && children!(query.rtable as RangeTblEntry).all(is_plain_entry)
        && child!(query.jointree)
            .is_some_and(|from| children!(from.fromlist as Node).all(|item| joins_plainly(item, query, 0)))
}

/// Can nothing in the conditions of a join fail?
fn joins_plainly(item: Tree<'_, pg_sys::Node>, query: Tree<'_, pg_sys::Query>, depth: usize) -> bool {
    let Some(join) = item.as_a::<pg_sys::JoinExpr>() else { return item.tag() == pg_sys::NodeTag::T_RangeTblRef };
    let conditions = match child!(join.quals) {
        None => true,
        Some(quals) => Conditions::of(quals).is_some_and(|found| found.all().all(|one| cannot_fail(one, query))),
    };
    let below = [child!(join.larg), child!(join.rarg)];
    depth < DEEPEST
        && conditions
        && below.into_iter().all(|side| side.is_some_and(|side| joins_plainly(side, query, depth + 1)))
}

/// Is it a condition that never fails, by a short list? A clock expression has been computed before.
fn cannot_fail(condition: Tree<'_, pg_sys::Node>, query: Tree<'_, pg_sys::Query>) -> bool {
    match_node! { condition;
        OpExpr(call) => {
            let equality = EQUALITIES.iter().find(|(listed, ..)| *listed == call.opno.to_u32());
            if let Some((_, _, right_type, _)) = equality {
                // Texts of columns with different collations are not compared by any.
                let has_collation = *right_type != pg_sys::TEXTOID || call.inputcollid != pg_sys::InvalidOid;
                return has_collation && children!(call.args as Node).all(is_simple);
            }
            let at_level = |levels: u32| (levels == 0).then_some(query);
            let compared = Comparison::of(call, None, at_level);
            compared.filter(Comparison::cannot_fail).is_some_and(|found| {
                is_simple(found.with) || closed(found.with).is_some_and(|expression| expression.asks)
            })
        },
        NullTest(test) => child!(test.arg).is_some_and(|tested| is_simple(tested.as_node())),
        Var(_column) => true,
        _ => false,
    }
}

/// A column, a constant or a parameter.
fn is_simple(node: Tree<'_, pg_sys::Node>) -> bool {
    match_node! { node;
        Var(_column) => true,
        Const(_constant) => true,
        Param(param) => param.paramkind == pg_sys::ParamKind::PARAM_EXTERN,
        RelabelType(_relabelled) => is_simple(node.without_relabelling()),
        _ => false,
    }
}
