//! What the views show of fragments: their counters, and which entries are fragments. These are functions beside `stats_data` and
//! `entries_data`, whose columns stay as they were: an update of the extension replaces views, and keeps functions on which others rest.

use arrow_cache_core::{Counter, EntryKind, RoomyVec};
use pgrx::iter::TableIterator;
use pgrx::pg_sys;

use super::stats::milliseconds;
use super::visible::Visible;
use crate::error::or_raise;
use crate::pg::backend;
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

/// What an entry is called.
fn name(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Answer => "answer",
        EntryKind::Fragment => "fragment",
    }
}

/// The columns of the view `entries` that 0.1 had not.
type EntryKindRow = (i64, &'static str, f64, i64);

fn entry_kinds_data(_: FunctionCall<'_>) -> TableIterator<'static, EntryKindRow> {
    let store = shmem::required();
    // SAFETY: a plain read of a backend global.
    let database = unsafe { pg_sys::MyDatabaseId.to_u32() };
    let visible = Visible::to_current_user();
    let now = backend::now();
    let mut rows: Vec<EntryKindRow> = Vec::new();
    let mut gathered = Ok(());
    store.for_each(|entry| {
        if gathered.is_ok() && entry.database() == database && visible.includes(entry) {
            let renditions = entry.rendition_bytes() as i64;
            gathered = rows.add((entry.entry_id() as i64, name(entry.kind()), entry.score(now), renditions));
        }
    });
    or_raise(gathered);
    TableIterator::new(rows)
}

sql_function!(
    entry_kinds_data,
    Signature::table(
        &[],
        &[
            pg_sys::INT8OID,   // entry_id
            pg_sys::TEXTOID,   // kind
            pg_sys::FLOAT8OID, // score
            pg_sys::INT8OID,   // rendition_bytes
        ]
    ),
    "arrow_cache_entry_kinds_data"
);
