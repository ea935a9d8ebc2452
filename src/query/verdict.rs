//! The verdict on a planned query, and what was current when it was planned. Plain values.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::clock::ClockTrees;
use super::eligibility::QueryTraits;
use super::hashes::{FactsHash, FormId, SettingsHash, TreeHash};

/// Versions of the database's definitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Versions {
    /// Of all definitions.
    pub catalogs: u64,
    /// Of those that no relation stands for. PostgreSQL does not replan for all of them.
    pub ddl: u64,
}

/// The settings under which a plan is made, or runs, and the role.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Under {
    pub settings: SettingsHash,
    pub role: pg_sys::Oid,
}

/// What was current when a query was about to be planned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Planned {
    /// The definitions.
    pub versions: Versions,
    /// Number of the plan, which no other plan has.
    pub plan: u64,
    /// Under what the planner computed and inlined what can be. `None` for a plan that is made for one execution, which
    /// runs under the same.
    pub under: Option<Under>,
}

/// The verdict on a planned query.
#[derive(Clone, Copy, Debug)]
pub enum Verdict {
    /// Its answer may be kept. `tree` stands for what name resolution made of its text, `form` for its form, `facts` for those of its plan (`plan_facts`), `clock`
    /// for its clock expressions.
    Cacheable {
        traits: QueryTraits,
        tree: TreeHash,
        form: FormId,
        facts: FactsHash,
        planned: Planned,
        clock: ClockTrees,
    },
    /// Its answer may not be kept.
    Bypass(Reason),
    /// Nobody has asked yet whether its answer may be kept: queries of this form are too quick for that, or the cache
    /// is off.
    Unchecked(Option<FormId>),
}

/// The verdict that a plan carries, as it is read back.
#[derive(Clone, Copy, Debug)]
pub enum Marked {
    /// As `Verdict::Cacheable`; the clock expressions are read where they are needed.
    Cacheable {
        traits: QueryTraits,
        tree: TreeHash,
        form: FormId,
        facts: FactsHash,
        planned: Planned,
        asks_for_time: bool,
    },
    /// Its answer may not be kept.
    Bypass(Reason),
    /// As `Verdict::Unchecked`.
    Unchecked(Option<FormId>),
}
