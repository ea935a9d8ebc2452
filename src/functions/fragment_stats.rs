//! What the view `stats` shows of fragments. Reads counters.

use arrow_cache_core::Counter;

use super::stats::milliseconds;
use crate::pg::function_call::FunctionCall;
use crate::pg::returned::Set;
use crate::pg::signature::Signature;
use crate::pg::sql_function::sql_function;
use crate::shmem;

/// The columns of the view `stats` about fragments.
type FragmentsRow = (i64, i64, i64, i64, f64, i64);

fn fragments_data(_: FunctionCall<'_>) -> Set<FragmentsRow> {
    let store = shmem::required();
    let counters = store.counters();
    let sum = |counter| counters.sum(counter) as i64;
    Set::once((
        sum(Counter::FragmentsStored),
        sum(Counter::FragmentsServed),
        sum(Counter::FragmentsComputed),
        sum(Counter::FragmentRuns),
        milliseconds(counters.sum(Counter::FragmentTimeSavedMicros)),
        store.fragment_bytes() as i64,
    ))
}

sql_function!(fragments_data, Signature::of(&[]), "arrow_cache_fragments_data");
