//! Which expressions become columns of the clock-free part, and what remains above them. Makes nodes in the current
//! memory context.

use pgrx::pg_sys::{self, NodeTag};

use super::origins;
use super::walks::{asks_for_time, depends_on_rows, has_placeholder};
use crate::pg::lists::nodes;
use crate::pg::server;
use crate::pg::tree::Tree;
use crate::pg::tree_making::{are_equal, copy, list_of, replaced};
use crate::query::failures::expression_may_fail;
use crate::query::node_table::{OF_ROWS, VALUE, in_query};

/// Where an expression is computed.
enum Place {
    /// In the part, as a column.
    Part,
    /// In the projection, from what stands below it.
    Below,
    /// In neither.
    Nowhere,
}

/// The columns of a part under construction.
pub(super) struct Hoisting {
    columns: Vec<*mut pg_sys::TargetEntry>,
    /// The keys of GROUP BY: what is grouped may not name their columns otherwise.
    keys: Vec<*mut pg_sys::Node>,
    /// Something stands where neither the part nor the projection can compute it.
    is_blocked: bool,
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
        Self { columns: Vec::new(), keys, is_blocked: false, query, computes_more: false }
    }

    /// Keeps a target entry of the query as it is, since clauses name it. Returns what reads it.
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
        // A column that is shown as it is, is computed for each row. Others may stand where the query does not come to
        // them. SAFETY: the caller's promise; the parts of the expression are valid.
        let projected = unsafe {
            let is_shown = (*expression).type_ == NodeTag::T_Var;
            self.computes_more |= !is_shown && origins::may_be_left_out(self.query, expression);
            replaced(expression, &mut |node, _depth| match self.place_of(node) {
                Place::Part => Some(self.hoisted(node.as_ptr())),
                Place::Below => None,
                Place::Nowhere => {
                    self.is_blocked = true;
                    Some(node.as_ptr())
                }
            })
        };
        (!self.is_blocked).then_some(projected)
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

    /// Where is this expression computed, or where is what stands below it looked for?
    fn place_of(&mut self, node: Tree<'_, pg_sys::Node>) -> Place {
        let (part, kind) = (node.as_ptr(), in_query(node.tag()));
        let is_whole = kind.has(OF_ROWS);
        if asks_for_time(part) {
            return if is_whole { Place::Nowhere } else { Place::Below };
        }
        if !depends_on_rows(part) {
            return Place::Below;
        }
        self.computes_more |= node.tag() == NodeTag::T_SubLink;
        // SAFETY: valid expressions.
        let is_key = self.keys.iter().any(|key| unsafe { are_equal(*key, part) });
        let may_move = || kind.has(VALUE) && !has_placeholder(part) && !expression_may_fail(part);
        if is_whole || is_key || may_move() { Place::Part } else { Place::Below }
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
    // SAFETY: the caller's promise; a new node.
    unsafe {
        let (type_oid, modifier) = (server::exprType(expression), server::exprTypmod(expression));
        let collation = server::exprCollation(expression);
        kept!(pg_sys::makeVar(pg_sys::OUTER_VAR as _, number as i16, type_oid, modifier, collation, 0)).cast()
    }
}
