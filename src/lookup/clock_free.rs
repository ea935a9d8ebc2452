//! The decision when a statement starts whose plan applies the clock to a clock-free part (`query::shown_clock`): is the part stored? It is looked
//! up, counted and stored like a statement of its own, and what becomes of it is what becomes of the statement. Keeps nothing.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::find::{Lateness, find};
use super::outcome::{Found, note_bypass, note_hit};
use super::question::Question;
use super::quick_statements;
use super::start::{Task, share_work};
use crate::pg::query_desc::QueryDesc;
use crate::pg::tree::Tree;
use crate::query::clock::{self, Clock};
use crate::query::identity;
use crate::serve::Hold;
use crate::session::{self, Status};
use crate::shmem;

/// Do the clock expressions of an eligible query have values that change by less than a minute? Then its answer will not be looked up, unless a
/// canonical bound stands for them. `seed` is the secret of the store.
pub fn moves(query: Tree<'_, pg_sys::Query>, seed: u64) -> bool {
    let identified = identity::of(query, seed).and_then(|identity| identity.into_identified());
    identified.is_ok_and(|identified| {
        let clock = Clock { program: identified.clock, params: None, one_message: true, sight: None };
        clock::hash_values(&clock, seed) == Err(Reason::MovingClock)
    })
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
pub unsafe fn at_start(part: QueryDesc<'_>, context: pg_sys::MemoryContext) -> Answer {
    let Some(store) = shmem::store() else { return Answer::Run(None) };
    let (plan, explains) = (part.plan(), session::explaining());
    let question = Question::of(part).started_by_client(quick_statements::take_planned());
    let found = match find(&store, &question, Lateness::Refused) {
        Ok(found) if explains => Ok(found),
        found => found.map(|found| share_work(&store, part, 0, (found, Lateness::Refused))),
    };
    match found {
        Ok(Found::Hit(hit, _)) => {
            // SAFETY: a hit has the columns of its entry; the caller's promise.
            let Some(hold) = (unsafe { Hold::in_context(context, hit.pin, hit.columns) }) else {
                return Answer::Run(None);
            };
            if !explains {
                session::set_status(Status::Hit);
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
