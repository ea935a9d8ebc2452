//! The decision on each statement: answered from the cache, executed and stored, or bypassed.
//!
//! Judged in two steps. When a query is planned its tree is judged and the verdict attached to the
//! plan (`planning`). When the plan starts, everything that can be asked only then is asked (`look`). A query whose like was
//! served before need not be planned at all (`placeholder`).

mod find;
pub mod known;
mod placeholder;
mod planning;
mod portal;
pub mod quick;
mod snapshot;

use std::ffi::{CString, c_char};
use std::rc::Rc;

use arrow_cache_core::{CacheKey, Dependency, Pin, Reason};
use pgrx::pg_sys;

use crate::arrow::column::Column;
use crate::pg::tree::Tree;
use crate::query::hashes::{EnvironmentHash, FactsHash};
use crate::query::hint::StatementTerms;
use crate::query::plan_marker;
use crate::query::statement_text::Text;
use crate::query::updatable_cursor::is_updatable_scan;
use crate::report::decision_log;
use crate::report::tally::{count_bypass, count_hit, count_miss};
use crate::serve::{Hit, Template};
use crate::session::{self, Status};
use crate::shmem::{self, SharedStore};
use crate::{serve, settings, verify};
pub use find::{current_versions as definitions, look};
pub use placeholder::{Call, Pending, pending, serve_pending};
pub use planning::{Planning, after_planning, before_planning, refuse};

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
    /// It is not looked up if its like have always been too quick to be stored.
    pub passes_quick: bool,
    /// The shape of its text, if it was planned for this execution; else its form stands for that.
    pub shape: Option<u64>,
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
                passes_quick: false,
                shape: None,
            }
        }
    }
}

/// A statement that has no stored answer, and all that is needed to store one.
pub struct Miss {
    /// Its key.
    pub key: CacheKey,
    /// The facts of its plan, if that is the plan of these values.
    pub facts: FactsHash,
    /// By what its speed is remembered: the shape of its text, or the lower half of the key of its form.
    pub shape: u64,
    /// Its normalized text.
    pub text: Rc<[u8]>,
    /// What its answer will rest on, with the versions at the start.
    pub dependencies: Vec<Dependency>,
    /// The columns of its answer.
    pub columns: Vec<Column>,
    /// A stored answer was out of date.
    pub stale: bool,
    /// The query id of its plan.
    pub query_id: i64,
    /// On which terms it is stored.
    pub terms: StatementTerms,
    /// Why its answer will not be stored, if that is known already.
    pub refused: Option<Reason>,
    /// Number of the top-level statement.
    pub statement: u64,
    /// The settings it started under: they are in its key, so its rows must be read under them.
    pub environment: EnvironmentHash,
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
#[expect(clippy::large_enum_variant, reason = "a hit allocates as little as can be")]
pub enum Found {
    /// Its answer, and the terms on which it is executed as well and compared, if it is.
    Hit(Hit, Option<verify::Terms>),
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
/// The arguments must be those of an ExecutorStart hook, before the executor has seen them, `planned` the plan that its portal knows.
pub unsafe fn at_start(
    query_desc: *mut pg_sys::QueryDesc,
    planned: *mut pg_sys::PlannedStmt,
    flags: i32,
) -> Option<Task> {
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
        let shape = session::take_fingerprint();
        let refusal = Tree::enter((*query_desc).plannedstmt).and_then(plan_marker::refusal_of);
        if refusal != Some(Reason::TooQuick) {
            session::take_timed();
        }
        if let Some(reason) = refusal {
            bypass(&store, query_desc, reason);
            return None;
        }
        let found = portal::check_statement(query_desc, planned)
            .and_then(|()| look(&store, &Question { passes_quick: true, shape, ..Question::of(query_desc) }))
            .and_then(|found| check_cursor(found, flags, (*query_desc).plannedstmt));
        match found {
            Ok(Found::Hit(hit, verify)) => {
                let scrolls = flags as u32 & SCROLL != 0;
                let verify = verify.filter(|_| !scrolls);
                // A guarded hit is counted when its guard has been asked.
                if hit.guard.is_none() || verify.is_some() {
                    count_and_log(&store, &hit.pin, (*query_desc).plannedstmt);
                }
                session::set_status(Status::Hit);
                if let Some(terms) = verify {
                    return verify::sample(query_desc, hit, terms).map(Task::Verify);
                }
                make_template(query_desc, &hit);
                serve::swap_plan(query_desc, hit);
                None
            }
            Ok(Found::Miss(miss)) => {
                count_miss(&store, miss.stale, miss.refused);
                let status = miss.status(miss.refused);
                session::set_status(status);
                if miss.refused.is_some() {
                    decision_log::note(status, (*query_desc).plannedstmt);
                }
                Some(Task::Store(miss))
            }
            Err(reason) => {
                bypass(&store, query_desc, reason);
                None
            }
        }
    }
}

/// # Safety
/// `query_desc` must be valid.
unsafe fn bypass(store: &SharedStore, query_desc: *const pg_sys::QueryDesc, reason: Reason) {
    count_bypass(store, reason);
    session::set_status(Status::Bypass(reason));
    // SAFETY: as the caller promises.
    unsafe { decision_log::note(Status::Bypass(reason), (*query_desc).plannedstmt) };
}

/// Counts a hit, and logs it.
///
/// # Safety
/// `plan` must be valid.
unsafe fn count_and_log(store: &SharedStore, pin: &Pin, plan: *const pg_sys::PlannedStmt) {
    count_hit(store, pin);
    // SAFETY: as the caller promises.
    unsafe { decision_log::note(Status::Hit, plan) };
}

/// Keeps what serves the next query like this one without planning it.
///
/// # Safety
/// `query_desc` must be a query that is about to be started under its own plan, `hit` its answer.
unsafe fn make_template(query_desc: *const pg_sys::QueryDesc, hit: &Hit) {
    // SAFETY: as the caller promises.
    unsafe {
        if hit.template.is_some() {
            // The form may have been forgotten since, and found out again.
            known::note_templates(hit.form);
        } else if known::wants_template(hit.form, hit.versions)
            && let Some(template) = Template::of((*query_desc).plannedstmt, &hit.columns)
        {
            known::keep_template(hit.form, hit.versions, hit.facts, template);
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
        if let Ok(Found::Hit(hit, _)) = found.and_then(|found| check_cursor(found, flags, (*query_desc).plannedstmt)) {
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
    // SAFETY: the valid plan of the question.
    let top = unsafe { Tree::enter((*plan).planTree) };
    match found {
        Found::Miss(_) if flags as u32 & SCROLL != 0 => Err(Reason::ScrollableCursor),
        // SAFETY: called when a query is started.
        Found::Hit(hit, _) if unsafe { portal::may_be_read_later() } && is_updatable_scan(top) => {
            if let Some(store) = shmem::store() {
                store.unpin(hit.pin);
            }
            Err(Reason::UpdatableCursor)
        }
        found => Ok(found),
    }
}
