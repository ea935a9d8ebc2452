//! May the answer of a statement that is executed now be stored, and what will it rest on? As far as can be told before it is
//! executed. Reads shared memory; keeps nothing.

use arrow_cache_core::{CacheKey, Dependency, Reason, SnapshotView};
use pgrx::pg_sys;

use super::definition_versions::{self, UNKNOWN_CATALOGS};
use super::portal;
use crate::invalidation::catalogs::SHARED;
use crate::pg::backend;
use crate::pg::catalog_row::CatalogRow;
use crate::pg::object_ids::HEAP_TABLE_AM_OID;
use crate::query::statement_terms::StatementTerms;
use crate::query::{Planned, Versions};
use crate::settings;
use crate::shmem::SharedStore;

/// The dependencies of an answer computed now, with the versions that this snapshot sees whole.
///
/// Whether somebody is changing what they stand for is asked when the snapshot was taken, and before the version of the catalogs is compared
/// with that of the plan. If nobody is, whoever has changed a definition, as the snapshot sees, has moved that version for the last time.
///
/// # Errors
/// The reason to bypass when the snapshot does not see one of them whole, or when one is being redefined.
pub fn dependencies(
    store: &SharedStore,
    relations: &[u32],
    rests_on_enums: bool,
    snapshot: &SnapshotView<'_>,
) -> Result<Vec<Dependency>, Reason> {
    let versions = store.versions();
    let database = backend::database();
    let in_recovery = backend::is_in_recovery();
    let mut dependencies = Vec::with_capacity(relations.len() + 4);
    let enums = rests_on_enums.then_some((versions.enums(database), Reason::DdlInProgress));
    for (slot, reason) in [
        (versions.ddl(database), Reason::DdlInProgress),
        (versions.ddl(SHARED), Reason::DdlInProgress),
        (versions.wildcard(database), Reason::WriterInProgress),
    ]
    .into_iter()
    .chain(enums)
    {
        let version = versions.seen_whole(slot, snapshot).ok_or(reason)?;
        dependencies.push(Dependency { slot, relation: 0, version });
    }
    for relation in relations {
        let slot = versions.relation(database, *relation);
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
    Ok(dependencies)
}

/// The number of the file by which replay knows a relation; `None` for one that has no rows of its own. A new file comes with a new
/// definition, so this is asked when the version of the definition has been read.
///
/// # Errors
/// Replay does not tell of changes of the relation, or the relation has gone.
fn file_number(relation: u32) -> Result<Option<u32>, Reason> {
    let row = CatalogRow::find(pg_sys::SysCacheIdentifier::RELOID, pg_sys::Oid::from(relation));
    let class = row.as_ref().and_then(CatalogRow::relation).ok_or(Reason::DdlInProgress)?;
    match class.relkind as u8 {
        pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW if class.relam.to_u32() == HEAP_TABLE_AM_OID => {
            let number = class.relfilenode.to_u32();
            if number == 0 { Err(Reason::Recovery) } else { Ok(Some(number)) }
        }
        pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW => Err(Reason::Recovery),
        _ => Ok(None),
    }
}

/// Does the plan still mean what its key says? `seen` are the versions by which the key was made.
///
/// To be asked after `dependencies`, which says why. A plan older than the last DDL may be good, too: PostgreSQL says so itself, as far as it follows
/// definitions, once it has heard of that DDL.
pub fn is_plan_current(store: &SharedStore, planned: &Planned, seen: Versions) -> bool {
    let current = definition_versions::current(store);
    current.ddl == seen.ddl
        && (current.catalogs == planned.versions.catalogs
            || (planned.versions.catalogs != UNKNOWN_CATALOGS && portal::has_valid_plan()))
}

/// Why the answer under this key will not be stored, for other reasons than its plan. Counts a run, unless the statement is `only_asked`
/// about.
pub fn refusal(store: &SharedStore, key: CacheKey, terms: StatementTerms, only_asked: bool) -> Option<Reason> {
    if !settings::populate() {
        return Some(Reason::PopulateOff);
    }
    let runs = terms.min_runs();
    if runs > 1 && !only_asked && store.count_run(key) < runs {
        return Some(Reason::TooFewRuns);
    }
    if terms.insisted {
        return None;
    }
    if store.was_too_quick(key) && !settings::debug_serve_fills() && !settings::min_execution_time().is_zero() {
        return Some(Reason::TooQuick);
    }
    if only_asked {
        return None;
    }
    store.skips_barren(key, backend::now()).then_some(Reason::NeverHit)
}
