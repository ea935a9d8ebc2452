//! The verdict on a planned query, and what was current when it was planned. Plain values.

use std::ffi::c_void;

use arrow_cache_core::Reason;

use super::asker::Asker;
use super::clock::ClockTrees;
use super::eligibility::QueryTraits;
use super::hashes::{FormId, SettingsHash, TreeHash};

/// Versions of the database's definitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Versions {
    /// Of all definitions.
    pub catalogs: u64,
    /// Of those that no relation stands for. PostgreSQL does not replan for all of them.
    pub ddl: u64,
}

/// The settings under which a plan is made, or runs, and for whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Under {
    pub settings: SettingsHash,
    pub asker: Asker,
}

/// What was current when a query was about to be planned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Planned {
    /// The definitions.
    pub versions: Versions,
    /// Number of the plan, which no other plan has.
    pub plan: u64,
    /// For whom it was planned. The planner computes and inlines what this role may execute.
    pub asker: Asker,
    /// Under which settings the planner computed what can be. `None` for a plan that is made for one execution, which
    /// runs under the same.
    pub settings: Option<SettingsHash>,
}

/// A query whose answer may be kept.
#[derive(Clone, Copy, Debug)]
pub struct Cacheable {
    /// What its answer depends on.
    pub traits: QueryTraits,
    /// What name resolution made of its text.
    pub tree: TreeHash,
    /// Its form.
    pub form: FormId,
    /// What was current when it was planned.
    pub planned: Planned,
    /// Its clock expressions.
    pub clock: ClockTrees,
}

/// The verdict on a planned query.
#[derive(Clone, Copy, Debug)]
pub enum Verdict {
    /// Its answer may be kept.
    Cacheable(Cacheable),
    /// Its answer may not be kept.
    Bypass(Reason),
    /// Nobody has asked yet whether its answer may be kept: queries of this form are too quick for that, or the cache
    /// is off.
    Unchecked(Option<FormId>),
    /// It was not planned: the plan stands for a stored answer. Whoever made it knows what this points to.
    StandsFor(*mut c_void),
}
