//! Relations that inherit from others, partitions included. Catalog searches; nothing is kept.

use pgrx::pg_sys;

use super::server;

/// The OIDs of a relation and of all that inherit from it, partitions included: a list in the current memory context.
pub fn all_inheritors(root: pg_sys::Oid) -> *mut pg_sys::List {
    // SAFETY: catalog searches by OID; nobody asks for the numbers of parents.
    unsafe { kept!(server::find_all_inheritors(root, pg_sys::NoLock as _, std::ptr::null_mut())) }
}

/// Has, or had, a relation others that inherit from it? Raises if it is gone.
pub fn may_have_children(relation: pg_sys::Oid) -> bool {
    // SAFETY: a catalog search by OID.
    unsafe { kept!(server::has_subclass(relation)) }
}
