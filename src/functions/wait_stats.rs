//! What the view `stats` shows of statements that waited for others, and of what is computed now. Keeps nothing.

use arrow_cache_core::Counter;

use super::stats::milliseconds;
use crate::pg::function_call::FunctionCall;
use crate::pg::returned::Set;
use crate::pg::signature::Signature;
use crate::pg::sql_function::sql_function;
use crate::shmem;

/// How a wait may end.
const ENDS: [Counter; 5] = [
    Counter::WaitsAnswered,
    Counter::WaitsTakenOver,
    Counter::WaitsTimedOut,
    Counter::WaitsGivenUp,
    Counter::WaitsStopped,
];

type Row = (i64, i64, i64, i64, i64, i64, f64, i64, i64);

fn waits_data(_: FunctionCall<'_>) -> Set<Row> {
    let store = shmem::required();
    let counters = store.counters();
    // A wait is counted when it ends.
    let [answered, taken_over, timed_out, given_up, stopped] = ENDS.map(|end| counters.sum(end) as i64);
    Set::once((
        answered + taken_over + timed_out + given_up + stopped,
        answered,
        taken_over,
        timed_out,
        given_up,
        stopped,
        milliseconds(counters.sum(Counter::WaitMicros)),
        store.claims().held() as i64,
        counters.sum(Counter::StaleHits) as i64,
    ))
}

sql_function!(waits_data, Signature::of(&[]), "arrow_cache_waits_data");
