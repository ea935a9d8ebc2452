//! A part's query, asked of a leaf in the place of its parent.

use std::ffi::CStr;

use pgrx::pg_sys::{self, RTEKind};

use super::obstacle::{OTHER_RELATION, Obstacle, SYSTEM_COLUMN};
use crate::pg::compat::tree::columns_in;
use crate::pg::lists::{node_at, nodes};
use crate::pg::row_type::RowType;
use crate::pg::tree_making::alias;

/// Lets a query read a leaf in the place of the parent, which FROM has once, perhaps in a sub-query. Both are locked.
///
/// # Errors
/// `Relation` if the leaf is gone, or has not the columns of the parent; `SystemColumn` if whole rows of the parent are
/// asked for.
///
/// # Safety
/// A valid query that the caller may change.
pub(super) unsafe fn read_instead(
    query: *mut pg_sys::Query,
    parent: pg_sys::Oid,
    leaf: pg_sys::Oid,
) -> Result<*mut pg_sys::Query, Obstacle> {
    // SAFETY: the references keep the descriptions; an error leaves them to the resource owner. The map is that of
    // these relations.
    unsafe {
        let (one, other) = (kept!(pg_sys::RelationIdGetRelation(parent)), kept!(pg_sys::RelationIdGetRelation(leaf)));
        if one.is_null() || other.is_null() {
            [one, other].into_iter().filter(|open| !open.is_null()).for_each(|open| kept!(pg_sys::RelationClose(open)));
            return Err(OTHER_RELATION);
        }
        let map = columns_in((*other).rd_att, (*one).rd_att);
        let query = renamed(query, parent, other, map);
        kept!(pg_sys::RelationClose(other));
        kept!(pg_sys::RelationClose(one));
        query?.ok_or(OTHER_RELATION)
    }
}

/// The query with the leaf in the place of the parent; `None` if FROM has no parent. The map is null if all columns lie
/// in the same places.
///
/// # Safety
/// As `read_instead`; the leaf is open.
unsafe fn renamed(
    query: *mut pg_sys::Query,
    parent: pg_sys::Oid,
    leaf: pg_sys::Relation,
    map: *mut pg_sys::AttrMap,
) -> Result<Option<*mut pg_sys::Query>, Obstacle> {
    // SAFETY: the caller's promise.
    unsafe {
        for (place, entry) in nodes::<pg_sys::RangeTblEntry>((*query).rtable).enumerate() {
            if (*entry).rtekind == RTEKind::RTE_SUBQUERY && !(*entry).subquery.is_null() {
                if let Some(below) = renamed((*entry).subquery, parent, leaf, map)? {
                    (*entry).subquery = below;
                    return Ok(Some(query));
                }
            } else if (*entry).rtekind == RTEKind::RTE_RELATION && (*entry).relid == parent && (*entry).inh {
                let mut whole_row = false;
                let query: *mut pg_sys::Query = if map.is_null() {
                    query
                } else {
                    let (number, none) = (place as i32 + 1, pg_sys::InvalidOid);
                    kept!(pg_sys::map_variable_attnos(query.cast(), number, 0, map, none, &raw mut whole_row)).cast()
                };
                let entry: Option<*mut pg_sys::RangeTblEntry> = node_at((*query).rtable, place);
                let Some(entry) = entry.filter(|_| !whole_row) else { return Err(SYSTEM_COLUMN) };
                (*entry).relid = (*leaf).rd_id;
                (*entry).relkind = (*(*leaf).rd_rel).relkind;
                (*entry).inh = false;
                let name = CStr::from_ptr((*(*entry).eref).aliasname);
                (*entry).eref = alias(name, names(RowType::of((*leaf).rd_att)));
                (*entry).alias = std::ptr::null_mut();
                return Ok(Some(query));
            }
        }
    }
    Ok(None)
}

/// The names of the columns of a row type; those that were dropped have none.
fn names(row: RowType<'_>) -> impl Iterator<Item = &CStr> {
    (0..row.len()).filter_map(move |column| row.attribute(column)).map(|attribute| {
        // SAFETY: a name ends with NUL.
        if attribute.attisdropped { c"" } else { unsafe { CStr::from_ptr(attribute.attname.data.as_ptr()) } }
    })
}
