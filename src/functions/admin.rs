//! SQL functions that drop entries and reset counters. They change shared memory only through the store, which takes
//! its locks itself.

use crate::invalidation::waking;
use crate::pg::backend;
use crate::pg::function_call::FunctionCall;
use crate::pg::sql_function::sql_function;
use crate::shmem;

/// Drops every entry of this database and returns how many there were.
fn flush(_: FunctionCall<'_>) -> i64 {
    let store = shmem::required();
    let database = backend::database();
    store.retire_matching(|entry| entry.database() == database) as i64
}

sql_function!(flush, "arrow_cache_flush");

/// Drops every entry that rests on a relation and returns how many there were.
fn invalidate(call: FunctionCall<'_>) -> i64 {
    let store = shmem::required();
    let database = backend::database();
    let relation = call.oid(0).to_u32();
    if relation == 0 {
        return 0;
    }
    // A result that is being computed must not be stored after this.
    let versions = store.versions();
    let slots = versions.of_relation(database, relation);
    slots.iter().for_each(|slot| versions.slot(*slot).bump(backend::now()));
    waking::wake_for(&store, slots);
    let rests_on_it = |dependency: &arrow_cache_core::Dependency| dependency.relation == relation;
    store.retire_matching(|entry| entry.database() == database && entry.dependencies().iter().any(rests_on_it)) as i64
}

sql_function!(invalidate, "arrow_cache_invalidate");

/// Zeroes the counters.
fn reset_stats(_: FunctionCall<'_>) {
    let store = shmem::required();
    store.reset_stats(backend::now());
}

sql_function!(reset_stats, "arrow_cache_reset_stats");
