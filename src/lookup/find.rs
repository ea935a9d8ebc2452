//! The lookup: from a planned query and its snapshot to its stored answer, or to all that is needed to store one. Reads shared memory,
//! pins the entry of a hit, and keeps nothing.
//!
//! The order of the questions matters (docs/architecture/exactness.md): the versions are read after the snapshot was taken, and whether the answer
//! may be stored is asked after the versions of its dependencies were read.

use std::borrow::Cow;
use std::rc::Rc;

use arrow_cache_core::{Pin, Reason};

use super::description::{Description, describe};
use super::held_claims::Lead;
use super::outcome::{Found, Miss};
use super::question::Question;
use super::{definition_versions, entry_validity, portal, quick_statements, staleness, storing};
use crate::arrow::column;
use crate::invalidation::foreign;
use crate::pg::tree::child;
use crate::pg::{allocator, backend, compat, server_settings};
use crate::query::plan_kinds::is_combined;
use crate::serve::{Guard, Hit};
use crate::shmem::SharedStore;
use crate::{session, settings, verify};

/// May an answer be given that is outdated?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lateness {
    /// No: it has to be exact.
    Refused,
    /// Within the statement's own bound, which ends now.
    Accepted,
    /// Within the statement's own bound, which ended at this time, in microseconds: the statement has waited since.
    AcceptedThen(i64),
}

impl Lateness {
    /// The same for a statement that begins to wait now.
    pub fn kept(self) -> Self {
        match self {
            Self::Accepted => Self::AcceptedThen(backend::now()),
            other => other,
        }
    }

    /// Where the bound ends, if the answer may be outdated at all.
    fn end_of_bound(self) -> Option<i64> {
        match self {
            Self::Refused => None,
            Self::Accepted => Some(backend::now()),
            Self::AcceptedThen(then) => Some(then),
        }
    }
}

/// Looks a question up.
///
/// # Errors
/// The reason to bypass.
pub fn find(store: &SharedStore, question: &Question<'_>, lateness: Lateness) -> Result<Found, Reason> {
    if allocator::is_short() {
        return Err(Reason::OutOfMemory);
    }
    let description = describe(store, question)?;
    // The server looks at that setting when it rewrites the query of a view or of a function's body, and what it has rewritten it keeps.
    if server_settings::forbids_relations() {
        return Err(Reason::ForbiddenRelations);
    }
    match stored(store, question, &description, lateness)? {
        Stored::Valid(pin) => hit(store, question, description, pin, None),
        Stored::Late(pin, age) => hit(store, question, description, pin, Some(age)),
        Stored::Outdated => miss(store, question, description, true, lateness),
        Stored::Nothing => miss(store, question, description, false, lateness),
    }
}

/// What the store holds under a key.
enum Stored {
    /// An answer that is still right.
    Valid(Pin),
    /// An answer that was right so many microseconds ago, and is to be given.
    Late(Pin, i64),
    /// An answer that is out of date.
    Outdated,
    /// Nothing of use.
    Nothing,
}

/// Asks the store for the answer.
///
/// # Errors
/// The reason to bypass.
#[inline]
fn stored(
    store: &SharedStore,
    question: &Question<'_>,
    description: &Description<'_>,
    lateness: Lateness,
) -> Result<Stored, Reason> {
    let descriptor = match &description.template {
        Some(template) => Cow::Borrowed(template.descriptor()),
        None => Cow::Owned(column::describe(&description.columns)),
    };
    let Some(pin) = store.lookup(description.key) else { return Ok(Stored::Nothing) };
    // Another plan may have had columns of other types: the planner drops branches by the values of parameters.
    if store.view(&pin).descriptor() != &*descriptor {
        store.unpin(pin);
        return Ok(Stored::Nothing);
    }
    let Description { text, snapshot, terms, .. } = description;
    let found = match entry_validity::check(store, &pin, text, &descriptor, snapshot, *terms) {
        // In this mode each execution fills anew, so that it does all that it would do without us.
        Ok(true) if settings::debug_serve_fills() => Ok(Stored::Nothing),
        Ok(true) => return Ok(Stored::Valid(pin)),
        Ok(false) if store.is_current(&pin) => Ok(Stored::Nothing),
        Ok(false) => {
            let bound = bound_of(store, question, description, lateness);
            let bound = bound.zip(lateness.end_of_bound());
            let age = bound.and_then(|(bound, end)| staleness::servable_age(store, &pin, description, bound, end));
            if let Some(age) = age {
                return Ok(Stored::Late(pin, age));
            }
            Ok(Stored::Outdated)
        }
        Err(reason) => Err(reason),
    };
    store.unpin(pin);
    found
}

/// How old an outdated answer is accepted, in microseconds.
fn bound_of(
    store: &SharedStore,
    question: &Question<'_>,
    description: &Description<'_>,
    lateness: Lateness,
) -> Option<i64> {
    if lateness == Lateness::Refused { None } else { staleness::bound_of(store, question, description) }
}

/// What may still change between the start of a hit and the reading of its first row.
struct Changes {
    /// Settings or definitions that the answer depends on, or foreign tables.
    possible: bool,
    /// The plan reads foreign tables. They are read when the first row is asked for, not under a snapshot of the start.
    reads_foreign: bool,
}

/// What may change before the first row of a hit is read.
///
/// # Errors
/// The reason to bypass: the answer may be read much later than it is chosen.
#[inline]
fn changes_before_reading(
    store: &SharedStore,
    question: &Question<'_>,
    reads_session: bool,
) -> Result<Changes, Reason> {
    let reads_foreign = foreign::check_settled(store, question.plan())?;
    let possible = reads_session || reads_foreign;
    let is_export_of_cursor = possible && question.stays_open() && portal::is_fetched_from();
    if is_export_of_cursor || (reads_foreign && portal::may_be_read_later()) {
        return Err(Reason::SettingsInCursor);
    }
    Ok(Changes { possible, reads_foreign })
}

/// The hit of a valid entry, or of one that is outdated and accepted: then `stale` is its age.
///
/// # Errors
/// The reason to bypass; the entry is let go.
#[inline]
fn hit(
    store: &SharedStore,
    question: &Question<'_>,
    description: Description<'_>,
    pin: Pin,
    stale: Option<i64>,
) -> Result<Found, Reason> {
    let Description { traits, form, facts, planned, template, relations, environment, settings, columns, .. } =
        description;
    let changes = match changes_before_reading(store, question, traits.reads_session) {
        Ok(changes) => changes,
        Err(reason) => {
            store.unpin(pin);
            return Err(reason);
        }
    };
    // An outdated answer differs from the one that executing it gives.
    let verify = if stale.is_none() { verify::draw(&traits, environment, &settings) } else { None };
    quick_statements::note_hit(description.fingerprint, store.view(&pin).execution_micros());
    let is_read_later = portal::is_bound() || portal::may_be_read_later();
    // SAFETY: the extras were read by `describe`, into the current memory context.
    let has_row_types = || !unsafe { traits.extras.relations() }.is_empty();
    let guard = (changes.possible && is_read_later).then(|| {
        Box::new(Guard {
            environment,
            settings,
            statement: session::statement_number(),
            plan: question.plan().as_ptr(),
            role: backend::user_id(),
            may_start_late: !(changes.reads_foreign
                || traits.rests_on_enums
                || traits.trusts
                || traits.bodies.is_some()
                || has_row_types()),
            definition_changes: session::definition_changes(),
            catalogs: traits.resolves_names().then_some(description.current.catalogs),
            foreign: if changes.reads_foreign { relations } else { Vec::new() },
        })
    });
    let stays_open = question.stays_open() || is_read_later;
    let versions = planned.versions;
    Ok(Found::Hit(Hit { pin, stale, columns, guard, stays_open, template, form, facts, versions }, verify))
}

/// The miss of a question without a valid entry; `stale` if it had one that is outdated.
///
/// # Errors
/// The reason to bypass.
fn miss(
    store: &SharedStore,
    question: &Question<'_>,
    description: Description<'_>,
    stale: bool,
    lateness: Lateness,
) -> Result<Found, Reason> {
    let stale_bound = bound_of(store, question, &description, lateness);
    let may_be_unread = may_be_unread(&description);
    let Description { traits, planned, key, terms, .. } = description;
    let dependencies =
        storing::dependencies(store, &description.relations, traits.rests_on_enums, &description.snapshot)?;
    foreign::check_settled(store, question.plan())?;
    // What names in functions stand for rests on the version of the catalogs, which is in the key or the same until the last row is read.
    let plan = question.plan();
    let rests_on_names = traits.resolves_names() || traits.calls_declared();
    let is_settled = !rests_on_names || definition_versions::are_settled();
    let refused = if is_settled && storing::is_plan_current(store, &planned, description.current) {
        storing::refusal(store, key, terms, question.is_only_asked())
    } else {
        Some(Reason::DdlInProgress)
    };
    Ok(Found::Miss(Box::new(Miss {
        key,
        may_be_unread,
        facts: description.facts,
        plan_cost: child!(plan.planTree).map_or(0.0, |tree| tree.total_cost),
        fingerprint: description.fingerprint,
        form: description.form,
        combined: is_combined(question.plan()),
        text: description.text,
        dependencies,
        columns: description.columns,
        stale,
        stale_bound,
        known_good: backend::statement_start(),
        catalogs_then: description.current.catalogs,
        query_id: compat::query_id(&question.plan()),
        terms,
        refused,
        statement: session::statement_number(),
        tuples: std::ptr::null_mut(),
        environment: description.environment,
        settings: description.settings,
        receives_text: traits.receives_text,
        definition_changes: session::definition_changes(),
        catalogs: traits.resolves_names().then_some(description.current.catalogs),
        observes: traits.calls_declared(),
        role: backend::user_id().to_u32(),
        scrolls: false,
        is_part: false,
        lead: Rc::new(Lead::default()),
    })))
}

/// Returns true if the answer does not rest on relations of its plan that turn out not to be read.
fn may_be_unread(description: &Description<'_>) -> bool {
    let traits = &description.traits;
    // SAFETY: the extras were read by `describe`, into the current memory context.
    let has_extra_relations = !unsafe { traits.extras.relations() }.is_empty();
    // A canonical bound stands for many times, and another of them might have left out other relations.
    !(description.has_bounds || traits.bodies.is_some() || has_extra_relations)
}
