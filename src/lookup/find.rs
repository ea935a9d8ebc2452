//! The look-up: from a planned query and a snapshot to its stored answer, or to all that is needed to store one. Everything that
//! can be asked only at the start is asked here: snapshot, isolation, own writes, parameters, settings. Validity is decided here,
//! never earlier.

use std::borrow::Cow;

use arrow_cache_core::{CacheKey, Counter, Dependency, Pin, Reason, SnapshotView, Validity};
use pgrx::pg_sys;

use super::planning::UNKNOWN_CATALOGS;
use super::{Found, Miss, Question};
use crate::arrow::column::{self, Records};
use crate::invalidation::catalogs::SHARED;
use crate::invalidation::{foreign, own_writes};
use crate::lookup::{known, portal, quick, snapshot};
use crate::pg::tree::Tree;
use crate::pg::{allocator, backend};
use crate::query::hashes::FactsHash;
use crate::query::hint::StatementTerms;
use crate::query::key::{Asked, HashedText};
use crate::query::statement_text::Text;
use crate::query::{self, Planned, Verdict, Versions, environment, parameters, plan_marker, relations};
use crate::report::decision_log;
use crate::serve::{Guard, Hit};
use crate::shmem::SharedStore;
use crate::{session, settings, verify};

/// Looks a question up.
///
/// # Errors
/// The reason to bypass.
///
/// # Safety
/// The question must be valid, its relations locked, its snapshot registered.
pub unsafe fn look(store: &SharedStore, question: &Question) -> Result<Found, Reason> {
    if allocator::is_short() {
        return Err(Reason::OutOfMemory);
    }
    // SAFETY: as the caller promises.
    unsafe {
        let plan = Tree::enter(question.plan).unwrap_unchecked();
        let (traits, tree, form, facts, planned) = match plan_marker::read(plan) {
            Verdict::Cacheable { traits, tree, form, facts, planned } => (traits, tree, form, facts, planned),
            Verdict::Bypass(reason) => return Err(reason),
        };
        if planned.versions.catalogs == UNKNOWN_CATALOGS {
            portal::ask_for_new_plan();
        }
        let (location, length) = text_location(question);
        let statement = Text::of(question.source, location, length);
        let terms = StatementTerms::of(statement)?;
        // A statement that was planned for this execution has been asked about when it was planned.
        let shape = question.shape.unwrap_or(form.0);
        if question.passes_quick && question.shape.is_none() && !terms.insisted && known::is_quick(shape) {
            session::time_run(Some(shape));
            return Err(Reason::TooQuick);
        }
        let source = question.text.unwrap_or(statement);
        let snapshot = snapshot::view(store, question.snapshot)?;
        let current = current_versions(store);
        let template = known::template(form, planned.versions, facts).filter(|_| current == planned.versions);
        // Of this plan: another of its form may read other partitions.
        let relations = relations::of_plan(plan, traits.extras.relations());
        own_writes::check_own_writes(&relations)?;

        let settings = traits.extras.settings();
        let now = environment::settings(store.seed());
        let environment = environment::hash_under(store.seed(), now, &settings)?;
        if current.catalogs != planned.versions.catalogs && !relations::are_of_plan(&relations, plan) {
            // What the query's row types contain was looked at when the plan was made.
            return Err(Reason::OldPlan);
        }
        if traits.aggregates && current.ddl != planned.versions.ddl {
            // Their parts may be others by now, and nobody has judged those.
            portal::ask_for_new_plan();
            return Err(Reason::OldPlan);
        }
        let old_plan = (current.ddl != planned.versions.ddl).then_some(planned.plan);
        let planned_under = planned.settings.filter(|then| *then != now);
        let asked = Asked { tree, old_plan, planned_under, environment };
        // A plan that is kept belongs to one text.
        let kept = template.as_ref().filter(|_| question.text.is_none() && portal::is_bound());
        let text = match kept.and_then(|template| template.text_of(planned.plan)) {
            Some(text) => text,
            None => {
                let text = HashedText::of(source, store.seed())?;
                kept.inspect(|template| template.remember_text(planned.plan, &text));
                text
            }
        };
        let key = query::key::of(&asked, &text, Tree::enter(question.params), store.seed())?;
        let columns = match &template {
            Some(template) => template.columns().to_vec(),
            None => {
                let descriptor = pg_sys::ExecCleanTypeFromTL((*(*question.plan).planTree).targetlist);
                column::columns_of(descriptor, Records::Refused)?
            }
        };
        let descriptor = match &template {
            Some(template) => Cow::Borrowed(template.descriptor()),
            None => Cow::Owned(column::describe(&columns)),
        };

        let mut stale = false;
        if let Some(pin) = store.lookup(key) {
            match examine(store, &pin, &text.bytes, &descriptor, &snapshot, terms) {
                // In this mode each execution fills anew, so that it does all that it would do without us.
                Ok(true) if settings::debug_serve_fills() => store.unpin(pin),
                Ok(true) => {
                    // A foreign table is read when its first row is asked for, not under a snapshot of the start.
                    let Ok(reads_foreign) = foreign::check_settled(store, plan) else {
                        store.unpin(pin);
                        return Err(Reason::WriterInProgress);
                    };
                    let may_change = traits.reads_session || reads_foreign;
                    if may_change && (portal::may_be_read_later() || (question.stays_open && portal::is_fetched_from()))
                    {
                        store.unpin(pin);
                        return Err(Reason::SettingsInCursor);
                    }
                    let verify = verify::choose(&traits, environment, &settings);
                    known::note_speed(shape, false);
                    let guard = (may_change && portal::is_bound()).then(|| Guard {
                        environment,
                        settings,
                        statement: session::statement_number(),
                        plan: question.plan,
                        suspends: false,
                        definition_changes: session::definition_changes(),
                        foreign: if reads_foreign { relations.clone() } else { Vec::new() },
                    });
                    let stays_open = question.stays_open || portal::is_bound() || portal::may_be_read_later();
                    let versions = planned.versions;
                    let hit = Hit { pin, columns, guard, stays_open, template, form, facts, versions };
                    return Ok(Found::Hit(hit, verify));
                }
                Ok(false) => {
                    stale = !store.is_current(&pin);
                    store.unpin(pin);
                }
                Err(reason) => {
                    store.unpin(pin);
                    return Err(reason);
                }
            }
        }
        let dependencies = current_dependencies(store, &relations, traits.rests_on_enums, &snapshot)?;
        foreign::check_settled(store, plan)?;
        // A plan for all values reads and locks what the plan of a query with these values would not.
        let is_of_values = planned.for_values || parameters::count(Tree::enter(question.params)) == 0;
        let is_good = may_be_stored(store, planned, current);
        let refused =
            if is_good { refusal(store, key, terms, question.only_asked) } else { Some(Reason::DdlInProgress) };
        Ok(Found::Miss(Box::new(Miss {
            key,
            facts: if is_of_values { facts } else { FactsHash::NONE },
            shape,
            text: text.bytes,
            dependencies,
            columns,
            stale,
            query_id: decision_log::query_id(question.plan),
            terms,
            refused,
            statement: session::statement_number(),
            tuples: std::ptr::null_mut(),
            environment,
            settings,
            definition_changes: session::definition_changes(),
            role: backend::user_id().to_u32(),
        })))
    }
}

/// Where the text of the statement lies: the plan knows, except for a query inside a utility
/// statement, whose own place stands in for it.
///
/// # Safety
/// The question must be valid.
unsafe fn text_location(question: &Question) -> (i32, i32) {
    // SAFETY: as the caller promises.
    let (location, length) = unsafe { ((*question.plan).stmt_location, (*question.plan).stmt_len) };
    if location <= 0 && length <= 0 {
        session::wrapped_text(question.source).unwrap_or((location, length))
    } else {
        (location, length)
    }
}

/// May this entry be served to a statement with this text and these columns? `Ok(false)` when it is of no use now; entries that are of no use to
/// anybody are retired.
pub(super) fn examine(
    store: &SharedStore,
    pin: &Pin,
    text: &[u8],
    descriptor: &[u8],
    snapshot: &SnapshotView<'_>,
    terms: StatementTerms,
) -> Result<bool, Reason> {
    let view = store.view(pin);
    if view.text() != text || view.descriptor() != descriptor {
        return Err(Reason::KeyCollision);
    }
    match store.valid_for(pin, snapshot) {
        Validity::Changed => {
            store.retire(pin);
            return Ok(false);
        }
        Validity::NotVisible => return Err(Reason::WriterInProgress),
        Validity::Valid => {}
    }
    let now = backend::statement_start();
    if view.expires_at() <= now {
        if store.retire(pin) {
            store.counters().add(store.stripe(), Counter::Expirations, 1);
        }
        return Ok(false);
    }
    Ok(terms.ttl_micros().is_none_or(|ttl| now.saturating_sub(view.created_at()) <= ttl))
}

/// The dependencies of an answer computed now, with the versions that this snapshot sees whole.
fn current_dependencies(
    store: &SharedStore,
    relations: &[u32],
    rests_on_enums: bool,
    snapshot: &SnapshotView<'_>,
) -> Result<Vec<Dependency>, Reason> {
    let versions = store.versions();
    // SAFETY: a plain read of a backend global.
    let database = unsafe { pg_sys::MyDatabaseId.to_u32() };
    let mut dependencies = Vec::with_capacity(relations.len() + 4);
    let enums = rests_on_enums.then_some((versions.enums(database), Reason::DdlInProgress));
    for (slot, reason) in [
        (versions.ddl(database), Reason::DdlInProgress),
        (versions.ddl(SHARED), Reason::DdlInProgress),
        (versions.wildcard(database), Reason::WriterInProgress),
    ]
    .into_iter()
    .chain(enums)
    {
        let version = versions.seen_whole(slot, snapshot).ok_or(reason)?;
        dependencies.push(Dependency { slot, relation: 0, version });
    }
    for relation in relations {
        let slot = versions.relation(database, *relation);
        let version = versions.seen_whole(slot, snapshot).ok_or(Reason::WriterInProgress)?;
        dependencies.push(Dependency { slot, relation: *relation, version });
    }
    Ok(dependencies)
}

/// Why an answer will not be stored, as far as can be told before it is computed.
fn refusal(store: &SharedStore, key: CacheKey, terms: StatementTerms, only_asked: bool) -> Option<Reason> {
    if !settings::populate() {
        return Some(Reason::PopulateOff);
    }
    let runs = terms.min_runs();
    if runs > 1 && !only_asked && store.count_run(key) < runs {
        return Some(Reason::TooFewRuns);
    }
    (!terms.insisted && quick::is_known(key)).then_some(Reason::TooQuick)
}

/// Does the plan still mean what its key says? `seen` are the versions by which the key was made.
///
/// To be asked after the versions of the dependencies were read, since those of relations are bumped after that of the
/// catalogs. A plan older than the last DDL may be good, too: PostgreSQL says so itself, as far as it follows
/// definitions, once it has heard of that DDL.
///
/// # Safety
/// Called in ExecutorStart or with no portal active.
unsafe fn may_be_stored(store: &SharedStore, planned: Planned, seen: Versions) -> bool {
    let current = current_versions(store);
    // SAFETY: as the caller promises.
    current.ddl == seen.ddl
        && (current.catalogs == planned.versions.catalogs
            || (planned.versions.catalogs != UNKNOWN_CATALOGS && unsafe { portal::has_valid_plan() }))
}

/// The versions of this database's definitions.
pub fn current_versions(store: &SharedStore) -> Versions {
    let versions = store.versions();
    // SAFETY: a plain read of a backend global.
    let database = unsafe { pg_sys::MyDatabaseId.to_u32() };
    // The other way round than they are bumped: who sees the new version of the catalogs need not see that of the ddl,
    // but who sees the new one of the ddl sees that of the catalogs.
    // Both only grow, so that their sum stays the same only if both do.
    let ddl = versions.slot(versions.ddl(database)).version() + versions.slot(versions.ddl(SHARED)).version();
    let catalogs = versions.slot(versions.catalogs(database)).version();
    Versions { catalogs, ddl }
}
