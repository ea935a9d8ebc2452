//! The conditions of a part, taken apart into conjuncts, of which some are bounds.

use pgrx::pg_sys;

use super::constants::{constant_of, of_column_type};
use super::filters::filters;
use super::obstacle::Obstacle;
use super::site::{entry_of, origin, selection};
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

/// The bounds of a part, and the other conditions that stand beside them.
#[derive(Default)]
pub(super) struct Conditions {
    pub bounds: Vec<Bound>,
    /// Where each bound stands.
    places: Vec<Place>,
    /// The filters that have bounds, in the order of their numbers.
    filters: Vec<Others>,
}

/// Where a bound stands.
#[derive(Clone, Copy)]
struct Place {
    /// The number of the filter in the list of `filters`.
    filter: usize,
    /// How many of the filter's other conditions stand before it.
    others: usize,
}

/// The conditions of a filter that are no bounds.
struct Others {
    /// The number of the filter.
    filter: usize,
    conditions: Vec<*mut pg_sys::Node>,
}

impl Conditions {
    /// Takes the bounds out of the filters of a query over a table.
    ///
    /// # Safety
    /// A valid query that the caller may change.
    pub unsafe fn take(query: *mut pg_sys::Query, table: pg_sys::Oid) -> Self {
        let mut taken = Self::default();
        // SAFETY: the caller's promise; nothing but the conditions is changed.
        for (number, filter) in unsafe { filters(query) }.into_iter().enumerate() {
            // SAFETY: as above. The condition is replaced when nobody reads it any more.
            unsafe {
                let Some(level) = Tree::enter(filter.level) else { continue };
                let others = taken.take_of(level, number, conjuncts(Tree::enter(*filter.condition)), table);
                *filter.condition = all_of(others.iter().copied());
                if taken.places.last().is_some_and(|place| place.filter == number) {
                    taken.filters.push(Others { filter: number, conditions: others });
                }
            }
        }
        taken
    }

    /// Takes the bounds out of the conjuncts of a filter, and returns the others.
    fn take_of(
        &mut self,
        level: Tree<'_, pg_sys::Query>,
        filter: usize,
        conjuncts: Vec<Tree<'_, pg_sys::Node>>,
        table: pg_sys::Oid,
    ) -> Vec<*mut pg_sys::Node> {
        let mut others = Vec::new();
        for conjunct in conjuncts {
            match bound_of(level, conjunct, table).filter(|_| self.bounds.len() < MOST_BOUNDS) {
                Some(bound) => {
                    self.bounds.push(bound);
                    self.places.push(Place { filter, others: others.len() });
                }
                None => others.push(conjunct.as_ptr()),
            }
        }
        others
    }

    /// The conditions as nodes: the bounds, the places, the others of each filter. What `of_lists` takes.
    pub fn to_lists(&self) -> [*mut pg_sys::List; 3] {
        let numbers = self.places.iter().flat_map(|place| [place.filter as i32, place.others as i32]);
        [
            list_of(self.bounds.iter().map(|bound| bound.clause)),
            list_of_numbers(numbers),
            list_of(self.filters.iter().map(|filter| list_of(filter.conditions.iter().copied()))),
        ]
    }

    /// The conditions that `to_lists` has made nodes of, or the server copies of these. What the bounds compare is not among it.
    ///
    /// # Safety
    /// Such lists, which outlive the conditions.
    pub unsafe fn of_lists([bounds, places, others]: [*const pg_sys::List; 3]) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let bounds = nodes(bounds).map(|clause| Bound {
                clause,
                column: 0,
                operator: pg_sys::InvalidOid,
                value: std::ptr::null_mut(),
            });
            let numbers: Vec<usize> = integers(places).map(|number| number as usize).collect();
            let places: Vec<Place> =
                numbers.chunks_exact(2).map(|pair| Place { filter: pair[0], others: pair[1] }).collect();
            let mut numbers: Vec<usize> = places.iter().map(|place| place.filter).collect();
            numbers.dedup();
            let filters = numbers.into_iter().zip(nodes::<pg_sys::List>(others));
            Self {
                bounds: bounds.collect(),
                places,
                filters: filters
                    .map(|(filter, others)| Others { filter, conditions: nodes(others).collect() })
                    .collect(),
            }
        }
    }

    /// The number of the filter that each bound stands in.
    pub fn filters_of_bounds(&self) -> impl Iterator<Item = usize> {
        self.places.iter().map(|place| place.filter)
    }

    /// The conditions that the bounds are, each with the level that it stands in of the query that it was taken out of, or of a copy; null for a
    /// query that has no such filter.
    ///
    /// # Safety
    /// A valid query.
    pub unsafe fn at_levels(&self, query: *mut pg_sys::Query) -> Vec<(*mut pg_sys::Query, *mut pg_sys::Node)> {
        // SAFETY: the caller's promise; nothing is changed.
        let filters = unsafe { filters(query) };
        let level = |place: &Place| filters.get(place.filter).map_or(std::ptr::null_mut(), |filter| filter.level);
        self.places.iter().map(level).zip(self.bounds.iter().map(|bound| bound.clause)).collect()
    }

    /// Puts those bounds whose bit is set into a copy of the query that they were taken out of, where the statement has them.
    ///
    /// # Errors
    /// `FromItem` if the query has no such filter.
    ///
    /// # Safety
    /// A valid query that the caller may change.
    pub unsafe fn put(&self, query: *mut pg_sys::Query, asked: u64) -> Result<(), Obstacle> {
        // SAFETY: the caller's promise; nothing but the conditions is changed.
        let filters = unsafe { filters(query) };
        for others in &self.filters {
            let filter = filters.get(others.filter).ok_or(Obstacle::FromItem)?;
            // SAFETY: as above.
            unsafe { *filter.condition = self.with(others, asked) };
        }
        Ok(())
    }

    /// The condition of a filter with those bounds whose bit is set, in the order in which the statement has them. A copy.
    fn with(&self, others: &Others, asked: u64) -> *mut pg_sys::Node {
        let mut all = Vec::new();
        let bounds = self.bounds.iter().zip(&self.places).enumerate();
        let mut bounds = bounds.filter(|(_, (_, place))| place.filter == others.filter).peekable();
        for place in 0..=others.conditions.len() {
            while let Some((number, (bound, _))) = bounds.next_if(|(_, (_, at))| at.others == place) {
                if asked & (1 << number) != 0 {
                    all.push(bound.clause);
                }
            }
            all.extend(others.conditions.get(place));
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
        if operator == pg_sys::InvalidOid || stops_at_barrier(query, argument, conjunct) {
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
    let (entry, column) = origin(query, named_column(node)?)?;
    (entry.relid == table && entry.inh).then_some(column)
}

/// The column that an expression names.
fn named_column(node: Tree<'_, pg_sys::Node>) -> Option<Tree<'_, pg_sys::Var>> {
    node.without_relabelling().as_a::<pg_sys::Var>()
}

/// Does the planner keep a condition about a column above a view that is a security barrier? It does not take such a view apart, and
/// moves a condition into it only if that can tell nobody what it compares. Then all leaves are read.
fn stops_at_barrier(
    query: Tree<'_, pg_sys::Query>,
    column: Tree<'_, pg_sys::Node>,
    condition: Tree<'_, pg_sys::Node>,
) -> bool {
    let lies_behind = named_column(column).is_some_and(|column| lies_behind_barrier(query, column));
    // SAFETY: an expression of a valid query.
    lies_behind && unsafe { pg_sys::contain_leaked_vars(condition.as_ptr()) }
}

fn lies_behind_barrier(query: Tree<'_, pg_sys::Query>, column: Tree<'_, pg_sys::Var>) -> bool {
    let Some(entry) = entry_of(query, column.varno) else { return false };
    let Some(below) = selection(entry) else { return false };
    let target = children!(below.targetList as TargetEntry).find(|target| target.resno == column.varattno);
    let next = target.and_then(|target| child!(target.expr)).and_then(|next| next.as_node().as_a::<pg_sys::Var>());
    entry.security_barrier || next.is_some_and(|next| lies_behind_barrier(below, next))
}
