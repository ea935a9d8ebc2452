//! The columns of the parts: keys of the site, then states of aggregates, and columns that depend on keys.

use pgrx::pg_sys;

use super::grain::Lifted;
use super::obstacle::{Obstacle, SUB_QUERY, UNGROUPED_COLUMN};
use super::site::Site;
use crate::pg::server;
use crate::pg::tree::{Tree, child};
use crate::pg::tree_making::{are_equal, copy, new_node};
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
    /// The first ones are the keys.
    keys: Vec<Key>,
    /// The number of the tuplestore in the site's range table.
    pub tuplestore: i32,
}

/// A key of the parts.
struct Key {
    expression: *mut pg_sys::Node,
    /// The clause that groups by it.
    clause: *mut pg_sys::SortGroupClause,
    /// It has columns of relations in it.
    has_columns: bool,
}

impl Key {
    /// The key that a column of the site is.
    ///
    /// # Safety
    /// A column of a type whose values have an order.
    unsafe fn of_column(column: *mut pg_sys::Var) -> Self {
        let clause = new_node::<pg_sys::SortGroupClause>();
        // SAFETY: the caller's promise; a new node.
        unsafe {
            let wanted = pg_sys::TYPECACHE_LT_OPR | pg_sys::TYPECACHE_EQ_OPR | pg_sys::TYPECACHE_HASH_PROC;
            let types = kept!(pg_sys::lookup_type_cache((*column).vartype, wanted as i32));
            ((*clause).eqop, (*clause).sortop) = ((*types).eq_opr, (*types).lt_opr);
            (*clause).hashable = (*types).hash_proc != pg_sys::InvalidOid;
        }
        Self { expression: column.cast(), clause, has_columns: true }
    }

    /// The place of a key in a grain, in which columns come first, in the order of the tables.
    fn place(&self) -> (bool, i32, i16) {
        // SAFETY: a valid expression.
        let column = unsafe { Tree::enter(self.expression) }.and_then(Tree::as_a::<pg_sys::Var>);
        column.map_or((true, 0, 0), |column| (false, column.varno, column.varattno))
    }
}

/// The keys of a site, as it groups by them.
///
/// # Errors
/// One has a sub-query.
fn keys_of(site: &Site<'_>) -> Result<Vec<Key>, Obstacle> {
    let key_of = |clause: Tree<'_, pg_sys::SortGroupClause>| {
        let target = sorted_target(site.query, clause).ok_or(UNGROUPED_COLUMN)?;
        let expression = child!(target.expr).ok_or(UNGROUPED_COLUMN)?.as_node().as_ptr();
        // SAFETY: an expression of a valid query.
        let has_columns = unsafe {
            if kept!(pg_sys::contain_subplans(expression)) {
                return Err(SUB_QUERY);
            }
            kept!(pg_sys::contain_vars_of_level(expression, 0))
        };
        Ok(Key { expression, clause: clause.as_ptr(), has_columns })
    };
    site.keys().map(key_of).collect()
}

/// The keys of the parts of a site in a grain: columns in the place of keys that are computed of them, and those that
/// its conditions name. In an order that does not depend on which of these a column is.
///
/// # Safety
/// A site, and the conditions that were taken of it.
unsafe fn keys_in_grain(keys: Vec<Key>, site: &Site<'_>, lifted: &Lifted) -> Vec<Key> {
    let mut found: Vec<Key> = Vec::with_capacity(keys.len());
    let add_column = |found: &mut Vec<Key>, column: *mut pg_sys::Var| {
        // SAFETY: the caller's promise: `Lifted` gives columns that may be keys.
        unsafe {
            if !found.iter().any(|key| are_equal(key.expression, column.cast())) {
                found.push(Key::of_column(column));
            }
        }
    };
    // SAFETY: the caller's promise.
    unsafe {
        for key in keys {
            match lifted.in_place_of(site, key.expression) {
                Some(columns) => columns.into_iter().for_each(|column| add_column(&mut found, column)),
                None => found.push(key),
            }
        }
        lifted.columns(site).into_iter().for_each(|column| add_column(&mut found, column));
    }
    found.sort_by_key(Key::place);
    found
}

impl Columns {
    /// The keys of the parts of a site: those of the site, or of a grain.
    ///
    /// # Errors
    /// One has a sub-query.
    pub fn of_keys(site: &Site<'_>, lifted: Option<&Lifted>) -> Result<Self, Obstacle> {
        let mut keys = keys_of(site)?;
        if let Some(lifted) = lifted {
            // SAFETY: they were taken of this site.
            keys = unsafe { keys_in_grain(keys, site, lifted) };
        }
        let query = site.query;
        let tuplestore = child!(query.rtable).map_or(0, Tree::length) as i32 + 1;
        let expressions: Vec<_> = keys.iter().map(|key| key.expression).collect();
        // What the planner leaves of it may have a type modifier that the whole has not.
        // SAFETY: an expression of a valid query; a copy is folded.
        let kind = |key: &*mut pg_sys::Node| unsafe {
            PartColumn::of(kept!(pg_sys::eval_const_expressions(std::ptr::null_mut(), copy(*key))))
        };
        let kinds = expressions.iter().map(kind).collect();
        Ok(Self { expressions, kinds, keys, tuplestore })
    }

    /// The clauses that group by the keys.
    pub fn clauses(&self) -> impl ExactSizeIterator<Item = *mut pg_sys::SortGroupClause> {
        self.keys.iter().map(|key| key.clause)
    }

    /// The expressions over the relations of the site.
    pub fn expressions(&self) -> &[*mut pg_sys::Node] {
        &self.expressions
    }

    /// The key that an expression is, as a column of the tuplestore. Keys that are made of no columns of relations are
    /// computed by the combined query itself.
    pub fn key(&self, expression: Tree<'_, pg_sys::Node>) -> Option<*mut pg_sys::Node> {
        // SAFETY: valid expressions.
        let is_it = |key: &Key| key.has_columns && unsafe { are_equal(key.expression, expression.as_ptr()) };
        let place = self.keys.iter().position(is_it)?;
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
