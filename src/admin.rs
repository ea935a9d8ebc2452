//! SQL functions that look at this session or change the cache.

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::error::CacheError;
use crate::shmem::{self, SharedStore};
use crate::{compat, session, writes};

/// The cache, or the error that says what is missing.
pub fn required_store() -> SharedStore {
    shmem::store().unwrap_or_else(|| CacheError::NotPreloaded.raise())
}

/// Drops every entry of this database and returns how many there were.
#[pg_extern(volatile, parallel_unsafe)]
fn flush() -> i64 {
    let store = required_store();
    // SAFETY: a plain read of a backend global.
    let database = unsafe { pg_sys::MyDatabaseId.to_u32() };
    store.retire_matching(|entry| entry.database() == database) as i64
}

/// Drops every entry that rests on a relation and returns how many there were.
#[pg_extern(
    volatile,
    parallel_unsafe,
    sql = "CREATE FUNCTION invalidate(relation regclass) RETURNS bigint STRICT VOLATILE PARALLEL UNSAFE
           LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn invalidate(relation: pg_sys::Oid) -> i64 {
    let store = required_store();
    // SAFETY: a plain read of a backend global.
    let database = unsafe { pg_sys::MyDatabaseId.to_u32() };
    let relation = relation.to_u32();
    let rests_on_it = |dependency: &arrow_cache_core::Dependency| dependency.relation == relation;
    store.retire_matching(|entry| entry.database() == database && entry.dependencies().iter().any(rests_on_it)) as i64
}

/// Trigger function for tables whose changes the server cannot see: publishes a change of the
/// table, and of the relations that its arguments name, when the transaction commits.
#[pg_trigger]
fn invalidate_on_change<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, impl WhoAllocated>>, pgrx::PgTriggerError> {
    required_store();
    // A change of a foreign table assigns no transaction id, and without one nothing is published.
    // SAFETY: inside a transaction, as every trigger is.
    unsafe { pg_sys::GetCurrentTransactionId() };
    writes::note_relation(trigger.relation()?.oid());
    for name in trigger.extra_args()? {
        writes::note_relation(relation_named(&name));
    }
    Ok(None::<PgHeapTuple<'a, AllocatedByRust>>)
}

/// The relation that a possibly qualified name stands for.
fn relation_named(name: &str) -> pg_sys::Oid {
    let unknown = || CacheError::UnknownRelation { name: name.to_owned() };
    let Ok(text) = std::ffi::CString::new(name) else { unknown().raise() };
    // SAFETY: the parser copies what it needs of the name; a missing relation gives InvalidOid.
    let oid = unsafe {
        let names = compat::qualified_name(&text);
        let range = pg_sys::makeRangeVarFromNameList(names);
        pg_sys::RangeVarGetRelidExtended(
            range,
            pg_sys::NoLock as _,
            pg_sys::RVROption::RVR_MISSING_OK,
            None,
            std::ptr::null_mut(),
        )
    };
    if oid == pg_sys::InvalidOid { unknown().raise() } else { oid }
}

/// Zeroes the counters.
#[pg_extern(volatile, parallel_unsafe)]
fn reset_stats() {
    let store = required_store();
    // SAFETY: reads the clock.
    store.reset_stats(unsafe { pg_sys::GetCurrentTimestamp() });
}

/// What became of this session's last top-level statement that was not itself a call of this.
#[pg_extern(volatile, parallel_unsafe)]
fn last_status() -> Option<&'static str> {
    required_store();
    session::last_status().map(session::Status::name)
}

/// Why that statement was bypassed or its result not stored.
#[pg_extern(volatile, parallel_unsafe)]
fn last_reason() -> Option<&'static str> {
    required_store();
    session::last_status()?.reason().map(arrow_cache_core::Reason::name)
}
