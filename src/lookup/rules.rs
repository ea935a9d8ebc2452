//! The rules by which an answer may be given or stored (docs/architecture/exactness.md). All ways to an answer ask them
//! here: whole answers, their placeholders, parts, exports, change tokens.
//!
//! | rule | asked by |
//! |---|---|
//! | R1, R9: what may the snapshot tell? | `snapshot` |
//! | R2: which definitions are current before a plan is checked and made? | `definitions`, `are_settled` |
//! | R3: may the entry be given? | `find_entry`; before there is a snapshot, `is_promising` |
//! | R4, R10: what does an answer rest on that is computed now? | `dependencies` |
//! | R5: does the plan still mean what its key says? | `is_plan_current` |
//! | R6: has nothing changed since the start? | `have_changed`, `StartedUnder` |
//! | R7: does the snapshot of planning see all definitions? | `sees_catalogs` |
//! | R8: has the transaction changed what the answer rests on? | `check_own_writes` |
//!
//! Reads shared memory and the server's state; keeps nothing.

use arrow_cache_core::{CacheKey, Counter, Dependency, Pin, Reason, SnapshotView, Validity};
use pgrx::pg_sys;

use super::portal;
use super::value_rules::{Probed, dependencies_on_values};
use crate::error;
use crate::invalidation::known_as::file_number;
pub use crate::invalidation::own_writes::check_own_writes;
use crate::pg::{backend, compat};
use crate::query::asked_values::Scan;
use crate::query::clock::Cuts;
use crate::query::eligibility::QueryTraits;
use crate::query::statement_terms::StatementTerms;
use crate::query::{Planned, Versions, trusted_extensions};
use crate::restart;
pub use crate::serve::StartedUnder;
use crate::shmem::{self, SharedStore};

/// Stands for a version of the catalogs under which no plan may be stored.
pub const UNKNOWN_CATALOGS: u64 = u64::MAX;

/// R1, R9. The snapshot in the form that the protocol needs.
///
/// # Errors
/// The reason to bypass when the cache cannot reason about it.
#[inline]
pub fn snapshot<'s>(
    store: &SharedStore,
    snapshot: Option<&'s pg_sys::SnapshotData>,
) -> Result<SnapshotView<'s>, Reason> {
    // SAFETY: a plain global of the backend.
    if unsafe { pg_sys::XactIsoLevel } == pg_sys::XACT_SERIALIZABLE as i32 {
        return Err(Reason::Serializable);
    }
    if compat::snapshots_grow_old() {
        // Executing may raise `snapshot too old`.
        return Err(Reason::Snapshot);
    }
    let in_recovery = backend::is_in_recovery();
    // Asked when the snapshot has been taken: what made replay stop telling is not visible to it, or is found here.
    if in_recovery && store.replay().fault().is_some() {
        return Err(tell_fault(store));
    }
    if !restart::has_arrived(store) {
        return Err(Reason::Recovery);
    }
    let usable = |snapshot: &&pg_sys::SnapshotData| {
        snapshot.snapshot_type == pg_sys::SnapshotType::SNAPSHOT_MVCC && snapshot.takenDuringRecovery == in_recovery
    };
    // A snapshot that was exported in recovery loses its ids when the server has lost sight of sub-transactions.
    let complete = |snapshot: &&pg_sys::SnapshotData| {
        !(in_recovery && snapshot.suboverflowed && snapshot.subxcnt == 0 && snapshot.xmin != snapshot.xmax)
    };
    let snapshot = snapshot.filter(usable).filter(complete).ok_or(Reason::Snapshot)?;
    let next = compat::next_full_transaction_id();
    store.versions().ensure_floor(next);
    // In recovery all running ids stand in `subxip`, sub-transactions among them. An id at the top stays there until
    // its end, also when the server has lost sight of sub-transactions (`suboverflowed`).
    let (ids, count) =
        if in_recovery { (snapshot.subxip, snapshot.subxcnt.unsigned_abs()) } else { (snapshot.xip, snapshot.xcnt) };
    let running: &[u32] = if count == 0 {
        &[]
    } else {
        // SAFETY: the server keeps as many ids there, as long as the snapshot.
        unsafe { std::slice::from_raw_parts(ids.cast(), count as usize) }
    };
    Ok(SnapshotView::new(next, snapshot.xmin.into_inner(), snapshot.xmax.into_inner(), running))
}

/// The reason to bypass when replay does not tell of every change. The first to find out tells the log why.
#[cold]
fn tell_fault(store: &SharedStore) -> Reason {
    if let Some(fault) = store.replay().take_untold() {
        error::log_replay_fault(fault);
    }
    Reason::Recovery
}

/// R2. The versions of this database's definitions at this moment.
pub fn definitions(store: &SharedStore) -> Versions {
    let versions = store.versions();
    let ddl = versions.version(versions.ddl(backend::database()));
    let catalogs = match restart::has_arrived(store) {
        true => versions.version(versions.catalogs(backend::database())),
        // The version is that of a later moment, up to which definitions change without moving it.
        false => UNKNOWN_CATALOGS,
    };
    // Which extensions are trusted decides like a definition, and each session may have another list.
    Versions { catalogs, ddl: ddl.wrapping_add(trusted_extensions::fingerprint()) }
}

/// R2. Returns true if everybody who has moved a version that this session can have read by now has sent the
/// invalidations, and moved it for the last time.
///
/// If not, what is found out at this moment may be what was true before the change, and the versions may stay the same
/// until the session hears of the change.
pub fn are_settled() -> bool {
    let Some(store) = shmem::store() else { return true };
    restart::has_arrived(&store) && !store.definers().are_in(store.versions().catalogs(backend::database()))
}

/// What the store holds under a key.
pub enum Stored {
    /// An answer that is still right.
    Valid(Pin),
    /// An answer that is out of date.
    Outdated(Pin),
    /// Nothing of use.
    Nothing,
}

/// R3. The answer under a key for a statement with these cuts. `describes` tells whether an entry's description is that
/// of the statement's columns. Entries that are of no use to anybody are retired.
///
/// # Errors
/// The reason to bypass: a writer that the snapshot does not see may have changed the answer.
#[inline]
pub fn find_entry(
    store: &SharedStore,
    key: CacheKey,
    (cuts, describes): (&Cuts, impl FnOnce(&[u8]) -> bool),
    snapshot: &SnapshotView<'_>,
    terms: StatementTerms,
) -> Result<Stored, Reason> {
    let Some(pin) = store.lookup(key) else { return Ok(Stored::Nothing) };
    // Another plan may have had columns of other types: the planner drops branches by the values of parameters. Behind
    // the columns stand the gaps.
    if !cuts.without_gaps(store.view(&pin).descriptor()).is_some_and(describes) {
        store.unpin(pin);
        return Ok(Stored::Nothing);
    }
    let result = holds(store, &pin, snapshot, terms);
    match result {
        Ok(true) => return Ok(Stored::Valid(pin)),
        Ok(false) if !store.is_current(&pin) => return Ok(Stored::Outdated(pin)),
        _ => store.unpin(pin),
    }
    result.map(|_| Stored::Nothing)
}

/// Returns true if this entry holds under the snapshot, and on these terms.
///
/// # Errors
/// `WriterInProgress`.
fn holds(store: &SharedStore, pin: &Pin, snapshot: &SnapshotView<'_>, terms: StatementTerms) -> Result<bool, Reason> {
    match store.valid_for(pin, snapshot) {
        Validity::Changed => {
            // It stays for those who take it within their `max_stale`, until another one takes its place.
            if !store.keeps_outdated(pin) {
                store.retire(pin);
            }
            return Ok(false);
        }
        Validity::NotVisible => return Err(Reason::WriterInProgress),
        Validity::Valid => {}
    }
    if has_expired(store, pin) {
        if store.retire(pin) {
            store.counters().add(store.stripe(), Counter::Expirations, 1);
        }
        return Ok(false);
    }
    if terms.max_stale_micros().is_some() {
        // The message arrived before the slots were read, so the answer was right then or later, whenever the snapshot
        // was taken.
        store.renew(pin, backend::statement_start());
        store.keep_outdated(pin);
    }
    Ok(is_young_enough(store, pin, terms))
}

/// Returns true if `find_entry` will find that nothing that the entry rests on has changed, and that it is not too old
/// for these terms, as far as that is known before there is a snapshot.
pub fn is_promising(store: &SharedStore, pin: &Pin, terms: StatementTerms) -> bool {
    store.is_current(pin) && !has_expired(store, pin) && is_young_enough(store, pin, terms)
}

fn has_expired(store: &SharedStore, pin: &Pin) -> bool {
    store.view(pin).expires_at() <= backend::statement_start()
}

fn is_young_enough(store: &SharedStore, pin: &Pin, terms: StatementTerms) -> bool {
    let age = backend::statement_start().saturating_sub(store.view(pin).created_at());
    terms.ttl_micros().is_none_or(|ttl| age <= ttl)
}

/// R4. The dependencies of an answer computed now, with the versions that this snapshot sees whole. `scans` are all
/// scans of the plan that computes it, if it reads rows by nothing else: then it may rest on values (R10).
///
/// Whether somebody is changing what they stand for is asked when the snapshot was taken, and before the version of the
/// catalogs is compared with that of the plan. If nobody is, whoever has changed a definition, as the snapshot sees,
/// has moved that version for the last time.
///
/// # Errors
/// The reason to bypass when the snapshot does not see one of them whole, or when one is being redefined.
pub fn dependencies(
    store: &SharedStore,
    relations: &[u32],
    traits: &QueryTraits,
    snapshot: &SnapshotView<'_>,
    scans: Option<&[Scan]>,
) -> Result<Vec<Dependency>, Reason> {
    let (mut dependencies, probed) = dependencies_of_run(store, relations, traits, snapshot, scans)?;
    for relation in probed {
        dependencies.extend(relation.dependencies(store, None, snapshot)?);
    }
    Ok(dependencies)
}

/// As `dependencies`, of an answer whose run is about to begin: that run tells the rest.
///
/// # Errors
/// As `dependencies`.
pub fn dependencies_of_run(
    store: &SharedStore,
    relations: &[u32],
    traits: &QueryTraits,
    snapshot: &SnapshotView<'_>,
    scans: Option<&[Scan]>,
) -> Result<(Vec<Dependency>, Vec<Probed>), Reason> {
    let (versions, database) = (store.versions(), backend::database());
    let in_recovery = backend::is_in_recovery();
    let (mut dependencies, mut probed) = (Vec::with_capacity(relations.len() + 3), Vec::new());
    let enums = traits.rests_on_enums.then(|| versions.enums(database));
    // What queries in functions go by is not in the key.
    let inner = traits.calls_declared.then(|| versions.inner());
    for slot in [versions.ddl(database)].into_iter().chain(enums).chain(inner) {
        let version = versions.seen_whole(slot, snapshot).ok_or(Reason::DdlInProgress)?;
        dependencies.push(Dependency { slot, relation: 0, version });
    }
    for relation in relations {
        let slot = versions.relation(database, *relation);
        if let Some(on_values) = scans.and_then(|scans| dependencies_on_values(store, *relation, scans, snapshot)) {
            let (on_values, left) = on_values;
            dependencies.extend(on_values);
            probed.extend(left);
            continue;
        }
        let version = versions.seen_whole(slot, snapshot).ok_or(Reason::WriterInProgress)?;
        dependencies.push(Dependency { slot, relation: *relation, version });
        if in_recovery && let Some(file) = file_number(*relation)? {
            let rows = versions.relation(database, file);
            // A table that was never rewritten has its OID as number.
            if rows != slot {
                let version = versions.seen_whole(rows, snapshot).ok_or(Reason::WriterInProgress)?;
                dependencies.push(Dependency { slot: rows, relation: *relation, version });
            }
        }
    }
    let definers = store.definers();
    if dependencies.iter().any(|dependency| definers.are_in(dependency.slot)) {
        return Err(Reason::DdlInProgress);
    }
    Ok((dependencies, probed))
}

/// R5. Returns true if the plan still means what its key says. `seen` are the versions by which the key was made.
///
/// To be asked after `dependencies`, which says why. A plan older than the last DDL may be good, too: PostgreSQL says
/// so itself, as far as it follows definitions, once it has heard of that DDL.
pub fn is_plan_current(store: &SharedStore, planned: &Planned, seen: Versions) -> bool {
    let current = definitions(store);
    current.ddl == seen.ddl
        && (current.catalogs == planned.versions.catalogs
            || (planned.versions.catalogs != UNKNOWN_CATALOGS && portal::has_valid_plan()))
}

/// R6. Those of the dependencies whose versions have moved. A slot with the same version has had no publication since.
pub fn have_changed<'d>(store: &SharedStore, dependencies: &'d [Dependency]) -> impl Iterator<Item = &'d Dependency> {
    let versions = store.versions();
    dependencies.iter().filter(move |on| versions.version(on.slot) != on.version)
}

/// R7. Returns true if the snapshot that planning runs under sees all changes of catalogs up to these versions.
pub fn sees_catalogs(store: &SharedStore, versions: Versions) -> bool {
    let slots = store.versions();
    snapshot_of_planning(store).is_some_and(|(_, snapshot)| {
        slots.seen_whole(slots.catalogs(backend::database()), &snapshot) == Some(versions.catalogs)
    })
}

/// The snapshot that planning runs under.
pub fn snapshot_of_planning<'s>(store: &SharedStore) -> Option<(&'s pg_sys::SnapshotData, SnapshotView<'s>)> {
    // SAFETY: plain state of the backend; the active snapshot stays active while a query is planned.
    let data =
        unsafe { if kept!(pg_sys::ActiveSnapshotSet()) { kept!(pg_sys::GetActiveSnapshot()).as_ref() } else { None } }?;
    Some((data, snapshot(store, Some(data)).ok()?))
}
