//! What a question asks: all that can be said of it before the store is asked. What can be asked only when the
//! statement starts is asked here: snapshot, isolation, own writes, parameters, settings. Keeps nothing.

use std::ffi::CString;
use std::rc::Rc;

use arrow_cache_core::{CacheKey, Reason, SnapshotView};
use pgrx::pg_sys;

use super::fingerprint::Fingerprint;
use super::question::Question;
use super::rules::{self, StartedUnder, UNKNOWN_CATALOGS};
use super::{forms, quick_statements, timing};
use crate::arrow::column::Column;
use crate::invalidation::own_writes::has_transaction_id;
use crate::pg::tree::Tree;
use crate::query::asker::Asker;
use crate::query::clock::{Clock, Cuts};
use crate::query::clock_settling::settles;
use crate::query::eligibility::QueryTraits;
use crate::query::hashes::{FormId, SettingsHash, TreeHash};
use crate::query::key::{self, Asked, Keyed};
use crate::query::opened_relations::opened_by;
use crate::query::statement_terms::StatementTerms;
use crate::query::{Cacheable, Planned, Verdict, Versions, environment, name_resolution, plan_marker, relations};
use crate::shmem::SharedStore;

/// A question that may have an answer.
pub struct Statement<'q> {
    /// What its plan says about its query.
    pub cacheable: Cacheable,
    /// The definitions that are current now.
    pub current: Versions,
    /// Under what it is started.
    pub started: StartedUnder,
    /// The terms on which its answer is taken and stored.
    pub terms: StatementTerms,
    /// By what its speed is remembered.
    pub fingerprint: Fingerprint,
    /// The snapshot that it runs under.
    pub snapshot: SnapshotView<'q>,
    /// The relations that its answer rests on, ascending. Those of its own plan: another of its form may read other
    /// partitions.
    pub relations: Vec<u32>,
    /// The key of its answer.
    pub key: CacheKey,
    /// What its clock expressions are computed with.
    pub clock: Clock<'q>,
    /// The times that are not in its key.
    pub cuts: Cuts,
    /// The columns of its answer.
    pub columns: Rc<[Column]>,
}

/// Has a statement timed that is known to be too quick to be worth a lookup.
///
/// # Errors
/// `TooQuick`; `NoCacheHint` if the statement asks to be left alone.
fn check_speed(question: &Question<'_>, form: FormId) -> Result<(), Reason> {
    let fingerprint = question.fingerprint(Fingerprint::of_form(form));
    if question.may_be_skipped()
        && quick_statements::skips_lookup(fingerprint)
        && !StatementTerms::of(question.own_text)?.insisted
    {
        timing::time_skipped(fingerprint);
        return Err(Reason::TooQuick);
    }
    Ok(())
}

/// What the plan says about a query that is worth a lookup.
///
/// # Errors
/// The reason to bypass.
#[inline]
fn verdict_of(question: &Question<'_>) -> Result<Cacheable, Reason> {
    match plan_marker::read(question.plan) {
        Verdict::Cacheable(cacheable) => {
            check_speed(question, cacheable.form)?;
            Ok(cacheable)
        }
        Verdict::Bypass(reason) => Err(reason),
        // It gives way when it is started, so that nobody asks about it.
        Verdict::StandsFor(_) => Err(Reason::NotAnalyzed),
        Verdict::Unchecked(form) => Err(pass_unchecked(question, form.map(Fingerprint::of_form))),
    }
}

/// Passes on a statement whose plan was not checked. If it is not known to be too quick, its next plan is checked, and
/// looked up. Returns why it is bypassed.
fn pass_unchecked(question: &Question<'_>, form: Option<Fingerprint>) -> Reason {
    let Some(form) = form else {
        timing::time_run(None);
        plan_marker::ask_for_new_plan(question.plan);
        return Reason::NotAnalyzed;
    };
    if quick_statements::will_skip_lookup(form) {
        quick_statements::count_skipped(form);
        timing::time_skipped(form);
    } else {
        timing::time_run(Some(form));
        plan_marker::ask_for_new_plan(question.plan);
    }
    Reason::TooQuick
}

/// Describes a question.
///
/// The versions of the definitions are read after the snapshot was taken.
///
/// # Errors
/// The reason to bypass.
#[inline]
pub fn describe<'q>(store: &SharedStore, question: &Question<'q>) -> Result<Statement<'q>, Reason> {
    let cacheable = verdict_of(question)?;
    let Cacheable { traits, form, planned, clock: trees, .. } = cacheable;
    let terms = StatementTerms::of(question.own_text)?;
    let fingerprint = question.fingerprint(Fingerprint::of_form(form));
    let snapshot = rules::snapshot(store, question.snapshot)?;
    let current = rules::definitions(store);
    // SAFETY: the plan that carries the extras is that of the question.
    let relations = relations::of_plan(question.plan, unsafe { traits.extras.relations() });
    check_session(&traits, &relations)?;
    let settings = settings_read(&traits);
    let now = environment::settings(store.seed());
    let environment = environment::hash_under(store.seed(), now, &settings)?;
    let asker = Asker::present(store.seed());
    let made_as_now = is_made_as_now(&traits, &planned, now, asker);
    check_age(question, &cacheable, &relations, (made_as_now, planned.asker.has_changed(asker)), current)?;
    check_role(&traits, made_as_now)?;
    let tree = tree_of(store, cacheable.tree, &traits, current)?;
    let asked = Asked { tree, plan_made_otherwise: (!made_as_now).then_some(planned.plan), environment };
    let clock = Clock { trees, params: question.params, one_message: question.runs_in_one_message(), settles };
    let Keyed { key, cuts } = key::of(&asked, &clock, store.seed())?;
    // With two cuts in the same gap, the plan may ask for other rights.
    if !cuts.is_none() && may_depend_on_time(question.plan, &traits) {
        return Err(Reason::MovingClock);
    }
    let known = forms::columns(form, current).filter(|columns| question.has_columns(columns));
    let columns = match known {
        Some(columns) => columns,
        None => question.columns()?.into(),
    };
    let started = StartedUnder::with(environment, settings, &traits, current.catalogs);
    Ok(Statement { cacheable, current, started, terms, fingerprint, snapshot, relations, key, clock, cuts, columns })
}

/// The settings that the query reads by name.
fn settings_read(traits: &QueryTraits) -> Vec<CString> {
    // SAFETY: the extras were just read, into the current memory context.
    unsafe { traits.extras.settings() }
}

/// Returns true if planning the query now, under these settings, would compute and inline the same functions in
/// advance. The planner asks for the right to execute these.
fn is_made_as_now(traits: &QueryTraits, planned: &Planned, settings: SettingsHash, asker: Asker) -> bool {
    let is_for_role = planned.asker.role == asker.role || !traits.asks_for_rights();
    planned.settings.is_none_or(|then| then == settings && is_for_role)
}

/// Returns true if a plan may ask for the right to execute other functions at another time: those of partitions that
/// its start leaves out now. The server asks for them when it starts a scan. So of two times in one gap, one may be
/// refused.
pub fn may_depend_on_time(plan: Tree<'_, pg_sys::PlannedStmt>, traits: &QueryTraits) -> bool {
    // Most plans have no partitions.
    !plan.appendRelations.is_null() && traits.asks_for_rights() && opened_by(plan).prunes_at_start
}

/// Returns true if this session may get or store an answer over these relations.
///
/// # Errors
/// `OwnWrites` or `OwnDdl`.
fn check_session(traits: &QueryTraits, relations: &[u32]) -> Result<(), Reason> {
    rules::check_own_writes(relations)?;
    // Nobody knows yet what functions that are declared pure are going to read.
    if traits.calls_declared && has_transaction_id() { Err(Reason::OwnWrites) } else { Ok(()) }
}

/// Checks a plan that was made under other settings, or as another role, than the present ones. It is refused if names
/// in functions are resolved while it runs: nobody has checked what they stand for now, and the server rewrites queries
/// in functions for the present role, by its policies.
///
/// # Errors
/// `OldPlan`.
fn check_role(traits: &QueryTraits, made_as_now: bool) -> Result<(), Reason> {
    if made_as_now || !traits.resolves_names() { Ok(()) } else { Err(Reason::OldPlan) }
}

/// The hash of a query's tree; together with all that decides on what names in functions stand for when they run.
///
/// # Errors
/// `OutOfMemory`.
pub fn tree_of(
    store: &SharedStore,
    tree: TreeHash,
    traits: &QueryTraits,
    current: Versions,
) -> Result<TreeHash, Reason> {
    if !traits.resolves_names() {
        return Ok(tree);
    }
    let resolution = name_resolution::hash(store.seed())?;
    Ok(tree.under_definitions(current.catalogs, resolution))
}

/// Checks a plan since whose making definitions, or the rights of its role, may have changed. What it calls may be
/// something else by now, and nobody has checked that; the server plans anew for some of these changes only. So it is
/// asked to.
///
/// # Errors
/// `OldPlan`.
fn check_age(
    question: &Question<'_>,
    Cacheable { traits, planned, .. }: &Cacheable,
    relations: &[u32],
    (made_as_now, has_other_rights): (bool, bool),
    current: Versions,
) -> Result<(), Reason> {
    let planned = planned.versions;
    let are_other = if traits.resolves_names() { current != planned } else { current.ddl != planned.ddl };
    let has_moved = are_other || has_other_rights;
    // As another role, planning might raise an error where the kept plan has the result of a call.
    if made_as_now && (has_moved || planned.catalogs == UNKNOWN_CATALOGS) {
        plan_marker::ask_for_new_plan(question.plan);
    }
    // What the query's row types contain was asked when the plan was made.
    let may_have_others = current.catalogs != planned.catalogs && !relations::are_of_plan(relations, question.plan);
    if has_moved || may_have_others { Err(Reason::OldPlan) } else { Ok(()) }
}
