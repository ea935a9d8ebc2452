//! The conditions of a part, taken apart into conjuncts, of which some are bounds.

use pgrx::pg_sys::{self, NodeTag};

use super::constants::{Values, comparable, operand_of};
use super::filters::filters;
use super::site::origin;
use crate::pg::compat;
use crate::pg::tree::{Tree, child, children};
use crate::pg::tree_making::{column_like, copy, list_of, replaced};
use crate::query::partitions::Bound;

/// How many bounds there are at most: there is a bit for each.
const MOST_BOUNDS: usize = 64;

/// What a part asks of the columns of the table.
pub(super) struct Conditions {
    pub bounds: Vec<Bound>,
    /// The number, in the list of `filters`, of the filter that each bound stands in.
    pub filters_of_bounds: Vec<usize>,
    /// The other conditions that name columns of the table alone, which are those of relation 1: a list.
    pub others: *mut pg_sys::List,
}

impl Conditions {
    /// Takes the bounds out of the filters of a query over a table.
    ///
    /// # Safety
    /// A valid query that the caller may change.
    pub unsafe fn take(query: *mut pg_sys::Query, table: pg_sys::Oid, values: Values) -> Self {
        let none = std::ptr::null_mut();
        let mut taken = Self { bounds: Vec::new(), filters_of_bounds: Vec::new(), others: none };
        // SAFETY: the caller's promise; nothing but the conditions is changed.
        for (number, filter) in unsafe { filters(query) }.into_iter().enumerate() {
            // SAFETY: as above. The condition is replaced when nobody reads it any more.
            unsafe {
                let Some(level) = Tree::enter(filter.level) else { continue };
                let mut others = Vec::new();
                let conjuncts = kept!(pg_sys::make_ands_implicit((*filter.condition).cast()));
                for conjunct in Tree::enter(conjuncts).into_iter().flat_map(Tree::items).flatten() {
                    match bound_of(level, conjunct, table, values).filter(|_| taken.bounds.len() < MOST_BOUNDS) {
                        Some(bound) => {
                            taken.bounds.push(bound);
                            taken.filters_of_bounds.push(number);
                        }
                        None => {
                            others.push(conjunct.as_ptr());
                            taken.others = kept!(pg_sys::list_concat(
                                taken.others,
                                list_of(about_table(level, conjunct, table, values))
                            ));
                        }
                    }
                }
                *filter.condition = kept!(pg_sys::make_ands_explicit(list_of(others))).cast();
                taken.others = kept!(pg_sys::list_concat(taken.others, list_of(policies(level, table, values))));
            }
        }
        taken
    }

    /// Puts some bounds, as bits, back into the filters of a copy of the query that they were taken out of.
    ///
    /// # Safety
    /// A valid query that the caller may change.
    pub unsafe fn put_back(&self, query: *mut pg_sys::Query, asked: u64) {
        // SAFETY: the caller's promise; nothing but the conditions is changed.
        let filters = unsafe { filters(query) };
        let all = self.bounds.iter().zip(&self.filters_of_bounds).enumerate();
        for (_, (bound, place)) in all.filter(|(number, _)| asked & (1 << number) != 0) {
            let Some(filter) = filters.get(*place) else { continue };
            // SAFETY: as above.
            unsafe {
                let all = kept!(pg_sys::make_ands_implicit((*filter.condition).cast()));
                let all = kept!(pg_sys::lappend(all, copy(bound.clause).cast()));
                *filter.condition = kept!(pg_sys::make_ands_explicit(all)).cast();
            }
        }
    }
}

/// The bound that a conjunct is: a column of the table, compared with a constant. The condition of the bound
/// says the same with the constant, if it is known, on the right.
fn bound_of(
    query: Tree<'_, pg_sys::Query>,
    conjunct: Tree<'_, pg_sys::Node>,
    table: pg_sys::Oid,
    values: Values,
) -> Option<Bound> {
    let comparison = conjunct.as_a::<pg_sys::OpExpr>().filter(|call| call.opresulttype == pg_sys::BOOLOID)?;
    let mut arguments = child!(comparison.args)?.items();
    let sides = (arguments.next()??, arguments.next()??);
    let (left, right) = (column_of(query, sides.0, table), column_of(query, sides.1, table));
    // SAFETY: an operator of a valid query, and its arguments. The copy of the condition is changed before anybody else
    // knows of it.
    unsafe {
        let (column, argument, operator, other) = match (left, right) {
            (Some(column), None) => (column, sides.0, comparison.opno, sides.1),
            (None, Some(column)) => (column, sides.1, kept!(pg_sys::get_commutator(comparison.opno)), sides.0),
            _ => return None,
        };
        if operator == pg_sys::InvalidOid || !compat::compares(operator) {
            return None;
        }
        let value = operand_of(other, values)?;
        let (operator, value) = comparable(column.vartype, operator, value, values);
        let right = if value.is_null() { other.as_ptr() } else { value.cast() };
        let clause = copy(comparison.as_ptr());
        (*clause).opno = operator;
        (*clause).opfuncid = kept!(pg_sys::get_opcode(operator));
        (*clause).args = list_of([argument.as_ptr(), right]);
        Some(Bound { clause: clause.cast(), column: column.varattno, value })
    }
}

/// The conditions of row security on the table that are about it alone, as conditions of relation 1.
fn policies(query: Tree<'_, pg_sys::Query>, table: pg_sys::Oid, values: Values) -> Vec<*mut pg_sys::Node> {
    children!(query.rtable as RangeTblEntry)
        .filter(|entry| entry.relid == table && entry.inh)
        .flat_map(|entry| children!(entry.securityQuals as Node))
        .filter_map(|policy| about_table(query, policy, table, values))
        .collect()
}

/// A condition as one of relation 1, with the values that are known of what is computed of constants; `None` if it
/// names anything but columns of the table.
fn about_table(
    query: Tree<'_, pg_sys::Query>,
    condition: Tree<'_, pg_sys::Node>,
    table: pg_sys::Oid,
    values: Values,
) -> Option<*mut pg_sys::Node> {
    let mut is_about_it = true;
    let mut own = |node: Tree<'_, pg_sys::Node>, _depth: u32| {
        if node.as_a::<pg_sys::Var>().is_some() || node.tag() == NodeTag::T_SubLink {
            let column = column_of(query, node, table);
            is_about_it &= column.is_some();
            // SAFETY: the result is a new node.
            return Some(column.map_or(node.as_ptr(), |column| unsafe {
                column_like(1, column.varattno, column.as_node().as_ptr()).cast()
            }));
        }
        operand_of(node, values).filter(|value| !value.is_null()).map(|value| value.cast())
    };
    // SAFETY: a condition of a valid query, of which a copy is made.
    let condition = unsafe { replaced(condition.as_ptr(), &mut own) };
    is_about_it.then_some(condition)
}

/// A column of the table, perhaps taken as one of a type with the same values.
fn column_of<'t>(
    query: Tree<'t, pg_sys::Query>,
    node: Tree<'t, pg_sys::Node>,
    table: pg_sys::Oid,
) -> Option<Tree<'t, pg_sys::Var>> {
    let (entry, column) = origin(query, node.without_relabelling().as_a::<pg_sys::Var>()?)?;
    (entry.relid == table && entry.inh).then_some(column)
}
