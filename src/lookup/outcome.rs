//! What a lookup comes to: a hit, or a miss with all that is needed to store the answer. What is counted and logged
//! when that is known. Plain values; the counters are those that all backends share.

use std::rc::Rc;

use arrow_cache_core::{CacheKey, Dependency, Reason, Wish};
use pgrx::pg_sys;

use super::fingerprint::Fingerprint;
use super::held_claims::Lead;
use super::rules::StartedUnder;
use super::value_rules::Probed;
use crate::arrow::column::Column;
use crate::pg::compat;
use crate::pg::tree::Tree;
use crate::query::hashes::FormId;
use crate::query::statement_terms::StatementTerms;
use crate::report::{decision_log, tally};
use crate::serve::Hit;
use crate::session::{self, Status};
use crate::shmem::SharedStore;
use crate::verify;

/// A statement, or a part of one, that has no stored answer, and all that is needed to store one.
pub struct Miss {
    /// Its key.
    pub key: CacheKey,
    /// What people are shown of its text.
    pub text: Vec<u8>,
    /// The columns of its answer.
    pub columns: Rc<[Column]>,
    /// The gaps in which its cuts lie (`query::clock`).
    pub gaps: Vec<u8>,
    /// The statement; `None` for a part of one: what becomes of that is not told as what became of the statement.
    pub statement: Option<Missed>,
    /// What its plan was estimated to cost.
    pub plan_cost: f64,
    /// What makes the answer right.
    pub guarantees: Guarantees,
    /// On which terms it is stored.
    pub terms: StatementTerms,
    /// Why its answer will not be stored, if that is known already.
    pub refused: Option<Reason>,
    /// The claim of its answer, if others may wait for it.
    pub lead: Rc<Lead>,
}

/// A statement whose answer is not stored.
pub struct Missed {
    /// The form of its query, by which its time is remembered for all sessions.
    pub form: FormId,
    /// By what its speed is remembered.
    pub fingerprint: Fingerprint,
    /// It reads foreign tables, of which more is asked than their versions.
    pub reads_foreign: bool,
    /// Its plan combines fragments.
    pub combined: bool,
    /// A stored answer was out of date.
    pub stale: bool,
    /// The query id of its plan.
    pub query_id: i64,
}

/// What an answer rests on, and what must not change before its last row has been read (rules R4 to R6).
pub struct Guarantees {
    /// What it will rest on, with the versions at the start.
    pub dependencies: Vec<Dependency>,
    /// Relations whose rows the run will name. None is left when the answer is stored.
    pub probed: Vec<Probed>,
    /// Relations and columns that would have to be tracked so that it rested on less.
    pub wishes: Vec<Wish>,
    /// Settings and definitions that must stay the same.
    pub started: StartedUnder,
    /// It does not rest on relations of its plan that turn out not to be read. If false, something else than the plan
    /// may read them, or the key does not have all that decides.
    pub may_be_unread: bool,
    /// It calls functions that are declared pure: the queries that these run are looked at (`observation`).
    pub observes: bool,
    /// A moment before its snapshot was taken, in microseconds.
    pub known_good: i64,
    /// The version of all definitions before it was executed.
    pub catalogs: u64,
    /// How old an outdated answer the statement accepts, in microseconds; `None` if its answer has to be exact.
    pub stale_bound: Option<i64>,
}

impl Miss {
    /// The status of the statement when its answer was (`None`) or was not (`Some`) stored.
    pub fn status(&self, reason: Option<Reason>) -> Status {
        let is_stale = self.statement.as_ref().is_some_and(|missed| missed.stale);
        if is_stale { Status::Stale(reason) } else { Status::Miss(reason) }
    }

    /// Counts the miss of a statement. Logs it if its answer will not be stored; else that is done when it was.
    pub fn note(&self, store: &SharedStore, plan: Tree<'_, pg_sys::PlannedStmt>) {
        let Some(missed) = &self.statement else { return };
        tally::count_miss(store, missed.stale, self.refused, missed.query_id);
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

/// Counts a bypass, and logs it.
pub fn note_bypass(store: &SharedStore, reason: Reason, plan: Tree<'_, pg_sys::PlannedStmt>) {
    tally::count_bypass(store, reason, compat::query_id(&plan));
    session::set_status(Status::Bypass(reason));
    decision_log::note(Status::Bypass(reason), &plan);
}
