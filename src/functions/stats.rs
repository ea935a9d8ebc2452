//! The rows behind the views: counters, entries, relations, reasons. Entries are pinned while they are read; the store
//! takes its locks itself.

use arrow_cache_core::{
    Counter, Dependency, EntryKind, EntryView, OutOfMemory, Reason, ReplayFault, RoomyVec, TrackedRelation, Versions,
    members,
};
use pgrx::pg_sys;

use super::visible::Visible;
use crate::error::or_raise;
use crate::invalidation::known_as::rows_of;
use crate::pg::backend;
use crate::pg::function_call::FunctionCall;
use crate::pg::returned::{Columns, Set, Timestamp};
use crate::pg::sql_function::sql_function;
use crate::settings;
use crate::shmem::{self, SharedStore};

fn timestamp(micros: i64) -> Option<Timestamp> {
    (micros != 0).then_some(Timestamp(micros))
}

/// A time of the store, as the views show it.
pub fn milliseconds(micros: u64) -> f64 {
    micros as f64 / 1000.0
}

/// How a wait may end. It is counted then.
const ENDS: [Counter; 5] = [
    Counter::WaitsAnswered,
    Counter::WaitsTakenOver,
    Counter::WaitsTimedOut,
    Counter::WaitsGivenUp,
    Counter::WaitsStopped,
];

/// Tells whether this server replays, and whether its cache follows.
fn standby_state(store: &SharedStore) -> String {
    match store.replay().fault() {
        _ if !backend::is_in_recovery() => "primary".to_owned(),
        None => "replaying".to_owned(),
        Some(ReplayFault::CustomResourceManager) => "off: custom_resource_manager".to_owned(),
        Some(ReplayFault::UnknownRecord) => "off: unknown_record".to_owned(),
        Some(ReplayFault::Failure) => "off: internal_failure".to_owned(),
    }
}

/// The share of queries that were hits, of time that was saved, and of looked-up queries that were answered.
fn ratios(sum: impl Fn(Counter) -> i64) -> [Option<f64>; 3] {
    let (hits, missed) = (sum(Counter::Hits), sum(Counter::Misses) + sum(Counter::Stale));
    let saved = sum(Counter::TimeSavedMicros) + sum(Counter::FragmentTimeSavedMicros);
    let answered = hits + sum(Counter::StaleHits);
    let share = |part: i64, whole: i64| (whole > 0).then(|| part as f64 / whole as f64);
    [
        share(hits, hits + missed + sum(Counter::Bypasses)),
        share(saved, saved + sum(Counter::TimeExecutedMicros)),
        share(answered, answered + missed),
    ]
}

fn stats_data(_: FunctionCall<'_>) -> Set<impl Columns + use<>> {
    let store = shmem::required();
    let counters = store.counters();
    let sum = |counter| counters.sum(counter) as i64;
    let [of_queries, of_time, of_eligible] = ratios(sum);
    let waits = ENDS.map(sum);
    Set::once((
        sum(Counter::Hits),
        sum(Counter::Misses),
        sum(Counter::Stale),
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
        of_queries,
        milliseconds(counters.sum(Counter::TimeSavedMicros)),
        timestamp(store.stats_reset()),
        sum(Counter::OtherStatements),
        sum(Counter::NestedStatements),
        sum(Counter::VerifySamples),
        milliseconds(counters.sum(Counter::TimeExecutedMicros)),
        of_time,
        of_eligible,
        sum(Counter::FragmentsStored),
        sum(Counter::FragmentsServed),
        sum(Counter::FragmentsComputed),
        sum(Counter::FragmentRuns),
        milliseconds(counters.sum(Counter::FragmentTimeSavedMicros)),
        store.fragment_bytes() as i64,
        waits.iter().sum::<i64>(),
        waits[0],
        waits[1],
        waits[2],
        waits[3],
        waits[4],
        milliseconds(counters.sum(Counter::WaitMicros)),
        store.claims().held() as i64,
        sum(Counter::StaleHits),
        standby_state(&store),
        store.statements_dropped() as i64,
        sum(Counter::PrecisePublications),
        sum(Counter::CoarseNotNoted),
        sum(Counter::CoarseOverflow),
        sum(Counter::CoarseGeneration),
        sum(Counter::CoarseDefinitions),
        store.file_bytes() as i64,
        store.most_file_bytes() as i64,
        sum(Counter::FileMoves),
        sum(Counter::FileHits),
        sum(Counter::FileFailures),
    ))
}

sql_function!(stats_data, "arrow_cache_stats_data");

/// The relations of which an entry rests on rows with certain values alone.
fn relations_by_value<'e>(entry: &'e EntryView<'_>, versions: &'e Versions<'_>) -> impl Iterator<Item = u32> + use<'e> {
    // What an entry rests on of one relation lies together. In recovery its coarse slot is that of a file.
    let mut last = 0;
    let is_first_by_value = move |on: &&Dependency| {
        let is_coarse = on.relation != 0 && on.slot == versions.coarse(entry.database(), on.relation);
        (is_coarse || versions.is_of_value(on.slot)) && std::mem::replace(&mut last, on.relation) != on.relation
    };
    entry.dependencies().iter().filter(is_first_by_value).map(|on| on.relation)
}

fn entries_data(_: FunctionCall<'_>) -> Set<impl Columns + use<>> {
    let store = shmem::required();
    let database = backend::database();
    // SAFETY: the name of this database is a palloc'd C string.
    let datname = unsafe { std::ffi::CStr::from_ptr(kept!(pg_sys::get_database_name(pg_sys::MyDatabaseId))) };
    let datname = datname.to_string_lossy().into_owned();
    let now = backend::now();
    let versions = store.versions();
    let visible = Visible::to_current_user();
    let row_of = |entry: &EntryView<'_>| -> Result<_, OutOfMemory> {
        let is_current = entry.dependencies().iter().all(|d| versions.version(d.slot) == d.version);
        let (mut relations, mut by_value) = (Vec::new(), Vec::new());
        for relation in entry.relations() {
            relations.add(pg_sys::Oid::from(relation))?;
        }
        for relation in relations_by_value(entry, &versions) {
            by_value.add(pg_sys::Oid::from(relation))?;
        }
        Ok((
            entry.entry_id() as i64,
            String::new(),
            Vec::copy_of(entry.text())?,
            entry.rows() as i64,
            entry.columns() as i32,
            entry.chunk_count() as i32,
            entry.bytes() as i64,
            entry.hits() as i64,
            milliseconds(entry.execution_micros()),
            milliseconds(entry.execution_micros().saturating_mul(entry.hits())),
            timestamp(entry.created_at()),
            if entry.hits() > 0 { timestamp(entry.last_used()) } else { None },
            if entry.expires_at() == i64::MAX { None } else { timestamp(entry.expires_at()) },
            is_current && entry.expires_at() > now,
            relations,
            match entry.kind() {
                EntryKind::Answer => "answer",
                EntryKind::Fragment => "fragment",
            },
            entry.score(now),
            entry.rendition_bytes() as i64,
            by_value,
            entry.file_bytes() as i64,
        ))
    };
    let mut rows = Vec::new();
    let mut gathered = Ok(());
    // While entries are pinned only plain data is gathered; code that may raise runs afterwards.
    store.for_each(|entry| {
        if gathered.is_ok() && entry.database() == database && visible.includes(entry) {
            gathered = row_of(entry).and_then(|row| rows.add(row));
        }
    });
    or_raise(gathered);
    Set::new(rows.into_iter().map(move |mut row| {
        row.1.clone_from(&datname);
        row.14.retain(|relation| visible.names(*relation));
        row.18.retain(|relation| visible.names(*relation));
        row
    }))
}

sql_function!(entries_data, "arrow_cache_entries_data");

/// The relations that `of` names for each entry of this database that the user may see, ascending: as often as entries
/// name them.
fn named_by_entries(visible: &Visible, mut of: impl FnMut(&EntryView<'_>, &mut dyn FnMut(u32))) -> Vec<u32> {
    let database = backend::database();
    let mut named: Vec<u32> = Vec::new();
    let mut gathered = Ok(());
    shmem::required().for_each(|entry| {
        if entry.database() == database && visible.includes(entry) {
            of(entry, &mut |relation| gathered = gathered.and(named.add(relation)));
        }
    });
    or_raise(gathered);
    named.sort_unstable();
    named
}

fn relations_data(_: FunctionCall<'_>) -> Set<impl Columns + use<>> {
    let store = shmem::required();
    let database = backend::database();
    let visible = Visible::to_current_user();
    let named = named_by_entries(&visible, |entry, name| entry.relations().for_each(name));
    let mut next = 0;
    Set::new(std::iter::from_fn(move || {
        while !visible.names(pg_sys::Oid::from(*named.get(next)?)) {
            next += 1;
        }
        let relation = *named.get(next)?;
        let entries = named[next..].iter().take_while(|other| **other == relation).count();
        next += entries;
        let versions = store.versions();
        let state = versions.read(versions.relation(database, relation));
        let changed = timestamp(state.last_change);
        Some((pg_sys::Oid::from(relation), entries as i32, state.version as i64, changed))
    }))
}

sql_function!(relations_data, "arrow_cache_relations_data");

fn tracked_data(_: FunctionCall<'_>) -> Set<impl Columns + use<>> {
    let store = shmem::required();
    let database = backend::database();
    let visible = Visible::to_current_user();
    let versions = store.versions();
    let named = named_by_entries(&visible, |entry, name| relations_by_value(entry, &versions).for_each(name));
    let all: Vec<TrackedRelation> = store.registry().all().collect();
    // In recovery a line has the number of a file, of which the entries over it tell whose it is.
    let relation_of = |one: &TrackedRelation| match backend::is_in_recovery() {
        true => named.iter().copied().find(|relation| rows_of(*relation) == Some(one.relation)),
        false => Some(one.relation),
    };
    let own = all.into_iter().filter(|one| one.database == database);
    let named_so = own.filter_map(|one| Some((relation_of(&one)?, one)));
    let shown: Vec<_> = named_so.filter(|(relation, _)| visible.names(pg_sys::Oid::from(*relation))).collect();
    Set::new(shown.into_iter().flat_map(move |(relation, one)| {
        let entries = named.iter().filter(|other| **other == relation).count();
        let versions = store.versions();
        let [changes, coarse] = versions.of_relation(database, one.relation).map(|slot| versions.version(slot));
        let row = move |(column, is_quiet)| {
            let relation = pg_sys::Oid::from(relation);
            let counts = (entries as i32, changes as i64, coarse as i64);
            let (first, second) = members(column);
            (
                relation,
                i32::from(first),
                second.map(i32::from),
                is_quiet,
                Timestamp(one.since),
                counts.0,
                counts.1,
                counts.2,
            )
        };
        let quiet = one.tracked.quiet.iter().map(|(_, column)| column);
        one.tracked.iter().map(|column| (column, false)).chain(quiet.map(|column| (column, true))).map(row)
    }))
}

sql_function!(tracked_data, "arrow_cache_tracked_data");

fn bypass_reasons_data(_: FunctionCall<'_>) -> Set<impl Columns + use<>> {
    let store = shmem::required();
    let counters = store.counters();
    let rows: Vec<_> = Reason::ALL
        .iter()
        .map(|reason| (reason.name(), counters.sum_reason(*reason) as i64))
        .filter(|(_, statements)| *statements > 0)
        .collect();
    Set::new(rows)
}

sql_function!(bypass_reasons_data, "arrow_cache_bypass_reasons_data");
