//! The rows behind the views: counters, entries, relations, reasons. Entries are pinned while they are read; the store takes its locks
//! itself.

use arrow_cache_core::{Counter, EntryKind, EntryView, OutOfMemory, Reason, RoomyVec, Versions};
use pgrx::pg_sys;

use super::visible::Visible;
use crate::error::or_raise;
use crate::pg::backend;
use crate::pg::function_call::FunctionCall;
use crate::pg::returned::{Set, Timestamp};
use crate::pg::signature::Signature;
use crate::pg::sql_function::sql_function;
use crate::{settings, shmem};

fn timestamp(micros: i64) -> Option<Timestamp> {
    (micros != 0).then_some(Timestamp(micros))
}

/// A time of the store, as the views show it.
pub fn milliseconds(micros: u64) -> f64 {
    micros as f64 / 1000.0
}

/// The columns of the view `stats`.
type StatsRow = (
    i64,
    i64,
    i64,
    i64,
    i64,
    i64,
    i64,
    i64,
    i64,
    i64,
    i32,
    i32,
    i64,
    i64,
    Option<f64>,
    f64,
    Option<Timestamp>,
    i64,
    i64,
    i64,
    f64,
    Option<f64>,
    Option<f64>,
);

fn stats_data(_: FunctionCall<'_>) -> Set<StatsRow> {
    let store = shmem::required();
    let counters = store.counters();
    let sum = |counter| counters.sum(counter) as i64;
    let (hits, misses, stale) = (sum(Counter::Hits), sum(Counter::Misses), sum(Counter::Stale));
    let bypasses = sum(Counter::Bypasses);
    let queries = hits + misses + stale + bypasses;
    let share = |part: i64, whole: i64| (whole > 0).then(|| part as f64 / whole as f64);
    let (saved, executed) = (sum(Counter::TimeSavedMicros), sum(Counter::TimeExecutedMicros));
    let saved_in_all = saved + sum(Counter::FragmentTimeSavedMicros);
    let answered = hits + sum(Counter::StaleHits);
    Set::once((
        hits,
        misses,
        stale,
        bypasses,
        sum(Counter::Stores),
        sum(Counter::Evictions),
        sum(Counter::Expirations),
        sum(Counter::Invalidations),
        sum(Counter::VerifyChecks),
        sum(Counter::VerifyMismatches),
        store.entries() as i32,
        settings::max_entries() as i32,
        store.bytes_used() as i64,
        settings::memory_bytes() as i64,
        share(hits, queries),
        milliseconds(saved as u64),
        timestamp(store.stats_reset()),
        sum(Counter::OtherStatements),
        sum(Counter::NestedStatements),
        sum(Counter::VerifySamples),
        milliseconds(executed as u64),
        share(saved_in_all, saved_in_all + executed),
        share(answered, answered + misses + stale),
    ))
}

sql_function!(stats_data, Signature::of(&[]), "arrow_cache_stats_data");

type EntryRow = (
    i64,
    String,
    Option<Vec<u8>>,
    i64,
    i32,
    i32,
    i64,
    i64,
    f64,
    f64,
    Option<Timestamp>,
    Option<Timestamp>,
    Option<Timestamp>,
    bool,
    Vec<pg_sys::Oid>,
    &'static str,
    f64,
    i64,
);

fn entries_data(_: FunctionCall<'_>) -> Set<EntryRow> {
    let store = shmem::required();
    // SAFETY: a plain read of a backend global; the name is a palloc'd C string.
    let (database, datname) = unsafe {
        let database = pg_sys::MyDatabaseId;
        let name = kept!(pg_sys::get_database_name(database));
        let name = std::ffi::CStr::from_ptr(name).to_string_lossy().into_owned();
        (database.to_u32(), name)
    };
    let now = backend::now();
    let versions = store.versions();
    let visible = Visible::to_current_user();
    let mut rows: Vec<EntryRow> = Vec::new();
    let mut gathered = Ok(());
    // While entries are pinned only plain data is gathered; code that may raise runs afterwards.
    store.for_each(|entry| {
        if gathered.is_ok() && entry.database() == database && visible.includes(entry) {
            gathered = entry_row(entry, &versions, now).and_then(|row| rows.add(row));
        }
    });
    or_raise(gathered);
    Set::new(rows.into_iter().map(move |mut row| {
        row.1.clone_from(&datname);
        row.14.retain(|relation| visible.names(*relation));
        row
    }))
}

sql_function!(entries_data, Signature::of(&[]), "arrow_cache_entries_data");

fn entry_row(entry: &EntryView<'_>, versions: &Versions<'_>, now: i64) -> Result<EntryRow, OutOfMemory> {
    let last_hit = if entry.hits() > 0 { timestamp(entry.last_used()) } else { None };
    let dependencies = entry.dependencies();
    let is_current = dependencies.iter().all(|d| versions.slot(d.slot).version() == d.version);
    let text = Vec::copy_of(entry.text())?;
    let mut relations = Vec::new();
    for relation in entry.relations() {
        relations.add(pg_sys::Oid::from(relation))?;
    }
    let expires = if entry.expires_at() == i64::MAX { None } else { timestamp(entry.expires_at()) };
    Ok((
        entry.entry_id() as i64,
        String::new(),
        Some(text),
        entry.rows() as i64,
        entry.columns() as i32,
        entry.chunk_count() as i32,
        entry.bytes() as i64,
        entry.hits() as i64,
        milliseconds(entry.execution_micros()),
        milliseconds(entry.execution_micros().saturating_mul(entry.hits())),
        timestamp(entry.created_at()),
        last_hit,
        expires,
        is_current && entry.expires_at() > now,
        relations,
        match entry.kind() {
            EntryKind::Answer => "answer",
            EntryKind::Fragment => "fragment",
        },
        entry.score(now),
        entry.rendition_bytes() as i64,
    ))
}

/// The columns of the view `relations`.
type RelationRow = (pg_sys::Oid, i32, i64, Option<Timestamp>);

fn relations_data(_: FunctionCall<'_>) -> Set<RelationRow> {
    let store = shmem::required();
    let database = backend::database();
    let visible = Visible::to_current_user();
    // Each relation as often as entries rest on it.
    let mut named: Vec<u32> = Vec::new();
    let mut gathered = Ok(());
    store.for_each(|entry| {
        if entry.database() == database && visible.includes(entry) {
            for relation in entry.relations() {
                gathered = gathered.and(named.add(relation));
            }
        }
    });
    or_raise(gathered);
    named.sort_unstable();
    let mut next = 0;
    Set::new(std::iter::from_fn(move || {
        while !visible.names(pg_sys::Oid::from(*named.get(next)?)) {
            next += 1;
        }
        let relation = *named.get(next)?;
        let entries = named[next..].iter().take_while(|other| **other == relation).count();
        next += entries;
        let versions = store.versions();
        let state = versions.slot(versions.relation(database, relation)).read();
        let changed = timestamp(state.last_change);
        Some((pg_sys::Oid::from(relation), entries as i32, state.version as i64, changed))
    }))
}

sql_function!(relations_data, Signature::of(&[]), "arrow_cache_relations_data");

/// The columns of the view `bypass_reasons`.
type ReasonRow = (&'static str, i64);

fn bypass_reasons_data(_: FunctionCall<'_>) -> Set<ReasonRow> {
    let store = shmem::required();
    let counters = store.counters();
    let rows: Vec<_> = Reason::ALL
        .iter()
        .map(|reason| (reason.name(), counters.sum_reason(*reason) as i64))
        .filter(|(_, statements)| *statements > 0)
        .collect();
    Set::new(rows)
}

sql_function!(bypass_reasons_data, Signature::of(&[]), "arrow_cache_bypass_reasons_data");
