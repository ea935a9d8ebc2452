//! What the view `stats` shows of fragments. Reads counters.

use arrow_cache_core::Counter;
use pgrx::iter::TableIterator;
use pgrx::pg_sys;

use super::stats::milliseconds;
use crate::pg::function_call::FunctionCall;
use crate::pg::signature::Signature;
use crate::pg::sql_function::sql_function;
use crate::shmem;

/// The columns of the view `stats` about fragments.
type FragmentsRow = (i64, i64, i64, i64, f64, i64);

fn fragments_data(_: FunctionCall<'_>) -> TableIterator<'static, FragmentsRow> {
    let store = shmem::required();
    let counters = store.counters();
    let sum = |counter| counters.sum(counter) as i64;
    TableIterator::once((
        sum(Counter::FragmentsStored),
        sum(Counter::FragmentsServed),
        sum(Counter::FragmentsComputed),
        sum(Counter::FragmentRuns),
        milliseconds(counters.sum(Counter::FragmentTimeSavedMicros)),
        store.fragment_bytes() as i64,
    ))
}

sql_function!(
    fragments_data,
    Signature::table(
        &[],
        &[
            pg_sys::INT8OID,   // fragments_stored
            pg_sys::INT8OID,   // fragments_served
            pg_sys::INT8OID,   // fragments_computed
            pg_sys::INT8OID,   // fragment_runs
            pg_sys::FLOAT8OID, // fragment_time_saved_ms
            pg_sys::INT8OID,   // fragment_bytes
        ]
    ),
    "arrow_cache_fragments_data"
);
