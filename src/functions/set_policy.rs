//! Setting and showing the policy of a relation: what its owner says about caching it (`query/relation_policy.rs` reads it). The provider of
//! labels is registered once in each backend; no lock.

use std::cell::Cell;
use std::ffi::{CStr, c_char};

use arrow_cache_core::shown;
use pgrx::pg_sys;

use crate::error::CacheError;
use crate::pg::backend_local::Local;
use crate::pg::error_passing::edge;
use crate::pg::function_call::FunctionCall;
use crate::pg::privileges;
use crate::pg::sql_function::sql_function;
use crate::pg::tree::Tree;
use crate::query::eligibility::{PURE, may_be_declared};
use crate::query::relation_policy::{self, PROVIDER, Policy};
use crate::shmem;

static REGISTERED: Local<Cell<bool>> = Local::new(Cell::new(false));

/// Registers the provider when a SECURITY LABEL statement names it.
///
/// It is not registered earlier, because a statement that names no provider means the only one that there is. Such a statement must go on
/// to mean the provider of another library, or to fail, as if this library were not loaded.
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
                let known = Policy::named(word.to_bytes()).filter(|policy| policy.label().is_some());
                if known.is_none() {
                    CacheError::unknown_policy(shown(word.to_bytes()), false).raise();
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

/// Says how results over a relation may be cached: `default`, `never`, or `trusted` (although the server cannot see its
/// changes). For the relation's owner.
///
/// The word comes as bytes in the encoding of the database, because Rust's strings are always UTF-8.
fn set_policy(call: FunctionCall<'_>) {
    shmem::required();
    let (relation, policy) = (call.oid(0), call.text(1));
    let Some(wanted) = Policy::named(policy) else { CacheError::unknown_policy(shown(policy), true).raise() };
    // SAFETY: the steps of SECURITY LABEL: checks of the transaction, lock, ownership, the provider's check, the label. The
    // lock stays until the end of the transaction.
    unsafe {
        let command = c"arrow_cache.set_policy()".as_ptr();
        kept!(pg_sys::PreventCommandIfReadOnly(command));
        kept!(pg_sys::PreventCommandIfParallelMode(command));
        kept!(pg_sys::PreventCommandDuringRecovery(command));
        let open = kept!(pg_sys::try_relation_open(relation, pg_sys::ShareUpdateExclusiveLock as _));
        if open.is_null() {
            CacheError::not_a_relation().raise();
        }
        privileges::check_owner(relation);
        announce(relation);
        let address = pg_sys::ObjectAddress { classId: pg_sys::RelationRelationId, objectId: relation, objectSubId: 0 };
        let label = wanted.label().map_or(std::ptr::null(), CStr::as_ptr);
        kept!(pg_sys::SetSecurityLabel(&address, PROVIDER.as_ptr(), label));
        kept!(pg_sys::relation_close(open, pg_sys::NoLock as _));
        // Later parts of the same statement see the policy.
        kept!(pg_sys::CommandCounterIncrement());
    }
}

sql_function!(set_policy, "arrow_cache_set_policy");

/// The policy of a relation.
fn policy(call: FunctionCall<'_>) -> &'static str {
    shmem::required();
    relation_policy::of(call.oid(0)).name()
}

sql_function!(policy, "arrow_cache_policy");
