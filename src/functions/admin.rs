//! SQL functions that drop entries and reset counters. They change shared memory only through the store, which takes its locks itself.

use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::pg::backend;
use crate::shmem;

/// Drops every entry of this database and returns how many there were.
#[pg_extern(sql = false)]
fn flush() -> i64 {
    let store = shmem::required();
    // SAFETY: a plain read of a backend global.
    let database = unsafe { pg_sys::MyDatabaseId.to_u32() };
    store.retire_matching(|entry| entry.database() == database) as i64
}

/// Drops every entry that rests on a relation and returns how many there were.
#[pg_extern(sql = false)]
fn invalidate(relation: pg_sys::Oid) -> i64 {
    let store = shmem::required();
    // SAFETY: a plain read of a backend global.
    let database = unsafe { pg_sys::MyDatabaseId.to_u32() };
    let relation = relation.to_u32();
    if relation == 0 {
        return 0;
    }
    // A result that is being computed must not be stored after this.
    let versions = store.versions();
    versions.slot(versions.relation(database, relation)).bump(backend::now());
    let rests_on_it = |dependency: &arrow_cache_core::Dependency| dependency.relation == relation;
    store.retire_matching(|entry| entry.database() == database && entry.dependencies().iter().any(rests_on_it)) as i64
}

/// Zeroes the counters.
#[pg_extern(sql = false)]
fn reset_stats() {
    let store = shmem::required();
    store.reset_stats(backend::now());
}
