//! WHERE, taken apart into conjuncts, of which some are bounds.

use pgrx::pg_sys;

use super::constants::{constant_of, of_column_type};
use super::site::origin;
use crate::pg::lists::{integers, nodes};
use crate::pg::tree::{Tree, child, children};
use crate::pg::tree_making::{copy, list_of, list_of_numbers};
use crate::query::partitions::Bound;

/// How many bounds there are at most: there is a bit for each.
const MOST_BOUNDS: usize = 64;

/// The conjuncts of a condition, in their order.
pub(super) fn conjuncts<'t>(condition: Option<Tree<'t, pg_sys::Node>>) -> Vec<Tree<'t, pg_sys::Node>> {
    let mut found = Vec::new();
    add_conjuncts(condition, &mut found);
    found
}

fn add_conjuncts<'t>(condition: Option<Tree<'t, pg_sys::Node>>, found: &mut Vec<Tree<'t, pg_sys::Node>>) {
    let Some(condition) = condition else { return };
    if let Some(all) = condition.as_a::<pg_sys::BoolExpr>()
        && all.boolop == pg_sys::BoolExprType::AND_EXPR
    {
        children!(all.args as Node).for_each(|one| add_conjuncts(Some(one), found));
    } else if let Some(list) = condition.as_a::<pg_sys::List>() {
        list.items().for_each(|one| add_conjuncts(one, found));
    } else {
        found.push(condition);
    }
}

/// All of these; null for none.
pub(super) fn all_of(conjuncts: impl ExactSizeIterator<Item = *mut pg_sys::Node>) -> *mut pg_sys::Node {
    let count = conjuncts.len();
    let mut conjuncts = conjuncts.peekable();
    match count {
        0 => std::ptr::null_mut(),
        1 => conjuncts.next().unwrap_or(std::ptr::null_mut()),
        // SAFETY: a new node, over valid expressions.
        _ => unsafe { pg_sys::make_andclause(list_of(conjuncts)).cast() },
    }
}

/// The conditions of a part.
pub(super) struct Conditions {
    pub bounds: Vec<Bound>,
    /// How many of the others stand before each bound.
    places: Vec<usize>,
    others: Vec<*mut pg_sys::Node>,
}

impl Conditions {
    /// Takes WHERE of a query over a table apart.
    pub fn of(query: Tree<'_, pg_sys::Query>, condition: Option<Tree<'_, pg_sys::Node>>, table: pg_sys::Oid) -> Self {
        let mut conditions = Self { bounds: Vec::new(), places: Vec::new(), others: Vec::new() };
        for conjunct in conjuncts(condition) {
            match bound_of(query, conjunct, table).filter(|_| conditions.bounds.len() < MOST_BOUNDS) {
                Some(bound) => {
                    conditions.bounds.push(bound);
                    conditions.places.push(conditions.others.len());
                }
                None => conditions.others.push(conjunct.as_ptr()),
            }
        }
        conditions
    }

    /// The conditions as nodes: the bounds, the places, the others. What `of_lists` takes.
    pub fn to_lists(&self) -> [*mut pg_sys::List; 3] {
        [
            list_of(self.bounds.iter().map(|bound| bound.clause)),
            list_of_numbers(self.places.iter().map(|place| *place as i32)),
            list_of(self.others.iter().copied()),
        ]
    }

    /// The conditions that `to_lists` has made nodes of, or the server copies of these. What the bounds compare is not among it.
    ///
    /// # Safety
    /// Such lists, which outlive the conditions.
    pub unsafe fn of_lists([bounds, places, others]: [*const pg_sys::List; 3]) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                bounds: nodes(bounds)
                    .map(|clause| Bound {
                        clause,
                        column: 0,
                        operator: pg_sys::InvalidOid,
                        value: std::ptr::null_mut(),
                    })
                    .collect(),
                places: integers(places).map(|place| place as usize).collect(),
                others: nodes(others).collect(),
            }
        }
    }

    /// The condition with those bounds whose bit is set, in the order in which the statement has them. A copy.
    pub fn with(&self, asked: u64) -> *mut pg_sys::Node {
        let mut all = Vec::new();
        let mut bounds = self.bounds.iter().zip(&self.places).enumerate().peekable();
        for place in 0..=self.others.len() {
            while let Some((number, (bound, _))) = bounds.next_if(|(_, (_, at))| **at == place) {
                if asked & (1 << number) != 0 {
                    all.push(bound.clause);
                }
            }
            all.extend(self.others.get(place));
        }
        // SAFETY: valid expressions.
        all_of(all.into_iter().map(|conjunct| unsafe { copy(conjunct) }))
    }
}

/// The bound that a conjunct is: a column of the table, compared with a constant. The condition of the bound
/// says the same with the constant computed, and on the right.
fn bound_of(query: Tree<'_, pg_sys::Query>, conjunct: Tree<'_, pg_sys::Node>, table: pg_sys::Oid) -> Option<Bound> {
    let comparison = conjunct.as_a::<pg_sys::OpExpr>().filter(|call| call.opresulttype == pg_sys::BOOLOID)?;
    let mut arguments = child!(comparison.args)?.items();
    let sides = (arguments.next()??, arguments.next()??);
    let (left, right) = (column_of(query, sides.0, table), column_of(query, sides.1, table));
    // SAFETY: an operator of a valid query, and its arguments. The copy of the condition is changed before anybody else knows of it.
    unsafe {
        let (column, argument, operator, value) = match (left, right) {
            (Some(column), None) => (column, sides.0, comparison.opno, constant_of(sides.1)?),
            (None, Some(column)) => (column, sides.1, pg_sys::get_commutator(comparison.opno), constant_of(sides.0)?),
            _ => return None,
        };
        if operator == pg_sys::InvalidOid {
            return None;
        }
        let (operator, value) = of_column_type(column.vartype, operator, value).unwrap_or((operator, value));
        let clause = copy(comparison.as_ptr());
        (*clause).opno = operator;
        (*clause).opfuncid = pg_sys::get_opcode(operator);
        (*clause).args = list_of([argument.as_ptr(), value.cast()]);
        Some(Bound { clause: clause.cast(), column: column.varattno, operator, value })
    }
}

/// A column of the table, perhaps taken as one of a type with the same values.
fn column_of<'t>(
    query: Tree<'t, pg_sys::Query>,
    node: Tree<'t, pg_sys::Node>,
    table: pg_sys::Oid,
) -> Option<Tree<'t, pg_sys::Var>> {
    let node = match node.as_a::<pg_sys::RelabelType>() {
        Some(relabelled) => child!(relabelled.arg)?.as_node(),
        None => node,
    };
    let (entry, column) = origin(query, node.as_a::<pg_sys::Var>()?)?;
    (entry.relid == table && entry.inh).then_some(column)
}
