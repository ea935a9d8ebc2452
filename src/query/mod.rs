//! What a statement asks: may its answer be kept at all (`eligibility`), and what identifies the
//! question (`fingerprint`). Judged once, when the statement is planned; the verdict travels
//! inside the plan (`plan_marker`), so that prepared statements carry it along.
//!
//! Nothing here knows how results are stored.

pub mod eligibility;
pub mod environment;
pub mod extras;
pub mod fingerprint;
mod functions;
mod names;
pub mod ordering;
pub mod parameters;
pub mod plan_marker;
pub mod policy;
pub mod relations;
pub mod scans;
pub mod terms;
pub mod text;
pub mod types;
pub mod updatable;
mod variation;

use arrow_cache_core::{KeyHasher, Reason};
use eligibility::Meaning;
use pgrx::pg_sys;
use relations::Relations;

/// Versions of the database's definitions that were current when a query was about to be planned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Planned {
    /// Of all definitions.
    pub catalogs: u64,
    /// Of those that no relation stands for. PostgreSQL does not replan for all of them.
    pub ddl: u64,
    /// Number of the plan, which no other plan has.
    pub plan: u64,
}

/// The verdict on a planned query.
#[derive(Clone, Copy, Debug)]
pub enum Verdict {
    /// Its answer may be kept.
    Cacheable { meaning: Meaning, planned: Planned },
    /// Its answer may not be kept.
    Bypass(Reason),
}

/// Judges a rewritten query before the planner takes it apart.
///
/// # Safety
/// `query` must be a valid rewritten query tree.
pub unsafe fn judge(query: *mut pg_sys::Query, hasher: impl FnOnce() -> KeyHasher) -> Result<Meaning, Reason> {
    // SAFETY: as the caller promises.
    unsafe { eligibility::judge_tree(query, hasher) }
}

/// Judges the relations that a finished plan reads, partitions and children included.
///
/// # Safety
/// `plan` must be a valid plan whose relations this transaction has locked.
pub unsafe fn judge_relations(plan: *mut pg_sys::PlannedStmt) -> Result<Relations, Reason> {
    // SAFETY: as the caller promises.
    unsafe { relations::judge(plan) }.map_err(|refusal| refusal.reason)
}
