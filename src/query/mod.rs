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
pub mod ordering;
pub mod parameters;
pub mod plan_marker;
pub mod policy;
pub mod relations;
pub mod terms;
pub mod text;
pub mod types;
pub mod updatable;
mod variation;

use arrow_cache_core::{KeyHasher, Reason};
use eligibility::Meaning;
use pgrx::pg_sys;
use relations::Relations;

/// The verdict on a planned query.
#[derive(Clone, Copy, Debug)]
pub enum Verdict {
    /// Its answer may be kept. `catalog_version` is the version of the database's catalogs under which it was planned.
    Cacheable { meaning: Meaning, catalog_version: u64 },
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
