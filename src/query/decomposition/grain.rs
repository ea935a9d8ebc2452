//! A grain: some conditions of the site are asked of the rows of parts, and not of those of the table. The columns that
//! they name are keys of the parts in their place, so a part is the same whatever these are compared with.
//!
//! All rows of a group have the same bytes in these columns. A condition that is computed of them alone, and of what is
//! the same for the whole statement, is true for all rows of a group or for none. So the groups that pass it hold the
//! rows that pass it.
//!
//! Reads trees and catalogs; takes the conditions out of the query that it is given.

use pgrx::pg_sys::{self, NodeTag};

use super::filters::{Filter, filters};
use super::obstacle::Obstacle;
use super::site::{Site, origin};
use crate::pg::catalog_row::CatalogRow;
use crate::pg::lists::nodes;
use crate::pg::tree::{Tree, match_node};
use crate::pg::tree_making::{copy, list_of};
use crate::pg::tree_search::search;
use crate::query::bytewise::{equality_is_bytewise, is_equality};
use crate::query::failures::expression_may_fail;

/// Which conditions are asked of the rows of parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grain {
    /// All that can be. The columns that a key is computed of are keys in its place.
    Fine,
    /// Those that ask for single values, or for NULL. Keys are what the site has.
    Coarse,
}

/// The conditions that are asked of the rows of parts.
pub(super) struct Lifted {
    /// A list of expressions over the relations of the site.
    pub conditions: *mut pg_sys::List,
    pub grain: Grain,
    /// The columns of the key by which the table is partitioned; none for a table without partitions.
    partitioned_by: Vec<i16>,
}

impl Lifted {
    /// Takes the conditions out of a site, whose query the caller may change. Constants in its conditions are computed
    /// as the planner does it.
    ///
    /// # Errors
    /// There are none.
    ///
    /// # Safety
    /// A valid site that the caller may change.
    pub unsafe fn take(site: &Site<'_>, grain: Grain) -> Result<Self, Obstacle> {
        let partitioned_by = CatalogRow::find(pg_sys::SysCacheIdentifier::PARTRELID, site.relation)
            .and_then(|row| row.columns_of_partitions())
            .unwrap_or_default();
        let mut lifted = Self { conditions: std::ptr::null_mut(), grain, partitioned_by };
        // SAFETY: the caller's promise; nothing but the conditions is changed.
        let own = unsafe { filters(site.query.as_ptr()) }.into_iter().filter(|own| own.level == site.query.as_ptr());
        for Filter { condition, .. } in own {
            // SAFETY: as above. The condition is replaced when nobody reads it any more.
            unsafe {
                let folded = kept!(pg_sys::eval_const_expressions(std::ptr::null_mut(), copy(*condition)));
                let conjuncts = kept!(pg_sys::make_ands_implicit(folded.cast()));
                let (asked, left): (Vec<*mut pg_sys::Node>, Vec<_>) =
                    nodes::<pg_sys::Node>(conjuncts).partition(|conjunct| lifted.takes(site, *conjunct));
                lifted.conditions = kept!(pg_sys::list_concat(lifted.conditions, list_of(asked)));
                *condition = if left.is_empty() {
                    std::ptr::null_mut()
                } else {
                    kept!(pg_sys::make_ands_explicit(list_of(left))).cast()
                };
            }
        }
        if lifted.conditions.is_null() { Err("No condition can be asked of the rows of parts.") } else { Ok(lifted) }
    }

    /// Returns true if a condition is asked of the rows of parts: it is computed of columns of one relation, and cannot
    /// fail. Conditions on the columns of the key stay where they leave partitions out.
    ///
    /// # Safety
    /// A conjunct of the site.
    unsafe fn takes(&self, site: &Site<'_>, conjunct: *mut pg_sys::Node) -> bool {
        // SAFETY: the caller's promise.
        let Some(condition) = (unsafe { Tree::enter(conjunct) }) else { return false };
        if self.grain == Grain::Coarse && !asks_for_values(condition) {
            return false;
        }
        // SAFETY: as above.
        unsafe {
            !kept!(pg_sys::contain_mutable_functions(conjunct))
                && !expression_may_fail(conjunct)
                && key_columns(site, conjunct).is_some_and(|columns| {
                    let decides = |column: &*mut pg_sys::Var| self.leaves_out(site, *column);
                    columns.windows(2).all(|two| (*two[0]).varno == (*two[1]).varno) && !columns.iter().any(decides)
                })
        }
    }

    /// Returns true if conditions on a column may leave out partitions.
    ///
    /// # Safety
    /// A column of the site.
    unsafe fn leaves_out(&self, site: &Site<'_>, column: *mut pg_sys::Var) -> bool {
        // SAFETY: the caller's promise.
        unsafe { Tree::enter(column) }
            .and_then(|column| origin(site.query, column))
            .is_none_or(|(entry, own)| entry.relid == site.relation && self.partitioned_by.contains(&own.varattno))
    }

    /// The columns that the conditions name, which are keys of the parts.
    ///
    /// # Safety
    /// The site that they were taken of.
    pub unsafe fn columns(&self, site: &Site<'_>) -> Vec<*mut pg_sys::Var> {
        // SAFETY: the caller's promise.
        unsafe { nodes::<pg_sys::Node>(self.conditions).filter_map(|own| key_columns(site, own)).flatten().collect() }
    }

    /// The columns that are keys of the parts in the place of a key of the site, which is computed of them.
    ///
    /// # Safety
    /// A key of the site that they were taken of.
    pub unsafe fn in_place_of(&self, site: &Site<'_>, key: *mut pg_sys::Node) -> Option<Vec<*mut pg_sys::Var>> {
        // SAFETY: the caller's promise.
        unsafe {
            let is_computed = self.grain == Grain::Fine && (*key).type_ != NodeTag::T_Var;
            if is_computed { key_columns(site, key) } else { None }
        }
    }
}

/// The columns that an expression names, if there are some and each can be a key of parts: a column of a relation whose
/// equal values are the same bytes.
///
/// # Safety
/// An expression of the site.
unsafe fn key_columns(site: &Site<'_>, expression: *mut pg_sys::Node) -> Option<Vec<*mut pg_sys::Var>> {
    let mut columns = Vec::new();
    let mut is_no_key = |node: Tree<'_, pg_sys::Node>| {
        let Some(column) = node.as_a::<pg_sys::Var>() else { return false };
        // SAFETY: a part of a tree that lives as long as the site.
        let own = unsafe { Tree::enter(column.as_ptr()) };
        columns.push(column.as_ptr());
        own.and_then(|own| origin(site.query, own)).is_none() || !equality_is_bytewise(column.vartype, column.varcollid)
    };
    // SAFETY: the caller's promise.
    let is_found = unsafe { search(expression, 0, &mut is_no_key) };
    (is_found == Some(false) && !columns.is_empty()).then_some(columns)
}

/// Returns true if a condition asks for single values of a column, or for NULL.
fn asks_for_values(condition: Tree<'_, pg_sys::Node>) -> bool {
    match_node! { condition;
        OpExpr(comparison) => is_equality(comparison.opno),
        ScalarArrayOpExpr(comparison) => comparison.useOr && is_equality(comparison.opno),
        _ => matches!(condition.tag(), NodeTag::T_NullTest | NodeTag::T_Var),
    }
}
