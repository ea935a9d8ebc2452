//! Asking the cache about a query that is exported, before its plan is started: either there is a stored answer, or the
//! plan has to run.

use std::rc::Rc;

use arrow_cache_core::Reason;

use crate::arrow::column::Column;
use crate::error::CacheError;
use crate::lookup;
use crate::lookup::{Found, Lateness, Miss, Question, clock_free, portal, single_flight};
use crate::pg::query_desc::QueryDesc;
use crate::pg::{backend, compat};
use crate::report::{decision_log, tally};
use crate::serve::{self, Hit, StoredChunks};
use crate::session::{self, Status};
use crate::settings;
use crate::shmem::SharedStore;

/// What the cache answers to one query.
pub struct Decision {
    /// The address of the query.
    pub(super) query: usize,
    pub(super) answer: Answer,
}

/// What becomes of the query.
pub(super) enum Answer {
    /// A stored answer is delivered: its columns, and where its chunks are. The serving plan, which holds it in place,
    /// has replaced the query's own.
    Stored { columns: Rc<[Column]>, chunks: StoredChunks },
    /// The plan runs, and its rows may be stored.
    Run(Option<Box<Miss>>),
    /// The plan applies the clock to its clock-free part, whose rows are stored, or may be.
    AbovePart(Option<Box<Miss>>),
}

impl Answer {
    /// The columns of the answer in the cache, the present one or the one to come.
    pub(super) fn columns(&self) -> Option<&[Column]> {
        match self {
            Self::Stored { columns, .. } => Some(columns),
            Self::Run(miss) => miss.as_ref().map(|miss| &*miss.columns),
            Self::AbovePart(_) => None,
        }
    }
}

/// Asks the cache, counts the answer, and on a hit puts the serving plan in the place of the query's own. The query
/// must not be started yet. `stays_open` tells that other statements may run before its last row is read.
pub fn decide(store: &SharedStore, query: QueryDesc<'_>, stays_open: bool) -> Decision {
    assert!(!query.is_started(), "the cache is asked before the start");
    let part = clock_free::part_of(query);
    let question = Question { stays_open, ..Question::of(part.unwrap_or(query)) };
    let answer = match part {
        None => answer(store, query, &question),
        Some(part) => answer_of_part(store, query, part, &question),
    };
    Decision { query: query.address(), answer }
}

/// Asks about the clock-free part of a query.
fn answer_of_part(store: &SharedStore, query: QueryDesc<'_>, part: QueryDesc<'_>, question: &Question<'_>) -> Answer {
    // SAFETY: the part of this query, which is not started.
    unsafe {
        match answer(store, part, question) {
            Answer::Stored { .. } => {
                clock_free::serve_below(query, part);
                Answer::AbovePart(None)
            }
            Answer::Run(Some(miss)) => {
                clock_free::tap_below(query, part);
                Answer::AbovePart(Some(miss))
            }
            Answer::Run(None) | Answer::AbovePart(_) => Answer::AbovePart(None),
        }
    }
}

/// Asks about a query, or its part.
fn answer(store: &SharedStore, query: QueryDesc<'_>, question: &Question<'_>) -> Answer {
    let find = || lookup::find(store, question, Lateness::Refused);
    let found = if settings::enabled() { find().map(|found| share(store, found, find)) } else { Err(Reason::Disabled) };
    match found {
        Ok(Found::Hit(hit, _)) => stored(store, query, hit),
        Ok(Found::Miss(miss)) => {
            miss.note(store, query.plan());
            Answer::Run(Some(miss))
        }
        Err(reason) => bypass(store, query, reason),
    }
}

/// Has a miss computed by one of those who ask at the same time, unless it will not be stored. Not in a subtransaction,
/// whose end would leave the export's memory, and so its claim, where they are.
fn share(store: &SharedStore, found: Found, find: impl Fn() -> Result<Found, Reason>) -> Found {
    let may_share = match &found {
        Found::Hit(..) => false,
        Found::Miss(miss) => {
            !miss.guarantees.observes && !portal::is_fetched_from() && backend::transaction_nest_level() == 1
        }
    };
    if may_share { single_flight::share(store, found, find) } else { found }
}

/// Counts and tells why the query is executed without the cache.
fn bypass(store: &SharedStore, query: QueryDesc<'_>, reason: Reason) -> Answer {
    if reason != Reason::Disabled {
        tally::count_bypass(store, reason, compat::query_id(query.plan().get()));
    }
    session::set_status(Status::Bypass(reason));
    decision_log::note(Status::Bypass(reason), query.plan().get());
    Answer::Run(None)
}

/// The stored answer of a hit, which replaces the query's plan. The plan is executed when there is no memory to hold
/// the entry in place, or it cannot be read.
fn stored(store: &SharedStore, query: QueryDesc<'_>, hit: Hit) -> Answer {
    let columns = hit.columns.clone();
    // First of all the entry is held: an error then lets it go.
    let pin = match serve::swap_plan(query, hit) {
        Ok(pin) => pin,
        Err(reason) => return bypass(store, query, reason),
    };
    // SAFETY: the serving plan holds the entry in place until the query's descriptor is gone.
    match unsafe { StoredChunks::of(store, &store.view(pin)) } {
        Ok(chunks) => Answer::Stored { columns, chunks },
        Err(Reason::OutOfMemory) => CacheError::out_of_memory().raise(),
        Err(_) => CacheError::unservable_answer().raise(),
    }
}
