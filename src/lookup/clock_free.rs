//! The decision when a statement starts whose plan applies the clock to a clock-free part (`query::shown_clock`): is the part stored? It is looked
//! up, counted and stored like a statement of its own, and what becomes of it is what becomes of the statement. A statement that is bound, prepared or
//! a cursor gets such a plan at its first run, if at all. Keeps nothing.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::find::{Lateness, find};
use super::fingerprint::Fingerprint;
use super::outcome::{Found, note_bypass, note_hit};
use super::question::Question;
use super::start::{SCROLL, Task, share_work};
use super::{portal, quick_statements};
use crate::pg::query_desc::QueryDesc;
use crate::pg::tree::Tree;
use crate::pg::{backend, compat};
use crate::query::clock::{self, Clock};
use crate::query::hashes::FormId;
use crate::query::statement_terms::StatementTerms;
use crate::query::{identity, plan_marker};
use crate::report::{decision_log, tally};
use crate::serve::Hold;
use crate::session::{self, Status};
use crate::shmem::{self, SharedStore};

/// Do the clock expressions of an eligible query have values that change by less than a minute? Then its answer will not be looked up, unless a
/// canonical bound stands for them. `seed` is the secret of the store.
pub fn moves(query: Tree<'_, pg_sys::Query>, seed: u64) -> bool {
    let identified = identity::of(query, seed).and_then(|identity| identity.into_identified());
    identified.is_ok_and(|identified| {
        let clock = Clock { program: identified.clock, params: None, one_message: true, sight: None };
        clock::hash_values(&clock, seed) == Err(Reason::MovingClock)
    })
}

/// As `moves`, for the values that the clock expressions of a planned query have when it is started.
pub fn moves_at_start(query: QueryDesc<'_>, seed: u64) -> bool {
    let plan = query.plan();
    let (question, program) = (Question::of(query), plan_marker::read_clock(plan));
    if program.is_none() {
        return false;
    }
    let one_message = question.runs_in_one_message();
    let clock = Clock { program, params: question.params(), one_message, sight: None };
    clock::hash_values(&clock, seed) == Err(Reason::MovingClock)
}

/// A statement begins that may get a plan with the clock at its first run. `form` is that of its clock-free part. Says whether it is worth that: it is
/// bypassed if such statements have always been too quick to be stored.
pub fn begin(query: QueryDesc<'_>, form: FormId) -> bool {
    session::begin_statement(Reason::MovingClock);
    quick_statements::take_planned();
    quick_statements::forget_timed();
    let fingerprint = Fingerprint::of_form(form);
    let is_insisted = StatementTerms::of(Question::of(query).own_text()).is_ok_and(|terms| terms.insisted);
    let is_quick = !is_insisted && quick_statements::skips_lookup(fingerprint);
    if is_quick && let Some(store) = shmem::store() {
        quick_statements::time_run(Some(fingerprint));
        note_bypass(&store, Reason::TooQuick, query.plan());
    }
    !is_quick
}

/// That statement, which had this number, runs the server's own plan.
pub fn note_not_applied(query: QueryDesc<'_>, statement: u64) {
    let (reason, Some(store)) = (Reason::MovingClock, shmem::store()) else { return };
    tally::count_bypass(&store, reason, compat::query_id(&query.plan()));
    session::set_status_of(statement, Status::Bypass(reason));
    decision_log::note(Status::Bypass(reason), &query.plan());
}

/// How many rows the stored answer to a part has, if it is stored. `part` has the plan, the values and the snapshot.
pub fn stored_rows(store: &SharedStore, part: &Question<'_>) -> Option<u64> {
    match find(store, part, Lateness::Refused) {
        Ok(Found::Hit(hit, _)) => {
            let rows = store.view(&hit.pin).rows();
            store.unpin(hit.pin);
            Some(rows)
        }
        Ok(Found::Miss(_)) | Err(_) => None,
    }
}

/// When the rows of a part are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Within the message that has planned the statement.
    AtOnce,
    /// All of them in the run that begins now: in one that is not part of the message of the start, or of an export.
    InThisRun,
    /// By several runs.
    InParts,
}

impl Reading {
    /// As a number, for plans.
    pub fn number(self) -> i32 {
        match self {
            Self::AtOnce => 0,
            Self::InThisRun => 1,
            Self::InParts => 2,
        }
    }

    /// What a number stands for.
    pub fn of_number(number: i32) -> Self {
        match number {
            0 => Self::AtOnce,
            1 => Self::InThisRun,
            _ => Self::InParts,
        }
    }
}

/// May others wait for what an export function computes?
fn may_share_export() -> bool {
    !portal::is_fetched_from() && backend::transaction_nest_level() == 1
}

/// Where the rows of the part come from.
pub enum Answer {
    /// From the store: the entry is held.
    Stored(*mut Hold),
    /// From running its plan; and what to do meanwhile.
    Run(Option<Task>),
}

/// Decides on a part that is about to be computed. The hold of a stored answer lasts as long as `context`.
///
/// # Safety
/// The context must be a live one.
pub unsafe fn at_start(part: QueryDesc<'_>, context: pg_sys::MemoryContext, reading: Reading) -> Answer {
    let Some(store) = shmem::store() else { return Answer::Run(None) };
    let (plan, explains) = (part.plan(), session::explaining());
    let question = Question::of(part);
    let question = match reading {
        Reading::AtOnce => question.started_by_client(quick_statements::take_planned()),
        // Whether it is too quick was asked when it began.
        Reading::InThisRun | Reading::InParts => question,
    };
    // What is read in parts is waited for by nobody. Nor is what an export reads in a subtransaction, whose end would leave its memory, and so its
    // claim, where they are.
    let is_shared = reading != Reading::InParts && (session::at_top_level() || may_share_export());
    let flags = if is_shared { 0 } else { SCROLL as i32 };
    let found = match find(&store, &question, Lateness::Refused) {
        Ok(found) if explains => Ok(found),
        found => found.map(|found| share_work(&store, part, flags, (found, Lateness::Refused))),
    };
    match found {
        Ok(Found::Hit(hit, verify)) => {
            // SAFETY: a hit has the columns of its entry; the caller's promise.
            let Some(hold) = (unsafe { Hold::in_context(context, hit.pin, hit.columns) }) else {
                return Answer::Run(None);
            };
            if !explains {
                session::set_status(Status::Hit);
                // What is computed from the answer is not compared.
                verify.map(|drawn| drawn.counted(&store));
                // SAFETY: a hold that was just made.
                if let Some(pin) = unsafe { (*hold).pin() } {
                    note_hit(&store, pin, plan);
                }
            }
            Answer::Stored(hold)
        }
        Ok(Found::Miss(_)) if explains => Answer::Run(None),
        Ok(Found::Miss(miss)) => {
            miss.note(&store, plan);
            Answer::Run(Some(Task::Store(miss)))
        }
        Err(reason) => {
            if !explains {
                note_bypass(&store, reason, plan);
            }
            Answer::Run(None)
        }
    }
}
