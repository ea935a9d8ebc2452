//! The decision on each statement: answered from the cache, executed and stored, or bypassed.
//!
//! Judged in two steps. When a query is planned its tree is judged and the verdict attached to the
//! plan. When the plan starts, everything that can be asked only then is asked: snapshot,
//! isolation, own writes, parameters, settings. That is where validity is decided, never earlier.

use std::ffi::{CString, c_char};

use arrow_cache_core::{CacheKey, Counter, Dependency, Pin, Reason, SnapshotView, Validity};
use pgrx::pg_sys;

use crate::arrow::column::{self, Column, Records};
use crate::query::eligibility::{Meaning, reads_nothing};
use crate::query::relations::Relations;
use crate::query::terms::Terms;
use crate::query::text::Text;
use crate::query::updatable::is_updatable_scan;
use crate::query::{self, Planned, Verdict, environment, fingerprint, plan_marker, relations};
use crate::serve::{Asker, Guard};
use crate::session::{self, Status};
use crate::shmem::{self, SharedStore};
use crate::tally::{count_bypass, count_hit, count_miss};
use crate::writes::SHARED;
use crate::{decision_log, foreign, portal, quick, serve, settings, snapshot, verify, writes};

/// What was found out about a query before the planner took it apart.
#[derive(Clone, Copy)]
pub struct Judgement {
    meaning: Result<Meaning, Reason>,
    planned: Planned,
    /// The snapshot that planning runs under sees all changes of catalogs up to that version.
    sees_catalogs: bool,
    /// How many messages about changes of definitions the backend had received by then.
    messages: u64,
}

/// Judges a query that is about to be planned. `None` for anything but a query.
///
/// The version of the catalogs is read first, then invalidations are accepted: so the judgement and the plan are made
/// under catalogs at least as new as the version says.
///
/// # Safety
/// `query` must be the argument of a planner hook.
pub unsafe fn before_planning(query: *mut pg_sys::Query) -> Option<Judgement> {
    // SAFETY: as the caller promises.
    unsafe {
        if (*query).commandType != pg_sys::CmdType::CMD_SELECT {
            return None;
        }
        if reads_nothing(query) {
            let planned = Planned { catalogs: UNKNOWN_CATALOGS, ddl: 0, plan: 0 };
            return Some(Judgement { meaning: Err(Reason::NoRelation), planned, sees_catalogs: false, messages: 0 });
        }
        let store = shmem::store()?;
        let versions = store.versions();
        let slot = versions.catalogs(pg_sys::MyDatabaseId.to_u32());
        let Versions { catalogs, ddl } = current_versions(&store);
        let planned = Planned { catalogs, ddl, plan: session::next_plan_number() };
        pg_sys::AcceptInvalidationMessages();
        let meaning = query::judge(query, shmem::key_hasher);
        let sees_catalogs = meaning.is_ok()
            && pg_sys::ActiveSnapshotSet()
            && snapshot::view(&store, pg_sys::GetActiveSnapshot())
                .is_ok_and(|snapshot| versions.seen_whole(slot, &snapshot) == Some(planned.catalogs));
        let messages = portal::messages_received();
        Some(Judgement { meaning, planned, sees_catalogs, messages })
    }
}

/// Stands for catalogs that no plan may be stored under.
const UNKNOWN_CATALOGS: u64 = u64::MAX;

/// Attaches the verdict to the finished plan.
///
/// # Safety
/// `plan` must be the plan just made for the judged query.
pub unsafe fn after_planning(plan: *mut pg_sys::PlannedStmt, judgement: Judgement) {
    // SAFETY: as the caller promises; planning has locked the plan's relations.
    unsafe {
        let judged = judgement.meaning.and_then(|meaning| {
            let relations = query::judge_relations(plan)?;
            // The plan may outlive a transaction that changes definitions, and its rollback.
            writes::check_own_writes(&[])?;
            Ok((meaning, relations))
        });
        // A message that arrives while the plan is made finds no plan that it could invalidate: PostgreSQL loses it.
        let unsettled = portal::messages_received() != judgement.messages;
        let verdict = match judged {
            // Partitions are looked up by snapshot (DETACH CONCURRENTLY): under an old one, the plan may read partitions
            // that a newer version of the catalogs no longer has.
            Ok((meaning, Relations { partitioned })) if unsettled || (partitioned && !judgement.sees_catalogs) => {
                Verdict::Cacheable { meaning, planned: Planned { catalogs: UNKNOWN_CATALOGS, ..judgement.planned } }
            }
            Ok((meaning, _)) => Verdict::Cacheable { meaning, planned: judgement.planned },
            Err(reason) => Verdict::Bypass(reason),
        };
        plan_marker::attach(plan, verdict);
    }
}

/// A statement as far as the cache is concerned.
pub struct Question {
    /// Its plan, with our verdict in it.
    pub plan: *mut pg_sys::PlannedStmt,
    /// The text it is part of.
    pub source: *const c_char,
    /// Its parameters, or null.
    pub params: pg_sys::ParamListInfo,
    /// The snapshot it runs under.
    pub snapshot: pg_sys::Snapshot,
    /// The text that stands for it, when that is not part of `source`.
    pub text: Option<Text>,
    /// It will not be executed, so it does not count as a run.
    pub only_asked: bool,
    /// Other statements may run between the start and the end of its reading, whatever its portal says.
    pub stays_open: bool,
}

impl Question {
    /// The question that a query descriptor asks.
    ///
    /// # Safety
    /// `query_desc` must be valid.
    pub unsafe fn of(query_desc: *const pg_sys::QueryDesc) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            Self {
                plan: (*query_desc).plannedstmt,
                source: (*query_desc).sourceText,
                params: (*query_desc).params,
                snapshot: (*query_desc).snapshot,
                text: None,
                only_asked: session::explaining(),
                stays_open: false,
            }
        }
    }
}

/// A stored answer, pinned.
pub struct Hit {
    /// Holds the entry in place.
    pub pin: Pin,
    /// Its columns.
    pub columns: Vec<Column>,
    /// What to check before the first row, if there is something.
    pub guard: Option<Guard>,
    /// Other statements may run between the start and the end of its reading.
    pub stays_open: bool,
    /// The terms on which it is executed as well and compared, if it is.
    pub verify: Option<verify::Terms>,
}

/// A statement that has no stored answer, and all that is needed to store one.
pub struct Miss {
    /// Its key.
    pub key: CacheKey,
    /// Its normalized text.
    pub text: Vec<u8>,
    /// What its answer will rest on, with the versions at the start.
    pub dependencies: Vec<Dependency>,
    /// The columns of its answer.
    pub columns: Vec<Column>,
    /// A stored answer was out of date.
    pub stale: bool,
    /// The query id of its plan.
    pub query_id: i64,
    /// On which terms it is stored.
    pub terms: Terms,
    /// Why its answer will not be stored, if that is known already.
    pub refused: Option<Reason>,
    /// Number of the top-level statement.
    pub statement: u64,
    /// The settings it started under: they are in its key, so its rows must be read under them.
    pub environment: CacheKey,
    /// The custom settings among them.
    pub settings: Vec<CString>,
    /// How often this session had changed a definition before it started.
    pub definition_changes: u64,
    /// The role it started as.
    pub role: u32,
    /// Its rows, when they are kept beside the entry (`debug_serve_fills`); null otherwise.
    pub tuples: *mut pg_sys::Tuplestorestate,
}

impl Miss {
    /// The status of the statement when its answer was (`None`) or was not (`Some`) stored.
    pub fn status(&self, reason: Option<Reason>) -> Status {
        if self.stale { Status::Stale(reason) } else { Status::Miss(reason) }
    }
}

/// What the cache knows about a question.
pub enum Found {
    /// Its answer.
    Hit(Hit),
    /// Nothing yet.
    Miss(Box<Miss>),
}

/// What there is to do while a statement is executed.
pub enum Task {
    /// Store its answer.
    Store(Box<Miss>),
    /// Compare its answer with the stored one.
    Verify(Box<verify::Sample>),
}

/// The cache is off for this session: nothing is looked at.
///
/// # Safety
/// `query_desc` must be valid.
pub unsafe fn skip(query_desc: *const pg_sys::QueryDesc) -> Option<Task> {
    if session::at_top_level() {
        session::begin_statement(Reason::Disabled);
        // SAFETY: as the caller promises.
        unsafe { decision_log::note(Status::Bypass(Reason::Disabled), (*query_desc).plannedstmt) };
    }
    None
}

/// Decides on a plan that is about to start, and on a hit puts the serving plan in its place.
/// Returns what to do with the rows when the plan itself is executed.
///
/// # Safety
/// The arguments must be those of an ExecutorStart hook, before the executor has seen them.
pub unsafe fn at_start(query_desc: *mut pg_sys::QueryDesc, flags: i32) -> Option<Task> {
    if !session::at_top_level() {
        return None;
    }
    let store = shmem::store()?;
    // SAFETY: as the caller promises.
    unsafe {
        if session::explaining() {
            show_in_explain(&store, query_desc, flags);
            return None;
        }
        session::begin_statement(Reason::NotSelect);
        let found = portal::check_statement(query_desc)
            .and_then(|()| look(&store, &Question::of(query_desc)))
            .and_then(|found| check_cursor(found, flags, (*query_desc).plannedstmt));
        match found {
            Ok(Found::Hit(mut hit)) => {
                let scrolls = flags as u32 & SCROLL != 0;
                let verify = hit.verify.take().filter(|_| !scrolls);
                // A guarded hit is counted when its guard has been asked.
                if hit.guard.is_none() || verify.is_some() {
                    count_hit(&store, &hit.pin);
                    decision_log::note(Status::Hit, (*query_desc).plannedstmt);
                }
                session::set_status(Status::Hit);
                if let Some(terms) = verify {
                    return verify::sample(query_desc, hit, terms).map(Task::Verify);
                }
                serve::swap_plan(query_desc, hit);
                None
            }
            Ok(Found::Miss(miss)) => {
                count_miss(&store, &miss);
                let status = miss.status(miss.refused);
                session::set_status(status);
                if miss.refused.is_some() {
                    decision_log::note(status, (*query_desc).plannedstmt);
                }
                Some(Task::Store(miss))
            }
            Err(reason) => {
                count_bypass(&store, reason);
                session::set_status(Status::Bypass(reason));
                decision_log::note(Status::Bypass(reason), (*query_desc).plannedstmt);
                None
            }
        }
    }
}

/// Shows the serving plan in EXPLAIN if the query would be a hit; leaves anything else alone.
///
/// # Safety
/// As `at_start`.
unsafe fn show_in_explain(store: &SharedStore, query_desc: *mut pg_sys::QueryDesc, flags: i32) {
    // SAFETY: as the caller promises.
    unsafe {
        if (*query_desc).operation != pg_sys::CmdType::CMD_SELECT || settings::debug_serve_fills() {
            return;
        }
        let found = look(store, &Question::of(query_desc));
        if let Ok(Found::Hit(hit)) = found.and_then(|found| check_cursor(found, flags, (*query_desc).plannedstmt)) {
            serve::swap_plan(query_desc, hit);
        }
    }
}

/// The flags of a query whose rows may be read in any order.
const SCROLL: u32 = pg_sys::EXEC_FLAG_REWIND | pg_sys::EXEC_FLAG_BACKWARD | pg_sys::EXEC_FLAG_MARK;

/// A scrollable cursor can be served, but its rows may be read in any order, so its answer cannot be captured. One
/// whose current row can be updated must not be served.
///
/// # Safety
/// `plan` must be the plan of the question.
unsafe fn check_cursor(found: Found, flags: i32, plan: *const pg_sys::PlannedStmt) -> Result<Found, Reason> {
    match found {
        Found::Miss(_) if flags as u32 & SCROLL != 0 => Err(Reason::ScrollableCursor),
        // SAFETY: as the caller promises.
        Found::Hit(hit) if unsafe { portal::may_be_read_later() && is_updatable_scan((*plan).planTree) } => {
            if let Some(store) = shmem::store() {
                store.unpin(hit.pin);
            }
            Err(Reason::UpdatableCursor)
        }
        found => Ok(found),
    }
}

/// Looks a question up.
///
/// # Errors
/// The reason to bypass.
///
/// # Safety
/// The question must be valid, its relations locked, its snapshot registered.
pub unsafe fn look(store: &SharedStore, question: &Question) -> Result<Found, Reason> {
    // SAFETY: as the caller promises.
    unsafe {
        let (meaning, planned) = match plan_marker::read(question.plan) {
            Verdict::Cacheable { meaning, planned } => (meaning, planned),
            Verdict::Bypass(reason) => return Err(reason),
        };
        if planned.catalogs == UNKNOWN_CATALOGS {
            portal::ask_for_new_plan();
        }
        let (location, length) = text_location(question);
        let statement = Text { source: question.source, location, length };
        let terms = Terms::of(statement)?;
        let source = question.text.unwrap_or(statement);
        let snapshot = snapshot::view(store, question.snapshot)?;
        let relations = relations::of_plan(question.plan, meaning.extras.relations());
        writes::check_own_writes(&relations)?;

        let mut text = Vec::new();
        let settings = meaning.extras.settings();
        let environment = environment::fingerprint(shmem::key_hasher(), &settings)?;
        let current = current_versions(store);
        if current.catalogs != planned.catalogs && !relations::are_of_plan(&relations, question.plan) {
            // What the query's row types contain was looked at when the plan was made.
            return Err(Reason::OldPlan);
        }
        let old_plan = (current.ddl != planned.ddl).then_some(planned.plan);
        let key = fingerprint::key(
            meaning.tree,
            old_plan,
            environment,
            source,
            question.params,
            shmem::key_hasher(),
            &mut text,
        )?;
        let descriptor = pg_sys::ExecCleanTypeFromTL((*(*question.plan).planTree).targetlist);
        let columns = column::columns_of(descriptor, Records::Refused)?;

        let mut stale = false;
        if let Some(pin) = store.lookup(key) {
            match examine(store, &pin, &text, &columns, &snapshot, terms) {
                // In this mode each execution fills anew, so that it does all that it would do without us.
                Ok(true) if settings::debug_serve_fills() => store.unpin(pin),
                Ok(true)
                    if meaning.reads_session
                        && (portal::may_be_read_later() || (question.stays_open && portal::is_fetched_from())) =>
                {
                    store.unpin(pin);
                    return Err(Reason::SettingsInCursor);
                }
                Ok(true) if foreign::check_settled(store, question.plan).is_err() => {
                    store.unpin(pin);
                    return Err(Reason::WriterInProgress);
                }
                Ok(true) => {
                    let verify = verify::choose(&meaning, environment, &settings);
                    let guard = (meaning.reads_session && portal::is_bound()).then(|| Guard {
                        environment,
                        settings,
                        statement: session::statement_number(),
                        plan: question.plan,
                        suspends: false,
                        asker: Asker::current(),
                        definition_changes: session::definition_changes(),
                    });
                    let stays_open = question.stays_open || portal::is_bound() || portal::may_be_read_later();
                    return Ok(Found::Hit(Hit { pin, columns, guard, stays_open, verify }));
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
        let dependencies = current_dependencies(store, &relations, meaning.rests_on_enums, &snapshot)?;
        foreign::check_settled(store, question.plan)?;
        let is_good = may_be_stored(store, planned, current);
        let refused =
            if is_good { refusal(store, key, terms, question.only_asked) } else { Some(Reason::DdlInProgress) };
        Ok(Found::Miss(Box::new(Miss {
            key,
            text,
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
            role: pg_sys::GetUserId().to_u32(),
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

/// May this entry be served? `Ok(false)` when it is of no use now; entries that are of no use to
/// anybody are retired.
fn examine(
    store: &SharedStore,
    pin: &Pin,
    text: &[u8],
    columns: &[Column],
    snapshot: &SnapshotView<'_>,
    terms: Terms,
) -> Result<bool, Reason> {
    let view = store.view(pin);
    if view.text() != text || view.descriptor() != column::describe(columns) {
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
    // SAFETY: a plain read of a backend variable.
    let now = unsafe { pg_sys::GetCurrentStatementStartTimestamp() };
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
fn refusal(store: &SharedStore, key: CacheKey, terms: Terms, only_asked: bool) -> Option<Reason> {
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
        && (current.catalogs == planned.catalogs
            || (planned.catalogs != UNKNOWN_CATALOGS && unsafe { portal::has_valid_plan() }))
}

/// The versions of this database's definitions, as `Planned` has them.
#[derive(Clone, Copy)]
struct Versions {
    catalogs: u64,
    ddl: u64,
}

/// The versions of this database's definitions.
fn current_versions(store: &SharedStore) -> Versions {
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
