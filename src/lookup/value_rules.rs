//! R10: the values of columns that an answer rests on, in the place of a relation
//! (docs/architecture/exactness-values.md). Asked by `rules`, and when the last row of a run has been read.
//!
//! Reads shared memory; keeps nothing.

use std::iter;

use arrow_cache_core::{
    Dependency, EACH_ROW, Pin, Reason, RoomyVec, SnapshotView, TrackedColumns, Wish, bits_of, quietly,
};
use pgrx::pg_sys;

use crate::invalidation::known_as::rows_of;
use crate::pg::backend;
use crate::pg::key_column::is_primary_key;
use crate::query::asked_values::{Probe, Scan, missing_column, missing_pair, values_of};
use crate::query::unread_columns::has_row_security;
use crate::shmem::SharedStore;

/// A relation of which a plan reads rows with certain values, some of which only its run knows. The answer rests on
/// these as well, or on the relation.
pub struct Probed {
    /// The relation.
    pub relation: u32,
    rows: u32,
    /// The keys that tell the values.
    pub probes: Vec<Probe>,
    /// The columns that the answer reads, by their bits.
    reads: u64,
    tracked: TrackedColumns,
    /// The relation itself, if the snapshot sees it whole.
    whole: Option<Dependency>,
}

impl Probed {
    /// R10. The dependencies that are left to tell when the last row has been read: `values` are those by which rows
    /// were read, each with its column, `None` if they are not known.
    ///
    /// # Errors
    /// `WriterInProgress`: the answer can rest on neither.
    pub fn dependencies(
        self,
        store: &SharedStore,
        values: Option<&[(i16, u64)]>,
        snapshot: &SnapshotView<'_>,
    ) -> Result<Vec<Dependency>, Reason> {
        if let Some(values) = values
            && let Some(on_values) =
                of_values(store, (self.relation, self.rows), (values, &self.tracked, self.reads), snapshot)
        {
            store.registry().note_use(backend::database(), self.rows, backend::now());
            return Ok(on_values);
        }
        Ok(vec![self.whole.ok_or(Reason::WriterInProgress)?])
    }
}

/// The dependencies on the rows of a relation that have one of these values, each with its column, or one that is not
/// known; `None` if the snapshot does not see all of them whole. The columns are tracked, the first one beside the
/// coarse slot. The answer `reads` these columns, by their bits.
fn of_values(
    store: &SharedStore,
    (relation, rows): (u32, u32),
    (values, tracked, reads): (&[(i16, u64)], &TrackedColumns, u64),
    snapshot: &SnapshotView<'_>,
) -> Option<Vec<Dependency>> {
    let (versions, database) = (store.versions(), backend::database());
    let is_asked = |column: &i16| values.iter().any(|(own, _)| own == column);
    let unknown = tracked.iter().skip(1).filter(is_asked).map(|column| versions.unknown(database, rows, column));
    let of_values = values.iter().flat_map(|&(column, hash)| {
        let quiet = tracked.quiet.among(reads & !bits_of(column)).map(move |place| quietly(hash, place));
        iter::once(hash).chain(quiet).map(move |hash| versions.value(database, rows, column, hash))
    });
    let slots = unknown.chain(of_values);
    slots.map(|slot| Some(Dependency { slot, relation, version: versions.seen_whole(slot, snapshot)? })).collect()
}

/// The relations of which an entry rests on values that were changed, if nothing else has outdated it.
pub fn outdated_values(store: &SharedStore, pin: &Pin) -> Vec<u32> {
    let (versions, mut relations) = (store.versions(), Vec::new());
    let dependencies = store.view(pin).dependencies();
    for changed in dependencies.iter().filter(|on| versions.version(on.slot) != on.version) {
        if !versions.is_of_value(changed.slot) || relations.add(changed.relation).is_err() {
            return Vec::new();
        }
    }
    relations
}

/// R10. The dependencies that stand in the place of a relation if the plan reads only rows with certain values of it,
/// and what its run has to tell besides. `None` if it does not, or its columns are not tracked, or the snapshot does
/// not see all of them whole: the answer may still rest on the relation.
pub fn dependencies_on_values(
    store: &SharedStore,
    relation: u32,
    scans: &[Scan],
    snapshot: &SnapshotView<'_>,
) -> Option<(Vec<Dependency>, Option<Probed>)> {
    let (versions, registry, database) = (store.versions(), store.registry(), backend::database());
    registry.columns_of(database, rows_of(relation)?)?;
    let seen = |slot| Some(Dependency { slot, relation, version: versions.seen_whole(slot, snapshot)? });
    let definition = seen(versions.relation(database, relation));
    let mut dependencies = vec![seen(versions.coarse(database, relation))?];
    // A new file comes with a new definition, whose versions were read.
    let rows = rows_of(relation)?;
    if rows != relation {
        dependencies = vec![definition?, seen(versions.coarse(database, rows))?];
    }
    // Asked when the version of the coarse slot was read: a relation that is taken out after this moves it (R11).
    let tracked = registry.settled_columns_of(database, rows)?;
    let reads = !unread_of(scans, relation);
    // Without conditions it gains nothing if it reads all that is quiet.
    let gains = tracked.quiet.bits() & !reads != 0;
    let mut asked =
        values_of(scans, relation, |column| tracked.place_of(column).filter(|_| gains || column != EACH_ROW))?;
    // What is quiet and chooses no rows of a LIMIT concerns the answer in those that it has.
    let shown = rows_of_limit(scans, relation, |column| tracked.has(column))
        .filter(|(_, chosen_by)| asked.probes.is_empty() && tracked.quiet.bits() & reads & !chosen_by != 0);
    let chosen_by = shown.map_or(u64::MAX, |(_, chosen_by)| chosen_by);
    asked.probes.extend(shown.map(|(probe, _)| probe));
    dependencies.extend(of_values(store, (relation, rows), (&asked.values, &tracked, reads & chosen_by), snapshot)?);
    if asked.probes.is_empty() {
        registry.note_use(database, rows, backend::now());
        return Some((dependencies, None));
    }
    let whole = seen(versions.relation(database, relation)).filter(|whole| !store.definers().are_in(whole.slot));
    Some((dependencies, Some(Probed { relation, rows, probes: asked.probes, reads, tracked, whole })))
}

/// The columns of a relation that these scans of it do not read, by their bits.
fn unread_of(scans: &[Scan], relation: u32) -> u64 {
    let unread = scans.iter().find(|scan| scan.relation == relation).map_or(0, |scan| scan.unread);
    if unread == 0 || has_row_security(relation) { 0 } else { unread }
}

/// What tells which rows an answer with a LIMIT has: the primary key, if it is a column that `is_told`. And the columns
/// by which the rows are chosen, those that policies of row security read included.
fn rows_of_limit(scans: &[Scan], relation: u32, is_told: impl Fn(i16) -> bool) -> Option<(Probe, u64)> {
    let scan = scans.iter().find(|scan| scan.relation == relation)?;
    let is_key = |column| is_told(column) && is_primary_key(pg_sys::Oid::from(relation), column);
    scan.told_by(is_key)
}

/// The columns that would have to be tracked so that an answer over these scans rested on values of more relations, and
/// the pairs of columns so that it rested on better values of those by whose values it was `outdated` before.
pub fn wishes(store: &SharedStore, relations: &[u32], scans: &[Scan], outdated: &[u32]) -> Vec<Wish> {
    let (registry, database) = (store.registry(), backend::database());
    let missing = |relation: &u32| {
        let tracked = registry.columns_of(database, *relation).unwrap_or_default();
        let column = missing_column(scans, *relation, |column| tracked.place_of(column)).or_else(|| {
            let is_key = |column| is_primary_key(pg_sys::Oid::from(*relation), column);
            outdated.contains(relation).then_some(())?;
            let shown = rows_of_limit(scans, *relation, |_| true).map(|(probe, _)| probe.column);
            shown
                .filter(|key| !tracked.has(*key))
                .or_else(|| missing_pair(scans, *relation, |column| tracked.place_of(column), is_key))
        })?;
        let wish = Wish { database, relation: *relation, column, set: 0 };
        (column != EACH_ROW || unread_of(scans, *relation) != 0).then_some(wish)
    };
    relations.iter().filter_map(missing).collect()
}
