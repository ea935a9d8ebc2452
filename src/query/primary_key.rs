//! Which scans of a table give one row at most: those whose conditions give each column of the primary key a value.
//! Reads catalogs; keeps nothing.
//!
//! The key tells of the rows of a snapshot only if the snapshot sees who made it: an older snapshot may see rows that
//! were deleted before that.

use pgrx::pg_sys;

use crate::pg::catalog_row::CatalogRow;
use crate::pg::server;
use crate::pg::tree::{Tree, children};

/// Returns true if these conditions, all of which a scan checks for each row, let one row of a table through at most
/// that the snapshot sees. `place` is the table's number in the range table of the plan.
pub fn lets_one_through(
    table: pg_sys::Oid,
    place: u32,
    conditions: &[*mut pg_sys::List],
    snapshot: &pg_sys::SnapshotData,
) -> bool {
    let mut constraint = pg_sys::InvalidOid;
    let place_of_constraint = &raw mut constraint;
    // SAFETY: reads catalogs; the set is made in the current memory context.
    let key = unsafe { kept!(server::get_primary_key_attnos(table, false, place_of_constraint)) };
    let is_told = || {
        CatalogRow::find(pg_sys::SysCacheIdentifier::CONSTROID, constraint).is_some_and(|row| row.is_seen_by(snapshot))
    };
    if key.is_null() || !is_told() {
        return false;
    }
    // SAFETY: null, or lists of conditions of a plan.
    let lists = conditions.iter().filter_map(|list| unsafe { Tree::enter(list.cast_const()) });
    let given: Vec<i32> =
        lists.flat_map(Tree::items).flatten().filter_map(|condition| column_given(condition, place)).collect();
    let mut column = -1;
    // SAFETY: the set made above.
    while let Some(next) = Some(unsafe { direct!(pg_sys::bms_next_member(key, column)) }).filter(|next| *next >= 0) {
        if !given.contains(&(next + pg_sys::FirstLowInvalidHeapAttributeNumber)) {
            return false;
        }
        column = next;
    }
    true
}

/// The column that a condition gives one value, by the equality of its type, and in its own collation.
fn column_given(condition: Tree<'_, pg_sys::Node>, place: u32) -> Option<i32> {
    let comparison = condition.as_a::<pg_sys::OpExpr>()?;
    let mut sides = children!(comparison.args as Node);
    let (left, right) = (sides.next()?, sides.next()?);
    let (var, value) = match (column_of(left, place), column_of(right, place)) {
        (Some(var), None) => (var, right),
        (None, Some(var)) => (var, left),
        _ => return None,
    };
    // SAFETY: reads the catalogs about a type; the expression is part of a valid plan.
    let is_given = unsafe {
        (*kept!(pg_sys::lookup_type_cache(var.vartype, pg_sys::TYPECACHE_EQ_OPR as i32))).eq_opr == comparison.opno
            && comparison.inputcollid == var.varcollid
            && !kept!(pg_sys::contain_var_clause(value.as_ptr()))
            && !kept!(pg_sys::contain_volatile_functions(value.as_ptr()))
    };
    is_given.then(|| i32::from(var.varattno))
}

/// A column of the table at this place in the range table.
fn column_of<'t>(node: Tree<'t, pg_sys::Node>, place: u32) -> Option<Tree<'t, pg_sys::Var>> {
    node.as_a::<pg_sys::Var>().filter(|var| var.varno as u32 == place)
}
