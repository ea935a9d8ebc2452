//! The lookup: from a planned query and its snapshot to its stored answer, or to all that is needed to store one. Reads
//! shared memory, pins the entry of a hit, and keeps nothing.
//!
//! The order of the questions matters (docs/architecture/exactness.md): the versions are read after the snapshot was
//! taken, and whether the answer may be stored is asked after the versions of its dependencies were read.

use std::rc::Rc;

use arrow_cache_core::{Pin, Reason, RoomyVec};
use pgrx::pg_sys;

use super::held_claims::Lead;
use super::outcome::{Found, Guarantees, Miss, Missed};
use super::question::Question;
use super::rules::{self, Stored};
use super::statement::{Statement, describe};
use super::{admission, forms, gaps, portal, quick_statements, staleness, value_rules};
use crate::arrow::column::are_described;
use crate::invalidation::foreign;
use crate::pg::tree::{Tree, child, children};
use crate::pg::{allocator, backend, compat, server_settings};
use crate::query::Cacheable;
use crate::query::asked_values::{Scan, scans_of};
use crate::query::clock::Cuts;
use crate::query::eligibility::QueryTraits;
use crate::query::opened_relations::opened_by;
use crate::query::row_bound;
use crate::query::scan_of_parts::is_combined;
use crate::query::statement_text::{self, Text};
use crate::serve::{Guard, Hit};
use crate::settings;
use crate::shmem::SharedStore;
use crate::verify;

/// True if an outdated answer may be given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lateness {
    /// No: it has to be exact.
    Refused,
    /// Within the statement's own bound, which ends now, or ended at this time, in microseconds: the statement has
    /// waited since.
    Accepted(Option<i64>),
}

/// What is stored for a question.
#[expect(clippy::large_enum_variant, reason = "it lives for one lookup, on the stack")]
enum Search<'q> {
    /// An answer, and whether it is to be compared.
    Hit(Hit, Option<verify::Conditions>),
    /// None that may be given.
    Nothing {
        statement: Statement<'q>,
        /// There is an outdated one.
        stale: bool,
        /// The relations by whose values it was outdated.
        outdated: Vec<u32>,
        /// How old an outdated answer the statement accepts.
        stale_bound: Option<i64>,
    },
}

/// Looks a question up.
///
/// # Errors
/// The reason to bypass.
pub fn find(store: &SharedStore, question: &Question<'_>, lateness: Lateness) -> Result<Found, Reason> {
    match search(store, question, lateness)? {
        Search::Hit(hit, verify) => Ok(Found::Hit(hit, verify)),
        Search::Nothing { statement, stale, outdated, stale_bound } => {
            miss(store, question, statement, (stale, &outdated), stale_bound)
        }
    }
}

/// The stored answer to a question. Without one, nobody asks what storing one takes.
pub fn find_hit(store: &SharedStore, question: &Question<'_>, lateness: Lateness) -> Option<Hit> {
    match search(store, question, lateness) {
        Ok(Search::Hit(hit, _)) => Some(hit),
        _ => None,
    }
}

/// Searches the store for an answer to a question.
///
/// # Errors
/// The reason to bypass.
#[inline(always)]
fn search<'q>(store: &SharedStore, question: &Question<'q>, lateness: Lateness) -> Result<Search<'q>, Reason> {
    if allocator::is_short() {
        return Err(Reason::OutOfMemory);
    }
    let mut statement = describe(store, question)?;
    // The server looks at that setting when it rewrites the query of a view or of a function's body, and what it has
    // rewritten it keeps.
    if server_settings::forbids_relations() {
        return Err(Reason::ForbiddenRelations);
    }
    let Statement { key, columns, snapshot, terms, cuts, .. } = &statement;
    let stored = rules::find_entry(store, *key, (cuts, |own| are_described(columns, own)), snapshot, *terms)?;
    let pin = match stored {
        Stored::Valid(pin) => return hit(store, question, &mut statement, pin, None),
        Stored::Outdated(pin) => Some(pin),
        Stored::Nothing => None,
    };
    let (stale_bound, end) = match lateness {
        Lateness::Refused => (None, None),
        Lateness::Accepted(end) => (staleness::bound_of(store, question, &statement), end),
    };
    let (stale, mut outdated) = (pin.is_some(), Vec::new());
    if let Some(pin) = pin {
        let end = || end.unwrap_or_else(backend::now);
        let age = stale_bound.and_then(|bound| staleness::servable_age(store, &pin, &statement, bound, end()));
        if age.is_some() {
            return hit(store, question, &mut statement, pin, age);
        }
        outdated = value_rules::outdated_values(store, &pin);
        store.unpin(pin);
    }
    Ok(Search::Nothing { statement, stale, outdated, stale_bound })
}

/// Returns true if the plan of a hit reads foreign tables: when the first row is asked for, not under a snapshot of the
/// start. `reads_session` tells whether the answer depends on settings or definitions that may change before that row.
///
/// # Errors
/// The reason to bypass: the answer may be read much later than it is chosen.
#[inline]
fn reads_foreign(store: &SharedStore, question: &Question<'_>, reads_session: bool) -> Result<bool, Reason> {
    let reads_foreign = foreign::check_settled(store, question.plan)?;
    let may_change = reads_session || reads_foreign;
    let is_export_of_cursor = may_change && question.stays_open && portal::is_fetched_from();
    if is_export_of_cursor || (reads_foreign && portal::may_be_read_later()) {
        return Err(Reason::SettingsInCursor);
    }
    Ok(reads_foreign)
}

/// The hit of a valid entry, or of one that is outdated and accepted: then `stale` is its age.
///
/// # Errors
/// The reason to bypass; the entry is let go.
#[inline]
fn hit<'q>(
    store: &SharedStore,
    question: &Question<'q>,
    statement: &mut Statement<'q>,
    pin: Pin,
    stale: Option<i64>,
) -> Result<Search<'q>, Reason> {
    let Statement { cacheable, current, relations, started, columns, fingerprint, .. } = statement;
    let Cacheable { traits, form, .. } = cacheable;
    let checked = reads_foreign(store, question, traits.reads_session)
        .and_then(|reads_foreign| Ok((reads_foreign, held_open(question)?)));
    let (reads_foreign, open) = match checked {
        Ok(checked) => checked,
        Err(reason) => {
            store.unpin(pin);
            return Err(reason);
        }
    };
    let is_whole = || {
        let below_limit = |limit| store.view(&pin).rows() < limit;
        !traits.is_limited || row_bound::limit(question.plan, question.params).is_some_and(below_limit)
    };
    // An outdated answer differs from the one that executing it gives.
    let verify = if stale.is_none() { verify::draw(traits, started, is_whole) } else { None };
    quick_statements::note_hit(*fingerprint, store.view(&pin).execution_micros());
    forms::note_columns(*form, *current, columns);
    let is_read_later = portal::is_bound() || portal::may_be_read_later();
    let guard = ((traits.reads_session || reads_foreign) && is_read_later).then(|| {
        let foreign = if reads_foreign { std::mem::take(relations) } else { Vec::new() };
        Box::new(Guard { started: started.taken(), plan: question.plan.as_ptr(), foreign })
    });
    Ok(Search::Hit(Hit { pin, stale, columns: Rc::clone(columns), guard, open }, verify))
}

/// The tables and indexes that are held open until a hit has been read: those that its plan would hold open, if other
/// statements may run before. Not for the portal without a name, which is read at once.
///
/// # Errors
/// `SettingsInCursor` for a cursor whose plan leaves out partitions when it starts: which it holds open, only its start
/// tells.
fn held_open(question: &Question<'_>) -> Result<Vec<pg_sys::Oid>, Reason> {
    let is_cursor = portal::may_be_read_later();
    if !is_cursor && !question.stays_open {
        return Ok(Vec::new());
    }
    let opened = opened_by(question.plan);
    if is_cursor && opened.prunes_at_start {
        return Err(Reason::SettingsInCursor);
    }
    let tables = if is_combined(question.plan) { tables_of(question.plan) } else { opened.tables };
    Ok([tables, opened.indexes].concat())
}

/// The tables that a scan of parts holds open: all that the range table has but those that have no rows of their own.
fn tables_of(plan: Tree<'_, pg_sys::PlannedStmt>) -> Vec<pg_sys::Oid> {
    children!(plan.rtable as RangeTblEntry)
        .filter(|entry| {
            let is_table = matches!(entry.relkind as u8, pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW);
            entry.rtekind == pg_sys::RTEKind::RTE_RELATION && is_table
        })
        .map(|entry| entry.relid)
        .collect()
}

/// The miss of a question without a valid entry; `stale` if it had one that is outdated, by values of the relations in
/// `outdated`. `stale_bound` tells how old an
/// outdated answer the statement accepts.
///
/// # Errors
/// The reason to bypass.
fn miss(
    store: &SharedStore,
    question: &Question<'_>,
    statement: Statement<'_>,
    (stale, outdated): (bool, &[u32]),
    stale_bound: Option<i64>,
) -> Result<Found, Reason> {
    let Statement { cacheable, relations, snapshot, current, key, columns, terms, clock, cuts, .. } = statement;
    let Cacheable { traits, form, planned, .. } = cacheable;
    let scans = scans_of_answer(question.plan, question.params, &traits, &cuts);
    let (dependencies, probed) = rules::dependencies_of_run(store, &relations, &traits, &snapshot, scans.as_deref())?;
    let wishes = scans.map_or_else(Vec::new, |scans| value_rules::wishes(store, &relations, &scans, outdated));
    let reads_foreign = foreign::check_settled(store, question.plan)?;
    // What names in functions stand for rests on the version of the catalogs, which is in the key.
    let is_settled = !traits.resolves_names() || rules::are_settled();
    let refused = match is_settled && rules::is_plan_current(store, &planned, current) {
        true => admission::refusal(store, key, terms, question.only_asked).or_else(|| {
            // One that is known to be quick is looked up for what others have stored.
            let is_quick = !terms.insisted && quick_statements::are_quick(statement.fingerprint);
            is_quick.then_some(Reason::TooQuick)
        }),
        false => Some(Reason::DdlInProgress),
    };
    let (plan, mut gaps) = (question.plan, Vec::new());
    if !cuts.is_none() && question.only_asked {
        gaps::check(plan, &clock, &cuts)?;
    } else if !cuts.is_none() && refused.is_none() {
        gaps = gaps::find(question, &clock, &cuts)?;
    }
    Ok(Found::Miss(Box::new(Miss {
        key,
        text: Vec::copy_of(shown(&question.own_text))?,
        columns,
        gaps,
        statement: Some(Missed {
            form,
            fingerprint: statement.fingerprint,
            reads_foreign,
            combined: is_combined(plan),
            stale,
            query_id: compat::query_id(&plan),
        }),
        plan_cost: child!(plan.planTree).map_or(0.0, |tree| tree.total_cost),
        guarantees: Guarantees {
            dependencies,
            probed,
            wishes,
            started: statement.started,
            // Another cut in the same gap might have left out other relations.
            may_be_unread: !(!cuts.is_none() || traits.calls_declared || traits.extras.has_relations()),
            observes: traits.calls_declared,
            known_good: backend::statement_start(),
            catalogs: current.catalogs,
            stale_bound,
        },
        terms,
        refused,
        lead: Rc::new(Lead::default()),
    })))
}

/// The scans by which alone an answer comes from rows, if all values in their conditions are in its key: not times of
/// the clock that lie in a gap. Functions that run queries of their own, and stored parts, read rows in other ways.
pub(super) fn scans_of_answer(
    plan: Tree<'_, pg_sys::PlannedStmt>,
    params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
    traits: &QueryTraits,
    cuts: &Cuts,
) -> Option<Vec<Scan>> {
    let reads_otherwise = traits.calls_declared || traits.extras.has_relations() || is_combined(plan);
    if reads_otherwise || !cuts.is_none() || !settings::precise_invalidation() || backend::is_in_recovery() {
        return None;
    }
    scans_of(plan, params)
}

/// The text of a statement without what stands around it: what people are shown of it.
fn shown(text: &Text) -> &[u8] {
    let mut shown = statement_text::raw(text).trim_ascii();
    while let Some(rest) = shown.strip_suffix(b";") {
        shown = rest.trim_ascii_end();
    }
    shown
}
