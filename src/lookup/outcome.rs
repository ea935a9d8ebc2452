//! What a lookup comes to: a hit, or a miss with all that is needed to store the answer. What is counted and logged when that is
//! known. Plain values; the counters are those that all backends share.

use std::ffi::CString;
use std::rc::Rc;

use arrow_cache_core::{CacheKey, Dependency, Pin, Reason};
use pgrx::pg_sys;

use super::fingerprint::Fingerprint;
use super::held_claims::Lead;
use crate::arrow::column::Column;
use crate::pg::compat;
use crate::pg::tree::Tree;
use crate::query::hashes::{EnvironmentHash, FactsHash, FormId};
use crate::query::statement_terms::StatementTerms;
use crate::report::{decision_log, tally};
use crate::serve::Hit;
use crate::session::{self, Status};
use crate::shmem::SharedStore;
use crate::verify;

/// A statement that has no stored answer, and all that is needed to store one.
pub struct Miss {
    /// Its key.
    pub key: CacheKey,
    /// The facts of its plan.
    pub facts: FactsHash,
    /// What its plan was estimated to cost.
    pub plan_cost: f64,
    /// By what its speed is remembered.
    pub fingerprint: Fingerprint,
    /// The form of its query, by which its time is remembered for all sessions.
    pub form: FormId,
    /// Its plan combines fragments.
    pub combined: bool,
    /// Its normalized text.
    pub text: Rc<[u8]>,
    /// What its answer will rest on, with the versions at the start.
    pub dependencies: Vec<Dependency>,
    /// It does not rest on relations of its plan that turn out not to be read. If false, something else than the plan
    /// may read them, or the key does not have all that decides.
    pub may_be_unread: bool,
    /// The columns of its answer.
    pub columns: Rc<[Column]>,
    /// A stored answer was out of date.
    pub stale: bool,
    /// How old an outdated answer it accepts, in microseconds; `None` if its answer has to be exact.
    pub stale_bound: Option<i64>,
    /// A moment before its snapshot was taken, in microseconds.
    pub known_good: i64,
    /// The version of all definitions before it was executed.
    pub catalogs_then: u64,
    /// The query id of its plan.
    pub query_id: i64,
    /// On which terms it is stored.
    pub terms: StatementTerms,
    /// Why its answer will not be stored, if that is known already.
    pub refused: Option<Reason>,
    /// Number of the top-level statement.
    pub statement: u64,
    /// The settings that it started under: they are in its key, so its rows must be read under them.
    pub environment: EnvironmentHash,
    /// The custom settings among them.
    pub settings: Vec<CString>,
    /// Its rows must be read while the client has the encoding of the database.
    pub receives_text: bool,
    /// How often this session had changed a definition before it started.
    pub definition_changes: u64,
    /// The version of all definitions, if they must be the same when its last row has been read: names in bodies of functions are resolved
    /// while it runs.
    pub catalogs: Option<u64>,
    /// It calls functions that are declared pure: the queries that these run are looked at (`observation`).
    pub observes: bool,
    /// The role that it started as.
    pub role: u32,
    /// Its rows may be read in any order.
    pub scrolls: bool,
    /// It is a part of a statement: what becomes of it is not told as what became of the statement.
    pub is_part: bool,
    /// The claim of its answer, if others may wait for it.
    pub lead: Rc<Lead>,
    /// Its rows, when they are kept beside the entry (`debug_serve_fills`); null otherwise.
    pub tuples: *mut pg_sys::Tuplestorestate,
}

impl Miss {
    /// The status of the statement when its answer was (`None`) or was not (`Some`) stored.
    pub fn status(&self, reason: Option<Reason>) -> Status {
        if self.stale { Status::Stale(reason) } else { Status::Miss(reason) }
    }

    /// Counts the miss. Logs it if its answer will not be stored; else that is done when it was.
    pub fn note(&self, store: &SharedStore, plan: Tree<'_, pg_sys::PlannedStmt>) {
        tally::count_miss(store, self.stale, self.refused, self.query_id);
        let status = self.status(self.refused);
        session::set_status(status);
        if self.refused.is_some() {
            decision_log::note(status, &plan);
        }
    }
}

/// What the cache knows about a question.
pub enum Found {
    /// Its answer, and the conditions on which it is compared with an execution, if it was drawn for that.
    Hit(Hit, Option<verify::Conditions>),
    /// Nothing yet.
    Miss(Box<Miss>),
}

/// Counts a hit, and logs it. A hold must have the pin by then: writing to the log accepts interrupts.
pub fn note_hit(store: &SharedStore, pin: &Pin, plan: Tree<'_, pg_sys::PlannedStmt>) {
    tally::count_hit(store, pin, compat::query_id(&plan));
    decision_log::note(Status::Hit, &plan);
}

/// Counts a hit of an outdated answer that was right `age` microseconds ago, and logs it; as `note_hit`.
pub fn note_stale_hit(store: &SharedStore, pin: &Pin, age: i64, plan: Tree<'_, pg_sys::PlannedStmt>) {
    tally::count_stale_hit(store, pin, compat::query_id(&plan));
    session::set_status(Status::StaleHit(age));
    decision_log::note(Status::StaleHit(age), &plan);
}

/// Counts a bypass, and logs it.
pub fn note_bypass(store: &SharedStore, reason: Reason, plan: Tree<'_, pg_sys::PlannedStmt>) {
    tally::count_bypass(store, reason, compat::query_id(&plan));
    session::set_status(Status::Bypass(reason));
    decision_log::note(Status::Bypass(reason), &plan);
}
