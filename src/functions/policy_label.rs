//! The label that is the policy of a relation: what its owner says about caching it (`query/relation_policy.rs` reads
//! it). `arrow_cache.set_policy` sets it in SQL. The provider of labels is registered once in each backend; no lock.

use std::cell::Cell;
use std::ffi::{CStr, c_char};

use arrow_cache_core::shown;
use pgrx::pg_sys;

use crate::error::CacheError;
use crate::pg::backend_local::Local;
use crate::pg::error_passing::edge;
use crate::pg::function_call::FunctionCall;
use crate::pg::sql_function::sql_function;
use crate::pg::tree::Tree;
use crate::query::eligibility::{PURE, may_be_declared};
use crate::query::relation_policy::{self, PROVIDER, Policy};
use crate::shmem;

static REGISTERED: Local<Cell<bool>> = Local::new(Cell::new(false));

/// Registers the provider when a SECURITY LABEL statement names it.
///
/// It is not registered earlier, because a statement that names no provider means the only one that there is. Such a
/// statement must go on to mean the provider of another library, or to fail, as if this library were not loaded.
pub fn before_security_label(statement: Tree<'_, pg_sys::SecLabelStmt>) {
    let provider = statement.provider;
    // SAFETY: the provider of a valid statement is null or a C string. The name that is registered is a literal.
    unsafe {
        if !provider.is_null() && CStr::from_ptr(provider) == PROVIDER && !REGISTERED.get() {
            // It may raise for lack of memory. Then the next statement registers it.
            kept!(pg_sys::register_label_provider(PROVIDER.as_ptr(), Some(check_label)));
            REGISTERED.set(true);
        }
    }
}

/// Called by SECURITY LABEL before the label is stored, when the object is locked and is known to belong to the user.
unsafe extern "C-unwind" fn check_label(object: *const pg_sys::ObjectAddress, label: *const c_char) {
    let body = || {
        // SAFETY: PostgreSQL's own arguments; a null label removes the present one.
        unsafe {
            let object = &*object;
            if object.classId == pg_sys::ProcedureRelationId {
                return check_label_of_function(object.objectId, label);
            }
            if object.classId != pg_sys::RelationRelationId || object.objectSubId != 0 {
                CacheError::not_a_relation().raise();
            }
            if !label.is_null() {
                let word = CStr::from_ptr(label);
                if Policy::labelled(word.to_bytes()).is_none() {
                    CacheError::unknown_policy(shown(word.to_bytes())).raise();
                }
            }
            announce(object.objectId);
        }
    };
    // SAFETY: the server calls this; no frame between has destructors.
    unsafe { edge(body) }
}

/// Checks the label of a function that belongs to the user: only `pure`, and only of functions in PL/pgSQL.
///
/// # Safety
/// The label must be null or a C string.
unsafe fn check_label_of_function(function: pg_sys::Oid, label: *const c_char) {
    // SAFETY: the caller promises that it is null or a C string.
    if let Some(word) = unsafe { label.as_ref().map(|label| CStr::from_ptr(label)) } {
        if word != PURE {
            CacheError::unknown_function_policy(shown(word.to_bytes())).raise();
        }
        if !may_be_declared(function) {
            CacheError::not_in_plpgsql().raise();
        }
    }
}

/// Checks the relation's kind, and tells all backends to make plans over it anew.
fn announce(relation: pg_sys::Oid) {
    // SAFETY: catalog searches by OID; the caller has locked the relation.
    unsafe {
        match kept!(pg_sys::get_rel_relkind(relation)) as u8 {
            pg_sys::RELKIND_RELATION
            | pg_sys::RELKIND_PARTITIONED_TABLE
            | pg_sys::RELKIND_MATVIEW
            | pg_sys::RELKIND_VIEW
            | pg_sys::RELKIND_FOREIGN_TABLE => {}
            _ => CacheError::not_a_relation().raise(),
        }
        kept!(pg_sys::CacheInvalidateRelcacheByRelid(relation));
    }
}

/// The policy of a relation.
fn policy(call: FunctionCall<'_>) -> &'static str {
    shmem::required();
    relation_policy::of(call.oid(0)).name()
}

sql_function!(policy, "arrow_cache_policy");
