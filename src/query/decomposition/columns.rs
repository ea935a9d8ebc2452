//! The columns of the parts: keys of the site, then states of aggregates, and columns that depend on keys.

use pgrx::pg_sys;

use super::obstacle::{Obstacle, SUB_QUERY, UNGROUPED_COLUMN};
use super::site::Site;
use crate::pg::server;
use crate::pg::tree::{Tree, child};
use crate::pg::tree_making::{are_equal, copy};
use crate::pg::tree_search::sorted_target;

/// A column of the parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartColumn {
    pub type_oid: pg_sys::Oid,
    pub modifier: i32,
    pub collation: pg_sys::Oid,
}

impl PartColumn {
    /// What an expression gives.
    ///
    /// # Safety
    /// A valid expression.
    pub(super) unsafe fn of(expression: *mut pg_sys::Node) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                type_oid: server::exprType(expression),
                modifier: server::exprTypmod(expression),
                collation: server::exprCollation(expression),
            }
        }
    }
}

/// The columns of the parts, as expressions over the relations of the site, and as columns of the tuplestore that the
/// combined query reads.
pub(super) struct Columns {
    expressions: Vec<*mut pg_sys::Node>,
    /// What each of them gives.
    kinds: Vec<PartColumn>,
    /// The first ones are the keys; whether each of them has columns of relations in it.
    keys: Vec<bool>,
    /// The number of the tuplestore in the site's range table.
    pub tuplestore: i32,
}

impl Columns {
    /// The keys of a site.
    ///
    /// # Errors
    /// One has a sub-query.
    pub fn of_keys(site: &Site<'_>) -> Result<Self, Obstacle> {
        let query = site.query;
        let tuplestore = child!(query.rtable).map_or(0, Tree::length) as i32 + 1;
        let mut columns = Self { expressions: Vec::new(), kinds: Vec::new(), keys: Vec::new(), tuplestore };
        for clause in site.keys() {
            let target = sorted_target(query, clause).ok_or(UNGROUPED_COLUMN)?;
            let key = child!(target.expr).ok_or(UNGROUPED_COLUMN)?.as_node();
            // SAFETY: an expression of a valid query.
            let has_columns = unsafe {
                if kept!(pg_sys::contain_subplans(key.as_ptr())) {
                    return Err(SUB_QUERY);
                }
                kept!(pg_sys::contain_vars_of_level(key.as_ptr(), 0))
            };
            // What the planner leaves of it may have a type modifier that the whole has not.
            // SAFETY: as above; a copy is folded.
            columns.kinds.push(unsafe {
                PartColumn::of(kept!(pg_sys::eval_const_expressions(std::ptr::null_mut(), copy(key.as_ptr()))))
            });
            columns.expressions.push(key.as_ptr());
            columns.keys.push(has_columns);
        }
        Ok(columns)
    }

    /// The expressions over the relations of the site.
    pub fn expressions(&self) -> &[*mut pg_sys::Node] {
        &self.expressions
    }

    /// The key that an expression is, as a column of the tuplestore. Keys that are made of no columns of relations are
    /// computed by the combined query itself.
    pub fn key(&self, expression: Tree<'_, pg_sys::Node>) -> Option<*mut pg_sys::Node> {
        let mut keys = self.keys.iter().zip(&self.expressions);
        // SAFETY: valid expressions.
        let place =
            keys.position(|(has_columns, key)| *has_columns && unsafe { are_equal(*key, expression.as_ptr()) })?;
        Some(self.column(place))
    }

    /// The column of the tuplestore for an expression over the relations of the site.
    ///
    /// # Safety
    /// A valid expression, whose columns are those of the site's own level.
    pub unsafe fn add(&mut self, expression: *mut pg_sys::Node) -> *mut pg_sys::Node {
        let keys = self.keys.len();
        // SAFETY: the caller's promise.
        let known = self.expressions[keys..].iter().position(|known| unsafe { are_equal(*known, expression) });
        let place = known.map_or(self.expressions.len(), |place| keys + place);
        if known.is_none() {
            // SAFETY: the caller's promise.
            self.kinds.push(unsafe { PartColumn::of(expression) });
            self.expressions.push(expression);
        }
        self.column(place)
    }

    /// What the columns give.
    pub fn kinds(&self) -> &[PartColumn] {
        &self.kinds
    }

    fn column(&self, place: usize) -> *mut pg_sys::Node {
        let PartColumn { type_oid, modifier, collation } = self.kinds[place];
        // SAFETY: the result is a new node.
        unsafe { kept!(pg_sys::makeVar(self.tuplestore, place as i16 + 1, type_oid, modifier, collation, 0)).cast() }
    }
}
