//! The hook for objects that are created, changed or dropped. Keeps nothing.

use std::ffi::{c_int, c_void};

use pgrx::pg_sys;

use super::previous::PREVIOUS;
use crate::invalidation::registration;
use crate::pg::error_passing::edge;
use crate::{session, shmem};

/// `object_access_hook`.
///
/// # Safety
/// Called by the server.
pub unsafe extern "C-unwind" fn access(
    access: pg_sys::ObjectAccessType::Type,
    class: pg_sys::Oid,
    object: pg_sys::Oid,
    part: c_int,
    arg: *mut c_void,
) {
    // SAFETY: PostgreSQL's own arguments, passed on unchanged.
    unsafe {
        if let Some(next) = PREVIOUS.access {
            direct!(next(access, class, object, part, arg));
        }
        if changes_definition(access) {
            session::note_definition_change();
            if class == pg_sys::DatabaseRelationId && access == pg_sys::ObjectAccessType::OAT_DROP {
                edge(|| forget_database(object));
            }
        }
    }
}

/// Returns true if an access to an object changes it.
fn changes_definition(access: pg_sys::ObjectAccessType::Type) -> bool {
    matches!(
        access,
        pg_sys::ObjectAccessType::OAT_POST_CREATE
            | pg_sys::ObjectAccessType::OAT_POST_ALTER
            | pg_sys::ObjectAccessType::OAT_DROP
    )
}

/// Removes the entries and the tracked relations of a database that is dropped: nobody could read or flush them.
fn forget_database(database: pg_sys::Oid) {
    if let Some(store) = shmem::store() {
        store.retire_matching(|entry| entry.database() == database.to_u32());
        for one in store.registry().all().filter(|one| one.database == database.to_u32()) {
            registration::take_out(&store, &one);
        }
    }
}
