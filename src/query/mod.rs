//! What a statement asks: may its answer be kept at all (`eligibility`), and what identifies the
//! question (`identity`, `key`). Judged once, when the statement is planned; the verdict travels
//! inside the plan (`plan_marker`), so that prepared statements carry it along.
//!
//! Nothing here knows how results are stored.

mod catalog_row;
pub mod eligibility;
pub mod environment;
pub mod hashes;
pub mod hint;
pub mod identity;
pub mod key;
pub mod opened_relations;
pub mod ordering;
pub mod parameters;
pub mod plan_facts;
pub mod plan_marker;
mod planner_input;
pub mod relation_policy;
pub mod relations;
mod repeatability;
pub mod row_types_and_settings;
pub mod statement_text;
pub mod types;
pub mod updatable_cursor;
mod volatility;

use arrow_cache_core::Reason;
use eligibility::Meaning;
use hashes::{FactsHash, FormId, SettingsHash, TreeHash};
use opened_relations::Opened;
use pgrx::pg_sys;
use relations::{RelationRefusal, Relations};

/// Versions of the database's definitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Versions {
    /// Of all definitions.
    pub catalogs: u64,
    /// Of those that no relation stands for. PostgreSQL does not replan for all of them.
    pub ddl: u64,
}

/// What was current when a query was about to be planned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Planned {
    /// The definitions.
    pub versions: Versions,
    /// Number of the plan, which no other plan has.
    pub plan: u64,
    /// The settings under which the planner computed in advance what can be (`environment::settings`). `None` for a plan that is
    /// made for one execution, which runs under the same.
    pub settings: Option<SettingsHash>,
    /// The plan was made for the values of its parameters, and for no others.
    pub for_values: bool,
}

/// The verdict on a planned query.
#[derive(Clone, Copy, Debug)]
pub enum Verdict {
    /// Its answer may be kept. `tree` stands for what name resolution made of its text, `form` for its form, `facts` for those of its plan (`plan_facts`).
    Cacheable { meaning: Meaning, tree: TreeHash, form: FormId, facts: FactsHash, planned: Planned },
    /// Its answer may not be kept.
    Bypass(Reason),
}

/// Judges a rewritten query before the planner takes it apart.
///
/// # Safety
/// `query` must be a valid rewritten query tree.
pub unsafe fn judge(query: *mut pg_sys::Query) -> Result<Meaning, Reason> {
    // SAFETY: as the caller promises.
    unsafe { eligibility::judge_tree(query) }
}

/// Judges the relations that a finished plan reads, partitions and children included.
///
/// # Errors
/// The first relation found that forbids caching.
///
/// # Safety
/// `plan` must be a valid plan whose relations this transaction has locked.
pub unsafe fn judge_relations(plan: *mut pg_sys::PlannedStmt) -> Result<Relations, RelationRefusal> {
    // SAFETY: as the caller promises.
    unsafe { relations::judge(plan) }
}

/// Judges what the planner may have taken from the definitions of these relations; `opened` is what the plan's executor opens, `unites`
/// says that the query has set operations, `ddl` is the version under which it was made. Depends on settings and on the choices of the planner.
///
/// # Errors
/// As `judge_relations`.
///
/// # Safety
/// As `judge_relations`.
pub unsafe fn judge_planner_input(
    plan: *const pg_sys::PlannedStmt,
    opened: &Opened,
    unites: bool,
    ddl: u64,
) -> Result<(), RelationRefusal> {
    // SAFETY: as the caller promises.
    unsafe { planner_input::judge(plan, relations::read_by(plan), opened, unites, ddl) }
        .map_err(|(reason, relation)| RelationRefusal { reason, relation })
}
