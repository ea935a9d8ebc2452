//! Relations that inherit from others, partitions included. Catalog searches; nothing is kept.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::row_type::RowType;
use super::server;

/// The OIDs of a relation and of all that inherit from it, partitions included: a list in the current memory context.
pub fn all_inheritors(root: pg_sys::Oid) -> *mut pg_sys::List {
    // SAFETY: catalog searches by OID; nobody asks for the numbers of parents.
    unsafe { kept!(server::find_all_inheritors(root, pg_sys::NoLock as _, std::ptr::null_mut())) }
}

/// The same, under locks like those that the planner takes: those that were dropped before they could be locked are left out.
pub fn locked_inheritors(root: pg_sys::Oid) -> *mut pg_sys::List {
    // SAFETY: catalog searches by OID; nobody asks for the numbers of parents.
    unsafe { kept!(server::find_all_inheritors(root, pg_sys::AccessShareLock as _, std::ptr::null_mut())) }
}

/// Has, or had, a relation others that inherit from it? Raises if it is gone.
pub fn may_have_children(relation: pg_sys::Oid) -> bool {
    // SAFETY: a catalog search by OID.
    unsafe { kept!(server::has_subclass(relation)) }
}

/// Has a table the columns of another, by name and type? Not if another transaction has just ended their kinship, and changed it. Both are locked.
pub fn has_columns_of(child: pg_sys::Oid, parent: pg_sys::Oid) -> bool {
    // SAFETY: the references keep the descriptions; an error leaves them to the resource owner.
    unsafe {
        let (child, parent) =
            (kept!(pg_sys::RelationIdGetRelation(child)), kept!(pg_sys::RelationIdGetRelation(parent)));
        let is_open = !child.is_null() && !parent.is_null();
        let has_all = is_open && {
            let (of_child, of_parent) = (RowType::of((*child).rd_att), RowType::of((*parent).rd_att));
            of_parent.attributes().filter(|column| !column.attisdropped).all(|column| {
                of_child.attributes().any(|own| {
                    !own.attisdropped
                        && CStr::from_ptr(own.attname.data.as_ptr()) == CStr::from_ptr(column.attname.data.as_ptr())
                        && own.atttypid == column.atttypid
                        && own.atttypmod == column.atttypmod
                        && own.attcollation == column.attcollation
                })
            })
        };
        [child, parent].into_iter().filter(|open| !open.is_null()).for_each(|open| kept!(pg_sys::RelationClose(open)));
        has_all
    }
}
