//! What a role may do with an object, and what a name stands for.

use std::ffi::CStr;

use pgrx::pg_sys;

/// Returns true if the role may look up what is in the schema. Raises if there is no such schema.
pub fn may_use_schema(role: pg_sys::Oid, schema: pg_sys::Oid) -> bool {
    const USAGE: pg_sys::AclMode = pg_sys::ACL_USAGE as pg_sys::AclMode;
    #[cfg(feature = "pg15")]
    // SAFETY: a catalog search by OID.
    let result = unsafe { kept!(pg_sys::pg_namespace_aclcheck(schema, role, USAGE)) };
    #[cfg(not(feature = "pg15"))]
    // SAFETY: a catalog search by OID.
    let result = unsafe { kept!(pg_sys::object_aclcheck(pg_sys::NamespaceRelationId, schema, role, USAGE)) };
    result == pg_sys::AclResult::ACLCHECK_OK
}

/// Returns true if the role may execute the function. Raises if there is no such function.
pub fn may_execute(role: pg_sys::Oid, function: pg_sys::Oid) -> bool {
    const EXECUTE: pg_sys::AclMode = pg_sys::ACL_EXECUTE as pg_sys::AclMode;
    #[cfg(feature = "pg15")]
    // SAFETY: a catalog search by OID.
    let result = unsafe { kept!(pg_sys::pg_proc_aclcheck(function, role, EXECUTE)) };
    #[cfg(not(feature = "pg15"))]
    // SAFETY: a catalog search by OID.
    let result = unsafe { kept!(pg_sys::object_aclcheck(pg_sys::ProcedureRelationId, function, role, EXECUTE)) };
    result == pg_sys::AclResult::ACLCHECK_OK
}

/// A name such as `schema.table` or `"Odd Name"`, taken apart, in the current memory context. A malformed name raises.
pub fn qualified_name(name: &CStr) -> *mut pg_sys::List {
    #[cfg(feature = "pg15")]
    // SAFETY: the text is copied.
    unsafe {
        kept!(pg_sys::textToQualifiedNameList(kept!(pg_sys::cstring_to_text(name.as_ptr()))))
    }
    #[cfg(not(feature = "pg15"))]
    // SAFETY: the text is copied; without an error context a malformed name raises too.
    unsafe {
        kept!(pg_sys::stringToQualifiedNameList(name.as_ptr(), std::ptr::null_mut()))
    }
}
