//! The rows behind the views: counters, entries, relations, reasons. Entries are pinned while they are read; the store takes its locks
//! itself.

use arrow_cache_core::{Counter, EntryView, OutOfMemory, Reason, RoomyVec, Versions};
use pgrx::prelude::*;
use pgrx::{datum::TimestampWithTimeZone, pg_sys};

use crate::error::or_raise;
use crate::pg::{backend, privileges};
use crate::{settings, shmem};

/// The role whose members may see the statements of all users (pg_authid.dat).
const PG_READ_ALL_STATS: u32 = 3375;

fn timestamp(micros: i64) -> Option<TimestampWithTimeZone> {
    if micros == 0 { None } else { TimestampWithTimeZone::try_from(micros).ok() }
}

fn milliseconds(micros: u64) -> f64 {
    micros as f64 / 1000.0
}

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn stats_data() -> TableIterator<
    'static,
    (
        name!(hits, i64),
        name!(misses, i64),
        name!(stale, i64),
        name!(bypasses, i64),
        name!(stores, i64),
        name!(evictions, i64),
        name!(expirations, i64),
        name!(invalidations, i64),
        name!(verify_checks, i64),
        name!(verify_mismatches, i64),
        name!(entries, i32),
        name!(max_entries, i32),
        name!(bytes_used, i64),
        name!(bytes_total, i64),
        name!(hit_ratio, Option<f64>),
        name!(time_saved_ms, f64),
        name!(stats_reset, Option<TimestampWithTimeZone>),
    ),
> {
    let store = shmem::required();
    let counters = store.counters();
    let sum = |counter| counters.sum(counter) as i64;
    let (hits, misses, stale) = (sum(Counter::Hits), sum(Counter::Misses), sum(Counter::Stale));
    let lookups = hits + misses + stale;
    let hit_ratio = (lookups > 0).then(|| hits as f64 / lookups as f64);
    TableIterator::once((
        hits,
        misses,
        stale,
        sum(Counter::Bypasses),
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
        hit_ratio,
        milliseconds(counters.sum(Counter::TimeSavedMicros)),
        timestamp(store.stats_reset()),
    ))
}

/// Whose results the current user may see: all, or only those of the user's own. Not even the number of the others is shown.
struct Visible {
    user: u32,
    all: bool,
}

impl Visible {
    fn to_current_user() -> Self {
        let user = privileges::current_role();
        // SAFETY: a look-up of memberships.
        let all = unsafe { pg_sys::has_privs_of_role(user, pg_sys::Oid::from(PG_READ_ALL_STATS)) };
        Self { user: user.to_u32(), all }
    }

    fn includes(&self, entry: &EntryView<'_>) -> bool {
        self.all || entry.role() == self.user
    }

    /// May the user learn that results rest on this relation, and when it has changed? Not if only a view reads it for the user.
    fn names(&self, relation: pg_sys::Oid) -> bool {
        self.all || privileges::has(pg_sys::Oid::from(self.user), relation, pg_sys::ACL_SELECT)
    }
}

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
    Option<TimestampWithTimeZone>,
    Option<TimestampWithTimeZone>,
    Option<TimestampWithTimeZone>,
    bool,
    Vec<pg_sys::Oid>,
);

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn entries_data() -> TableIterator<
    'static,
    (
        name!(entry_id, i64),
        name!(datname, String),
        name!(query, Option<Vec<u8>>),
        name!(row_count, i64),
        name!(column_count, i32),
        name!(batches, i32),
        name!(bytes, i64),
        name!(hits, i64),
        name!(execution_time_ms, f64),
        name!(time_saved_ms, f64),
        name!(created_at, Option<TimestampWithTimeZone>),
        name!(last_hit_at, Option<TimestampWithTimeZone>),
        name!(expires_at, Option<TimestampWithTimeZone>),
        name!(valid, bool),
        name!(relations, Vec<pg_sys::Oid>),
    ),
> {
    let store = shmem::required();
    // SAFETY: a plain read of a backend global; the name is a palloc'd C string.
    let (database, datname) = unsafe {
        let database = pg_sys::MyDatabaseId;
        let name = pg_sys::get_database_name(database);
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
    TableIterator::new(rows.into_iter().map(move |mut row| {
        row.1.clone_from(&datname);
        row.14.retain(|relation| visible.names(*relation));
        row
    }))
}

fn entry_row(entry: &EntryView<'_>, versions: &Versions<'_>, now: i64) -> Result<EntryRow, OutOfMemory> {
    let last_hit = if entry.hits() > 0 { timestamp(entry.last_used()) } else { None };
    let dependencies = entry.dependencies();
    let is_current = dependencies.iter().all(|d| versions.slot(d.slot).version() == d.version);
    let text = Vec::copy_of(entry.text())?;
    let mut relations = Vec::new();
    for dependency in dependencies.iter().filter(|dependency| dependency.relation != 0) {
        relations.add(pg_sys::Oid::from(dependency.relation))?;
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
    ))
}

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn relations_data() -> TableIterator<
    'static,
    (
        name!(relation, pg_sys::Oid),
        name!(entries, i32),
        name!(changes, i64),
        name!(last_change_at, Option<TimestampWithTimeZone>),
    ),
> {
    let store = shmem::required();
    // SAFETY: a plain read of a backend global.
    let database = unsafe { pg_sys::MyDatabaseId.to_u32() };
    let visible = Visible::to_current_user();
    // Each relation as often as entries rest on it.
    let mut named: Vec<u32> = Vec::new();
    let mut gathered = Ok(());
    store.for_each(|entry| {
        if entry.database() == database && visible.includes(entry) {
            for dependency in entry.dependencies().iter().filter(|d| d.relation != 0) {
                gathered = gathered.and(named.add(dependency.relation));
            }
        }
    });
    or_raise(gathered);
    named.sort_unstable();
    let mut next = 0;
    TableIterator::new(std::iter::from_fn(move || {
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

#[pg_extern(sql = false)]
fn bypass_reasons_data() -> TableIterator<'static, (name!(reason, &'static str), name!(statements, i64))> {
    let store = shmem::required();
    let counters = store.counters();
    let rows: Vec<_> = Reason::ALL
        .iter()
        .map(|reason| (reason.name(), counters.sum_reason(*reason) as i64))
        .filter(|(_, statements)| *statements > 0)
        .collect();
    TableIterator::new(rows)
}
