//! A part's query, asked of a leaf in the place of its parent.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::obstacle::Obstacle;
use crate::pg::compat::tree::columns_in;
use crate::pg::lists::node_at;
use crate::pg::row_type::RowType;
use crate::pg::tree_making::alias;

/// Lets a query read a leaf in the place of the parent, which has this number. Both are locked.
///
/// # Errors
/// `Relation` if the leaf is gone, or has not the columns of the parent; `SystemColumn` if whole rows of the parent are asked for.
///
/// # Safety
/// A valid query that the caller may change.
pub(super) unsafe fn read_instead(
    query: *mut pg_sys::Query,
    table: pg_sys::Index,
    parent: pg_sys::Oid,
    leaf: pg_sys::Oid,
) -> Result<*mut pg_sys::Query, Obstacle> {
    // SAFETY: the references keep the descriptions; an error leaves them to the resource owner. The map is that of these relations.
    unsafe {
        let (parent, open) = (pg_sys::RelationIdGetRelation(parent), pg_sys::RelationIdGetRelation(leaf));
        if parent.is_null() || open.is_null() {
            [parent, open].into_iter().filter(|open| !open.is_null()).for_each(|open| pg_sys::RelationClose(open));
            return Err(Obstacle::Relation(leaf));
        }
        let map = columns_in((*open).rd_att, (*parent).rd_att);
        let mut whole_row = false;
        let query = if map.is_null() {
            query
        } else {
            let (table, none) = (table as i32, pg_sys::InvalidOid);
            pg_sys::map_variable_attnos(query.cast(), table, 0, map, none, &raw mut whole_row).cast()
        };
        let entry: *mut pg_sys::RangeTblEntry =
            node_at((*query).rtable, table as usize - 1).ok_or(Obstacle::Relation(leaf))?;
        (*entry).relid = leaf;
        (*entry).relkind = (*(*open).rd_rel).relkind;
        (*entry).inh = false;
        (*entry).eref = alias(CStr::from_ptr((*(*entry).eref).aliasname), names(RowType::of((*open).rd_att)));
        (*entry).alias = std::ptr::null_mut();
        pg_sys::RelationClose(open);
        pg_sys::RelationClose(parent);
        if whole_row { Err(Obstacle::SystemColumn) } else { Ok(query) }
    }
}

/// The names of the columns of a row type; those that were dropped have none.
fn names(row: RowType<'_>) -> impl Iterator<Item = &CStr> {
    (0..row.len()).filter_map(move |column| row.attribute(column)).map(|attribute| {
        // SAFETY: a name ends with NUL.
        if attribute.attisdropped { c"" } else { unsafe { CStr::from_ptr(attribute.attname.data.as_ptr()) } }
    })
}
