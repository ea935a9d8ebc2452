//! What the view `stats` shows of statements that waited for others. Keeps nothing.

use arrow_cache_core::Counter;
use pgrx::iter::TableIterator;
use pgrx::pg_sys;

use super::stats::milliseconds;
use crate::pg::function_call::FunctionCall;
use crate::pg::signature::Signature;
use crate::pg::sql_function::sql_function;
use crate::shmem;

fn waits_data(_: FunctionCall<'_>) -> TableIterator<'static, (i64, i64, f64, i64)> {
    let store = shmem::required();
    let counters = store.counters();
    TableIterator::once((
        counters.sum(Counter::Waits) as i64,
        counters.sum(Counter::WaitsAnswered) as i64,
        milliseconds(counters.sum(Counter::WaitMicros)),
        counters.sum(Counter::StaleHits) as i64,
    ))
}

sql_function!(
    waits_data,
    Signature::table(
        &[],
        &[
            pg_sys::INT8OID,   // waits
            pg_sys::INT8OID,   // waits_answered
            pg_sys::FLOAT8OID, // wait_time_ms
            pg_sys::INT8OID,   // stale_hits
        ]
    ),
    "arrow_cache_waits_data_0_2"
);
