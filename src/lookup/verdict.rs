//! The verdict on a query: is it eligible, first by its tree, then by the relations of its plan? It is attached to the
//! plan, and what holds for all queries of the form is remembered (`forms`). Keeps but one version itself.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::call::Call;
use super::forms::{self, Finding};
use super::rules::{self, UNKNOWN_CATALOGS};
use super::{portal, price};
use crate::pg::tree::Tree;
use crate::query::asker::Asker;
use crate::query::eligibility::QueryTraits;
use crate::query::hashes::{FormHash, FormId};
use crate::query::identity::Identified;
use crate::query::opened_relations::opened_by;
use crate::query::relations;
use crate::query::{Cacheable, Planned, Verdict, Versions, checking, environment, plan_marker, planner_input};
use crate::session;
use crate::shmem::SharedStore;

/// What was found out about an eligible query before the planner took it apart.
#[derive(Clone, Copy)]
pub struct Eligible {
    traits: QueryTraits,
    /// What it asks.
    identified: Identified,
    /// The traits of its form were known before.
    known: bool,
    planned: Planned,
    /// The snapshot that planning runs under sees all changes of catalogs up to that version.
    sees_catalogs: bool,
    /// How many messages about changes of definitions the backend had received by then.
    messages: u64,
}

impl Eligible {
    /// What the answer depends on.
    pub fn traits(&self) -> &QueryTraits {
        &self.traits
    }

    /// The form of the query.
    pub fn form(&self) -> FormId {
        self.identified.form.id()
    }

    /// The definitions that were current before it was checked.
    pub fn versions(&self) -> Versions {
        self.planned.versions
    }
}

/// Checks the tree of a query, unless its `traits` are known. `versions` were read before.
///
/// # Errors
/// The reason to refuse the query.
pub fn check(
    call: &Call<'_>,
    store: &SharedStore,
    identified: Identified,
    traits: Option<QueryTraits>,
    versions: Versions,
    is_one_shot: bool,
) -> Result<Eligible, Reason> {
    // SAFETY: called inside a transaction.
    unsafe { kept!(pg_sys::AcceptInvalidationMessages()) };
    let Identified { form, .. } = identified;
    let known = traits.is_some();
    let traits = match traits {
        Some(traits) => traits,
        None => find_out(call, form, versions)?,
    };
    let traits = QueryTraits { has_bodies: call.has_bodies(), ..traits };
    if traits.calls_declared {
        session::note_observed();
    }
    if identified.clock.count() != traits.clocks {
        // The walk that identifies the query has seen another tree than the check.
        return Err(Reason::TooComplex);
    }
    Ok(Eligible {
        traits,
        identified,
        known,
        sees_catalogs: rules::sees_catalogs(store, versions),
        planned: Planned {
            versions,
            plan: session::next_plan_number(),
            asker: Asker::present(store.seed()),
            settings: (!is_one_shot).then(|| environment::settings(store.seed())),
        },
        messages: call.messages_before_bodies().unwrap_or_else(portal::messages_received),
    })
}

/// Checks a query whose form is not known. A refusal is remembered.
///
/// # Errors
/// The reason to refuse the query.
fn find_out(call: &Call<'_>, form: FormHash, versions: Versions) -> Result<QueryTraits, Reason> {
    let refused = |reason: &Reason| forms::remember(form, versions, Finding::Refused(*reason));
    checking::check(call.query()).traits.inspect_err(refused)
}

/// Attaches a refusal to a finished plan.
///
/// # Safety
/// `plan` must be a plan just made, in the current memory context.
pub unsafe fn refuse(plan: *mut pg_sys::PlannedStmt, reason: Reason) {
    // SAFETY: the caller promises the same.
    unsafe { plan_marker::attach(plan, Verdict::Bypass(reason)) };
}

/// Notes on a finished plan that its query was not checked.
///
/// # Safety
/// As `refuse`.
pub unsafe fn leave_unchecked(plan: *mut pg_sys::PlannedStmt, form: Option<FormId>) {
    // SAFETY: the caller promises the same.
    unsafe { plan_marker::attach(plan, Verdict::Unchecked(form)) };
}

/// Attaches the verdict to the finished plan of an eligible query.
///
/// # Safety
/// `plan` must be a plan just made for that query, in the current memory context.
pub unsafe fn after_planning(plan: *mut pg_sys::PlannedStmt, eligible: Eligible) {
    // SAFETY: the caller promises that the plan was just made, so it is valid. It is not read any more when the verdict
    // is attached.
    unsafe {
        let Some(made) = Tree::enter(plan) else { return };
        price::go_on();
        let verdict = of_plan(made, eligible);
        plan_marker::attach(plan, verdict);
        price::pause();
    }
}

/// The verdict on the plan of an eligible query. Planning has locked the plan's relations.
pub fn of_plan(plan: Tree<'_, pg_sys::PlannedStmt>, eligible: Eligible) -> Verdict {
    let Eligible { traits, identified: Identified { form, tree, clock }, planned, .. } = eligible;
    // A message that arrives while the plan is made finds no plan that it could invalidate: PostgreSQL loses it.
    let unsettled = portal::messages_received() != eligible.messages;
    let is_partitioned = relations::check(plan).map_err(|refusal| refusal.reason);
    if !eligible.known && !unsettled {
        remember(form, &eligible);
    }
    let checked = is_partitioned.and_then(|is_partitioned| {
        let opened = opened_by(plan);
        planner_input::check(plan, &opened).map_err(|refusal| refusal.reason)?;
        if traits.calls_declared && (opened.prunes_at_start || opened.is_parallel) {
            // Functions that run before the first row, or in another process, are not seen.
            return Err(Reason::TooComplex);
        }
        // The plan may outlive a transaction that changes definitions, and its rollback.
        rules::check_own_writes(&[]).map(|()| is_partitioned)
    });
    let form = form.id();
    match checked {
        // Partitions are found by snapshot (DETACH CONCURRENTLY): under an old one, the plan may read partitions
        // that a newer version of the catalogs no longer has.
        Ok(is_partitioned) if unsettled || (is_partitioned && !eligible.sees_catalogs) => {
            let versions = Versions { catalogs: UNKNOWN_CATALOGS, ..planned.versions };
            let planned = Planned { versions, ..planned };
            Verdict::Cacheable(Cacheable { traits, tree, form, planned, clock })
        }
        Ok(_) => Verdict::Cacheable(Cacheable { traits, tree, form, planned, clock }),
        Err(reason) => Verdict::Bypass(reason),
    }
}

/// Remembers what holds for all queries of a form. Which relations their plans read is none of it: constants decide on
/// that. Extras are kept in memory that ends with the plan, so forms that have some are checked each time.
fn remember(form: FormHash, eligible: &Eligible) {
    let Eligible { traits, planned, .. } = *eligible;
    if traits.extras.is_none() {
        forms::remember(form, planned.versions, Finding::Eligible(traits));
    }
}
