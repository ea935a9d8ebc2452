//! The queries that functions run which are declared pure: while an answer is computed that calls some, each query that
//! starts below it is looked at. What it reads joins what the answer rests on; one that could not be cached itself
//! refuses the answer. State of this backend, for the run under way; no lock.

use arrow_cache_core::{Dependency, Reason};
use pgrx::pg_sys;

use super::rules::{self, UNKNOWN_CATALOGS};
use crate::pg::attention::{Attended, Matter};
use crate::pg::backend_local::Local;
use crate::pg::query_desc::QueryDesc;
use crate::query::asker::Asker;
use crate::query::{Cacheable, Verdict, environment, plan_marker, relations};
use crate::shmem;

/// Most dependencies that are added to those of one answer.
const MOST: usize = 512;

/// What has been seen so far during the run of a query.
struct Observation {
    /// The snapshot of the query. Valid while it runs.
    snapshot: *const pg_sys::SnapshotData,
    /// What the queries below it rest on, each once.
    dependencies: Vec<Dependency>,
    refusal: Option<Reason>,
    /// The run has returned.
    is_over: bool,
}

static UNDER_WAY: Local<Attended<Option<Observation>>> = Local::new(Attended::new(Matter::Observation, None));

/// A run of a query begins: what starts below it is looked at, until `pause`.
pub fn begin(query: QueryDesc<'_>) {
    let observation = Observation {
        snapshot: query.snapshot().cast_const(),
        dependencies: Vec::new(),
        refusal: None,
        is_over: false,
    };
    UNDER_WAY.with_borrow_mut(|under_way| *under_way = Some(observation));
}

/// What was seen during the run that has returned.
///
/// # Errors
/// Why the answer must not be stored.
pub fn end() -> Result<Vec<Dependency>, Reason> {
    match UNDER_WAY.take() {
        Some(Observation { refusal: None, dependencies, .. }) => Ok(dependencies),
        Some(Observation { refusal: Some(reason), .. }) => Err(reason),
        None => Err(Reason::IncompleteRead),
    }
}

/// The run has returned, perhaps by an error: what starts now is not below it.
pub fn pause() {
    UNDER_WAY.with_borrow_mut(|under_way| {
        if let Some(observed) = under_way {
            observed.is_over = true;
        }
    });
}

/// Returns true if a run is under way whose queries are looked at.
pub fn is_under_way() -> bool {
    UNDER_WAY.with_borrow(|under_way| under_way.as_ref().is_some_and(|observed| !observed.is_over))
}

/// A query is about to be started below the run under way.
#[cold]
#[inline(never)]
pub fn look_at(query: QueryDesc<'_>) {
    // Not borrowed meanwhile: looking may raise.
    let known = UNDER_WAY.with_borrow(|under_way| {
        under_way.as_ref().filter(|observed| observed.refusal.is_none()).map(|observed| observed.snapshot)
    });
    let Some(snapshot) = known else { return };
    // SAFETY: the snapshot of the query whose run is under way.
    let seen = read_by(query, unsafe { snapshot.as_ref() });
    UNDER_WAY.with_borrow_mut(|under_way| {
        let Some(observed) = under_way else { return };
        match seen {
            Err(reason) => observed.refusal = Some(reason),
            Ok(dependencies) => {
                for dependency in dependencies {
                    if !observed.dependencies.contains(&dependency) {
                        observed.dependencies.push(dependency);
                    }
                }
                if observed.dependencies.len() > MOST {
                    observed.refusal = Some(Reason::TooComplex);
                }
            }
        }
    });
}

/// What a query reads, with the versions that its snapshot sees whole.
///
/// # Errors
/// Why no answer must rest on it.
fn read_by(query: QueryDesc<'_>, outer: Option<&pg_sys::SnapshotData>) -> Result<Vec<Dependency>, Reason> {
    let store = shmem::store().ok_or(Reason::NoRoom)?;
    let Cacheable { traits, planned, clock, .. } = match plan_marker::read(query.plan()) {
        Verdict::Cacheable(cacheable) => cacheable,
        Verdict::Bypass(Reason::NotAnalyzed) | Verdict::Unchecked(_) | Verdict::StandsFor(_) => {
            return Err(Reason::OldPlan);
        }
        Verdict::Bypass(reason) => return Err(reason),
    };
    // SAFETY: the extras were just read, into the current memory context.
    let (extras, settings) = unsafe { (traits.extras.relations(), traits.extras.settings()) };
    // Neither values of the clock nor custom settings that only this query asks for are in the key.
    if !clock.is_none() || !settings.is_empty() {
        return Err(Reason::SessionFunction);
    }
    if !same(query.snapshot_data(), outer) {
        return Err(Reason::Snapshot);
    }
    if relations::reads_trusted(query.plan()) {
        return Err(Reason::ForeignTable);
    }
    let relations = relations::of_plan(query.plan(), extras);
    let snapshot = rules::snapshot(&store, query.snapshot_data())?;
    let dependencies = rules::dependencies(&store, &relations, &traits, &snapshot, None)?;
    // Procedural languages keep plans for the session. As another role, or under other settings, the server is not
    // asked to plan anew: see `statement::check_age`.
    let now = Asker::present(store.seed());
    let is_made_otherwise = planned.asker.role != now.role
        || planned.settings.is_some_and(|then| then != environment::settings(store.seed()));
    let has_moved = planned.versions.catalogs == UNKNOWN_CATALOGS
        || planned.versions != rules::definitions(&store)
        || planned.asker != now;
    if has_moved && !is_made_otherwise {
        plan_marker::ask_for_new_plan(query.plan());
    }
    if has_moved || is_made_otherwise { Err(Reason::OldPlan) } else { Ok(dependencies) }
}

/// Returns true if two snapshots show the same rows.
fn same(one: Option<&pg_sys::SnapshotData>, other: Option<&pg_sys::SnapshotData>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return false };
    let running = |snapshot: &pg_sys::SnapshotData| -> Vec<u32> {
        // SAFETY: the server keeps `xcnt` ids in `xip`, as long as the snapshot.
        (0..snapshot.xcnt as usize).map(|place| unsafe { *snapshot.xip.add(place).cast::<u32>() }).collect()
    };
    std::ptr::eq(one, other)
        || (one.xmin == other.xmin
            && one.xmax == other.xmax
            && one.curcid == other.curcid
            && running(one) == running(other))
}
