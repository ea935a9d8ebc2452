//! The hook for objects that are created, changed or dropped. Keeps nothing.

use std::ffi::{c_int, c_void};

use pgrx::pg_sys;

use super::previous::PREVIOUS;
use crate::invalidation::definitions;
use crate::lookup::language_settings;
use crate::pg::error_passing::{direct, edge};
use crate::pg::object_ids::FIRST_USER_OID;
use crate::session;

/// `object_access_hook`. The server also tells of each function that a plan calls.
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
        let next = PREVIOUS.access;
        if next.is_some() || definitions::changes_definition(access) || runs_first_function(access, object) {
            access_attended(access, class, object, part, arg);
        }
    }
}

/// Is a function of a user going to be run, in a session that has run none yet that it compiles?
#[inline]
fn runs_first_function(access: pg_sys::ObjectAccessType::Type, object: pg_sys::Oid) -> bool {
    access == pg_sys::ObjectAccessType::OAT_FUNCTION_EXECUTE
        && object.to_u32() >= FIRST_USER_OID
        && !language_settings::has_begun()
}

/// Hands an access on, and notes it if it changes something, or runs the first function that the session compiles.
///
/// # Safety
/// As `access`.
#[inline(never)]
unsafe fn access_attended(
    access: pg_sys::ObjectAccessType::Type,
    class: pg_sys::Oid,
    object: pg_sys::Oid,
    part: c_int,
    arg: *mut c_void,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(hook) = PREVIOUS.access {
            direct!(hook(access, class, object, part, arg));
        }
        if definitions::changes_definition(access) {
            edge(|| note_change(access, class, object, part));
        } else if runs_first_function(access, object) {
            edge(|| language_settings::note_run(object));
        }
    }
}

/// Notes a change of a definition.
fn note_change(access: pg_sys::ObjectAccessType::Type, class: pg_sys::Oid, object: pg_sys::Oid, part: c_int) {
    session::note_definition_change();
    language_settings::note_own_change(access, class, object);
    if class == pg_sys::RelationRelationId && part == 0 {
        match access {
            pg_sys::ObjectAccessType::OAT_DROP => definitions::note_drop(object),
            pg_sys::ObjectAccessType::OAT_POST_CREATE => definitions::note_creation(object),
            _ => {}
        }
    }
}
