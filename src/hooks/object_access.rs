//! The hook for objects that are created, changed or dropped. Keeps nothing.

use std::ffi::{c_int, c_void};

use pgrx::pg_sys;

use super::previous::PREVIOUS;
use crate::invalidation::definitions;
use crate::pg::error_passing::edge;
use crate::session;

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
        let next = PREVIOUS.access;
        if next.is_some() || definitions::changes_definition(access) {
            access_attended(access, class, object, part, arg);
        }
    }
}

/// Hands an access on, and notes it if it changes something.
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
        }
    }
}

/// Notes a change of a definition.
fn note_change(access: pg_sys::ObjectAccessType::Type, class: pg_sys::Oid, object: pg_sys::Oid, part: c_int) {
    session::note_definition_change();
    if class == pg_sys::RelationRelationId && part == 0 {
        match access {
            pg_sys::ObjectAccessType::OAT_DROP => definitions::note_drop(object),
            pg_sys::ObjectAccessType::OAT_POST_CREATE => definitions::note_creation(object),
            _ => {}
        }
    }
}
