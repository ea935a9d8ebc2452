//! Parts of an answer, which no client asks for by themselves (`fragments`): is one stored, and what does it take to
//! store one? By the rules that hold for answers (`find`): a part is an answer of its own. Reads shared memory; keeps
//! nothing.

use std::rc::Rc;

use arrow_cache_core::versions::zones::Zones;
use arrow_cache_core::{CacheKey, Dependency, Pin, Reason, Wish};
use pgrx::pg_sys;

use super::call::Call;
use super::find::scans_of_answer;
use super::forms::{self, Finding};
use super::held_claims::Lead;
use super::outcome::{Guarantees, Miss};
use super::rules::{self, StartedUnder, Stored, UNKNOWN_CATALOGS};
use super::verdict::{self, Eligible};
use super::{admission, portal, value_rules};
use crate::arrow::column::{Column, are_described};
use crate::invalidation::known_as::rows_of;
use crate::invalidation::own_writes;
use crate::pg::compat::unchecked_plan;
use crate::pg::tree::{Tree, child};
use crate::pg::{allocator, backend, server};
use crate::query::asked_values::{Condition, Scan, Values};
use crate::query::clock::Cuts;
use crate::query::eligibility::QueryTraits;
use crate::query::hashes::EnvironmentHash;
use crate::query::statement_terms::StatementTerms;
use crate::query::{Cacheable, Under, Verdict, Versions, environment, identity, relations};
use crate::settings;
use crate::shmem::{self, SharedStore};

/// What a part is stored as.
#[derive(Clone, Copy)]
pub struct PartKey {
    /// The key of its rows.
    pub key: CacheKey,
    /// The leaf that they come from, or the table.
    pub relation: pg_sys::Oid,
    /// The zones of the table that they come from.
    pub zones: Option<Zones>,
}

impl PartKey {
    /// What the rows come from, as the text of the entry.
    fn text(&self) -> String {
        let of_relation = format!("part of relation {}", self.relation.to_u32());
        match self.zones.map(Zones::blocks) {
            Some(blocks) => format!("{of_relation}: blocks {} to {}", blocks.start, blocks.end.saturating_sub(1)),
            None => of_relation,
        }
    }
}

/// Returns true if answers of such queries may be combined of parts. The time may stand in bounds, which are computed
/// when the query is planned. What they rest on besides the rows of relations is left to whole answers.
pub fn may_have_parts(traits: &QueryTraits) -> bool {
    !traits.resolves_names() && traits.extras.is_none() && !traits.trusts
}

/// Under what a plan was made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MadeUnder {
    /// The definitions that were current.
    pub versions: Versions,
    /// What the planner went by.
    pub under: Under,
}

impl MadeUnder {
    /// Under what a plan is made now, by definitions that are no older than `versions`.
    pub fn now(store: &SharedStore, versions: Versions) -> Self {
        Self { versions, under: environment::under(store.seed()) }
    }
}

/// The environment in which the parts of a plan are looked up now. `None` if none may be looked up or stored: the cache
/// is off, the transaction has an id, or it is not sure that a plan that was made now would be the same.
pub fn environment(store: &SharedStore, made: MadeUnder) -> Option<EnvironmentHash> {
    let current = rules::definitions(store);
    if !settings::enabled()
        || !settings::enable_fragments()
        || allocator::is_short()
        || own_writes::has_transaction_id()
        || MadeUnder::now(store, made.versions) != made
        || current.ddl != made.versions.ddl
        || (current.catalogs != made.versions.catalogs && !portal::has_valid_plan())
    {
        return None;
    }
    environment::hash(store.seed(), &[]).ok()
}

/// Returns true if these, of which no plan is newer, are still the definitions that the plans just made rest on.
///
/// Whoever has changed some is counted until the versions have moved for the last time, so this is asked in that order.
pub fn are_current(store: &SharedStore, versions: Versions) -> bool {
    rules::are_settled() && rules::definitions(store) == versions
}

/// The environment of now.
pub fn environment_now() -> Option<EnvironmentHash> {
    environment::hash(shmem::store()?.seed(), &[]).ok()
}

/// What is stored under the key of a part.
pub enum StoredPart {
    /// It holds.
    Valid(Pin),
    /// It does not hold under the snapshot.
    Outdated,
    /// Nothing, or it cannot be told.
    Nothing,
}

impl StoredPart {
    /// The part, if it holds.
    pub fn valid(self) -> Option<Pin> {
        if let Self::Valid(pin) = self { Some(pin) } else { None }
    }
}

/// What is stored under this key, by the snapshot.
pub fn stored_part(
    store: &SharedStore,
    key: CacheKey,
    columns: &[Column],
    snapshot: Option<&pg_sys::SnapshotData>,
) -> StoredPart {
    let Ok(snapshot) = rules::snapshot(store, snapshot) else { return StoredPart::Nothing };
    let question = (&Cuts::NONE, |own: &[u8]| are_described(columns, own));
    match rules::find_entry(store, key, question, &snapshot, StatementTerms::INSISTED) {
        Ok(Stored::Valid(pin)) => StoredPart::Valid(pin),
        Ok(Stored::Outdated(pin)) => {
            store.unpin(pin);
            StoredPart::Outdated
        }
        Ok(Stored::Nothing) | Err(_) => StoredPart::Nothing,
    }
}

/// What there is to know of the query of a part before it is planned, which changes it. `is_one_shot`: the plan is made
/// for one execution, now.
///
/// # Errors
/// The reason not to store the part.
pub fn before_planning(store: &SharedStore, call: &Call<'_>, is_one_shot: bool) -> Result<Eligible, Reason> {
    let identity = identity::of(call.query().as_node(), store.seed())?.under_present_names(store.seed())?;
    let versions = rules::definitions(store);
    let traits = match forms::finding(identity.form, versions) {
        Some(Finding::Refused(reason)) => return Err(reason),
        Some(Finding::Eligible(traits)) => Some(traits),
        None => None,
    };
    let identified = identity.into_identified()?;
    verdict::check(call, store, identified, traits, versions, is_one_shot)
}

/// A part that is about to be run.
pub struct PlannedPart<'p> {
    /// Its plan.
    pub plan: Tree<'p, pg_sys::PlannedStmt>,
    /// The snapshot that it runs under.
    pub snapshot: Option<&'p pg_sys::SnapshotData>,
    /// Its columns.
    pub columns: &'p [Column],
    /// What it is stored as.
    pub key: PartKey,
    /// The environment that is in the key.
    pub environment: EnvironmentHash,
    /// The definitions by which it was looked up.
    pub versions: Versions,
}

/// What is needed to store a part, after its plan was made.
///
/// # Errors
/// The reason not to store it.
pub fn miss(store: &SharedStore, eligible: Eligible, part: &PlannedPart<'_>) -> Result<Box<Miss>, Reason> {
    let key = part.key.key;
    let plan = part.plan;
    if environment::hash(store.seed(), &[]) != Ok(part.environment) {
        return Err(Reason::SettingsChanged);
    }
    if own_writes::has_transaction_id() {
        return Err(Reason::OwnWrites);
    }
    let (dependencies, wishes) = dependencies(store, eligible, part)?;
    let terms = StatementTerms::INSISTED;
    if let Some(reason) = admission::refusal(store, key, terms, false) {
        return Err(reason);
    }
    Ok(Box::new(Miss {
        key,
        text: part.key.text().into_bytes(),
        columns: part.columns.into(),
        gaps: Vec::new(),
        statement: None,
        plan_cost: child!(plan.planTree).map_or(0.0, |top| top.total_cost),
        guarantees: Guarantees {
            wishes,
            dependencies,
            probed: Vec::new(),
            started: StartedUnder::in_environment(part.environment, eligible.traits()),
            may_be_unread: false,
            observes: false,
            known_good: backend::statement_start(),
            catalogs: UNKNOWN_CATALOGS,
            stale_bound: None,
        },
        terms,
        refused: None,
        lead: Rc::new(Lead::default()),
    }))
}

/// What a part rests on, with the versions that its snapshot sees whole; and columns that would have it rest on less.
///
/// # Errors
/// The reason not to store it.
fn dependencies(
    store: &SharedStore,
    eligible: Eligible,
    part: &PlannedPart<'_>,
) -> Result<(Vec<Dependency>, Vec<Wish>), Reason> {
    let Verdict::Cacheable(Cacheable { traits, planned, .. }) = verdict::of_plan(part.plan, eligible) else {
        return Err(Reason::UnsupportedRelation);
    };
    if !may_have_parts(&traits) || traits.clocks != 0 {
        return Err(Reason::OwnWrites);
    }
    // The rows of a foreign table are not those of a snapshot.
    if relations::reads_trusted(part.plan) {
        return Err(Reason::ForeignTable);
    }
    let seen = rules::definitions(store);
    let snapshot = rules::snapshot(store, part.snapshot)?;
    let relations = relations::of_plan(part.plan, Vec::new());
    let mut scans = scans_of_answer(part.plan, None, &traits, &Cuts::NONE);
    if let Some(zones) = part.key.zones {
        // The part reads the table once, and nothing of it but these zones.
        let others = scans.into_iter().flatten().filter(|scan| scan.relation != part.key.relation.to_u32());
        scans = Some(others.chain([scan_of(part.key.relation, zones)]).collect());
    }
    let dependencies = rules::dependencies(store, &relations, &traits, &snapshot, scans.as_deref())?;
    let rows = rows_of(part.key.relation.to_u32()).ok_or(Reason::UnsupportedRelation)?;
    let coarse = store.versions().coarse(backend::database(), rows);
    if part.key.zones.is_some() && dependencies.iter().all(|dependency| dependency.slot != coarse) {
        // It would not outlive changes of other zones.
        return Err(Reason::WriterInProgress);
    }
    let wishes = scans.map_or_else(Vec::new, |scans| value_rules::wishes(store, &relations, &scans, &[]));
    // When the part was looked up, its plan was good for these definitions.
    if rules::definitions(store) != seen || seen != planned.versions || seen != part.versions {
        return Err(Reason::DdlInProgress);
    }
    Ok((dependencies, wishes))
}

/// The scan of a table that gives the rows of some of its zones. Which columns it reads does not matter: no change of a
/// zone is quiet.
fn scan_of(relation: pg_sys::Oid, zones: Zones) -> Scan {
    let conditions = vec![Condition { column: zones.column, values: Values::Known(zones.numbers().collect()) }];
    Scan { relation: relation.to_u32(), conditions, unread: u64::MAX, limited: None }
}

/// Plans the query of a part as the server does, apart from the hooks: other libraries have seen the statement that it
/// is part of. Raises what planning raises.
pub fn plan(call: &Call<'_>) -> *mut pg_sys::PlannedStmt {
    let (query, text, options, params) = call.arguments();
    // SAFETY: a query of our own that nobody has planned yet. It asks for no permissions.
    unsafe {
        let plan = kept!(server::standard_planner(query, text, options, params));
        unchecked_plan(plan)
    }
}
