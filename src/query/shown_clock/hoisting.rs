//! Which expressions become columns of the clock-free part, and what remains above them. Makes nodes in the current
//! memory context.

use pgrx::pg_sys::{self, RTEKind};

use super::walks::{asks_for_time, depends_on_rows};
use crate::pg::compat;
use crate::pg::lists::nodes;
use crate::pg::tree::{Tree, match_node};
use crate::pg::tree_making::{are_equal, column_like, copy, list_of, replaced};
use crate::pg::tree_search::{column_at, search};
use crate::query::enclosing::Enclosing;
use crate::query::failures::expression_may_fail;
use crate::query::node_table::{OF_ROWS, in_query};

/// The columns of a part under construction.
pub(super) struct Hoisting {
    columns: Vec<*mut pg_sys::TargetEntry>,
    /// The keys of GROUP BY: what is grouped may not name their columns otherwise.
    keys: Vec<*mut pg_sys::Node>,
    /// The query.
    query: *mut pg_sys::Query,
    /// Some column is one that the query might not compute: a sub-query, or what stands for an expression that may
    /// fail.
    computes_more: bool,
}

impl Hoisting {
    /// No columns yet.
    ///
    /// # Safety
    /// A valid query, which outlives this.
    pub unsafe fn of(query: *mut pg_sys::Query) -> Self {
        // SAFETY: the caller's promise.
        let keys = unsafe {
            nodes::<pg_sys::SortGroupClause>((*query).groupClause)
                .filter_map(|clause| {
                    nodes::<pg_sys::TargetEntry>((*query).targetList)
                        .find(|target| (**target).ressortgroupref == (*clause).tleSortGroupRef)
                        .map(|target| (*target).expr.cast())
                })
                .collect()
        };
        Self { columns: Vec::new(), keys, query, computes_more: false }
    }

    /// Keeps a target entry of the query as it is. Returns what reads it.
    ///
    /// # Safety
    /// A target entry of the query, which the caller may change.
    pub unsafe fn keep(&mut self, target: *mut pg_sys::TargetEntry) -> *mut pg_sys::Node {
        self.columns.push(target);
        // SAFETY: the caller's promise.
        unsafe { column(self.columns.len(), (*target).expr.cast()) }
    }

    /// What computes an expression of the query from the columns of the part. `None` if it cannot be computed there.
    ///
    /// # Safety
    /// An expression of the query.
    pub unsafe fn project(&mut self, expression: *mut pg_sys::Node) -> Option<*mut pg_sys::Node> {
        let mut is_blocked = false;
        // SAFETY: the caller's promise; the parts of the expression are valid.
        let projected = unsafe {
            replaced(expression, &mut |node, _depth| {
                let part = node.as_ptr();
                let is_whole = in_query(node.tag()).has(OF_ROWS);
                if asks_for_time(part) {
                    is_blocked |= is_whole;
                    return None;
                }
                let is_key = || depends_on_rows(part) && self.keys.iter().any(|key| are_equal(*key, part));
                if !is_whole && !is_key() {
                    return None;
                }
                self.computes_more |= is_whole && may_be_left_out(node, &Enclosing::of(|levels| self.query_at(levels)));
                Some(self.hoisted(part))
            })
        };
        (!is_blocked).then_some(projected)
    }

    fn query_at(&self, levels: u32) -> Option<Tree<'_, pg_sys::Query>> {
        // SAFETY: a valid query, which outlives this.
        unsafe { Tree::enter(self.query) }.filter(|_| levels == 0)
    }

    /// Returns true if some column is computed where the query might not have come to it. Then computing it must not
    /// fail.
    pub fn computes_more(&self) -> bool {
        self.computes_more
    }

    /// The target entries of the part, with the junk ones of the query behind the others; null if there are none.
    ///
    /// # Safety
    /// Target entries of the query, which the caller may change.
    pub unsafe fn finish(self, junk: Vec<*mut pg_sys::TargetEntry>) -> *mut pg_sys::List {
        if self.columns.is_empty() {
            return std::ptr::null_mut();
        }
        let all = self.columns.into_iter().chain(junk).zip(1..);
        // SAFETY: the caller's promise.
        list_of(all.map(|(target, number)| unsafe {
            (*target).resno = number;
            target
        }))
    }

    /// The column of the part for an expression.
    ///
    /// # Safety
    /// An expression of the query that asks for no time.
    unsafe fn hoisted(&mut self, expression: *mut pg_sys::Node) -> *mut pg_sys::Node {
        // SAFETY: the caller's promise; new nodes.
        unsafe {
            let known = self.columns.iter().position(|target| are_equal((**target).expr.cast(), expression));
            let place = known.unwrap_or_else(|| {
                let name = kept!(pg_sys::pstrdup(c"value".as_ptr()));
                self.columns.push(kept!(pg_sys::makeTargetEntry(copy(expression).cast(), 0, name, false)));
                self.columns.len() - 1
            });
            column(place + 1, expression)
        }
    }
}

/// What reads a column of the part.
///
/// # Safety
/// A valid expression.
unsafe fn column(number: usize, expression: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: the caller's promise.
    unsafe { column_like(pg_sys::OUTER_VAR, number as i16, expression).cast() }
}

/// Returns true if an expression that becomes a column is a sub-query, or names a column of FROM that may stand for an
/// expression which may fail: the planner puts the expressions of a simple sub-query, view or WITH query in the place
/// of its columns. So such a column is computed only where it is reached: not in `CASE WHEN now() < '2000-01-01' THEN
/// s.quotient END`. Aggregates and window functions compute what they read for each row.
fn may_be_left_out(expression: Tree<'_, pg_sys::Node>, queries: &Enclosing<'_>) -> bool {
    match_node! { expression;
        Var(column) => stands_for_failure(&column, queries).unwrap_or(true),
        SubLink(_link) => true,
        _ => false,
    }
}

/// Returns true if a column may stand for an expression that may fail; `None` if there is no telling.
fn stands_for_failure(column: &pg_sys::Var, queries: &Enclosing<'_>) -> Option<bool> {
    let entry = queries.entry(column)?;
    if entry.rtekind == RTEKind::RTE_RELATION {
        // The planner puts the expressions of virtual columns in their places, too.
        return Some(compat::has_virtual_columns(entry.relid));
    }
    let queries = queries.above(column.varlevelsup).inside(entry)?;
    let query = queries.innermost().filter(|query| query.setOperations.is_null())?;
    let is_computed_as_a_whole =
        query.hasAggs || query.hasWindowFuncs || !query.groupClause.is_null() || !query.distinctClause.is_null();
    if is_computed_as_a_whole {
        return Some(false);
    }
    let expression = column_at(query, column.varattno)?.as_ptr();
    // SAFETY: an expression of a valid query. The server checks the depth of sub-queries when it parses them.
    let is_left_out = || unsafe { search(expression, 0, &mut |node| may_be_left_out(node, &queries)) };
    Some(expression_may_fail(expression) || is_left_out()?)
}
