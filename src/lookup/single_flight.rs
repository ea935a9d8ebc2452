//! One computes, the others wait: who misses an answer claims it, and who asks the same meanwhile waits for it, for a bounded time.
//!
//! Waiting changes only when a lookup is made, or a snapshot taken; whether a stored answer may be given is asked as for any other. A session waits
//! with the locks of its own statement, and gives up when somebody else waits for one of these, or when whoever computes is held up by a
//! lock or by its client: condition variables are unknown to the server's detection of deadlocks. Claims lie in shared memory (core,
//! `cache/claims.rs`); nothing else is kept.

use std::cell::Cell;
use std::time::{Duration, Instant};

use arrow_cache_core::{CacheKey, Claim, Claimed, Counter, Dependency, Ending, Reason, Taking};

use crate::pg::waiting;
use crate::query::hashes::FormId;
use crate::shmem::SharedStore;
use crate::{session, settings, shmem};

/// Forms that usually run shorter are computed by everybody: a wait would cost about as much.
const SHORTEST_RUN: Duration = Duration::from_millis(5);
/// For how many times the usual time of a form it is waited for, and so much longer: many sessions that come at once take time from whoever
/// computes.
const MOST_RUNS: u32 = 3;
const CROWD: Duration = Duration::from_millis(100);
/// How long a session sleeps before it looks whether it stands in somebody's way.
const SLICE: Duration = Duration::from_millis(20);

/// The claim of the answer that a statement computes, if it has it. Given back at the end, or when it is dropped, in the middle of error
/// recovery, too.
#[derive(Default)]
pub struct Lead(Cell<Option<Claim>>);

impl Lead {
    /// The answer is not stored.
    pub fn note_refusal(&self, reason: Reason) {
        let may_succeed_later = matches!(
            reason,
            Reason::ChangedMeanwhile
                | Reason::SettingsChanged
                | Reason::DdlInProgress
                | Reason::OwnDdl
                | Reason::OwnWrites
                | Reason::Disabled
                | Reason::PopulateOff
                | Reason::QuickRows
        );
        self.end(if may_succeed_later { Ending::Open } else { Ending::Hopeless });
    }

    /// Lets those go on who wait.
    pub fn end(&self, ending: Ending) {
        if let Some(claim) = self.0.take() {
            let place = claim.place();
            shmem::with_claims(|claims| claims.release(claim, ending));
            shmem::wake_waiters(place);
        }
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.end(Ending::Open);
    }
}

/// What a statement is to do that has missed its answer.
pub enum Joined {
    /// To compute it, for itself and perhaps for others.
    Computes(Lead),
    /// To look once more: somebody else was computing it, and is not any more.
    LooksAgain,
}

/// How long one statement still waits at the start of its execution, for whoever computes its answer: several one after the other, if they fail.
#[derive(Default)]
pub struct Patience(Option<Instant>);

impl Patience {
    /// What is left of `bound`, which is counted from the first time; `None` if nothing is.
    fn left(&mut self, bound: Duration) -> Option<Duration> {
        let now = Instant::now();
        Some(self.0.get_or_insert(now + bound).saturating_duration_since(now)).filter(|left| !left.is_zero())
    }
}

/// Claims the answer that a statement has missed, or waits for whoever has claimed it. If that one gives up, one of those who have waited takes
/// its place, and the others wait for it. Without `sleeps` it does not wait, and is to look again.
pub fn join(
    store: &SharedStore,
    key: CacheKey,
    form: FormId,
    dependencies: &[Dependency],
    patience: &mut Patience,
    sleeps: bool,
) -> Joined {
    let alone = || Joined::Computes(Lead::default());
    let Some(bound) = longest_wait(store, form) else { return alone() };
    match store.claims().take(key, dependencies, &store.versions(), waiting::own_process()) {
        Taking::Taken(claim) => Joined::Computes(Lead(Cell::new(Some(claim)))),
        Taking::Claimed(_) if !sleeps => Joined::LooksAgain,
        Taking::Claimed(claimed) if may_sleep() => {
            let relations =
                || dependencies.iter().map(|dependency| dependency.relation).filter(|relation| *relation != 0);
            let is_over = patience.left(bound).is_some_and(|left| wait(store, &claimed, relations, left));
            if is_over { Joined::LooksAgain } else { alone() }
        }
        Taking::Claimed(_) | Taking::Refused => alone(),
    }
}

/// Does somebody compute this answer now?
pub fn is_computed(store: &SharedStore, key: CacheKey) -> bool {
    store.claims().find(key, &store.versions()).is_some()
}

/// Does somebody compute this answer, though it may be outdated already when it is stored?
pub fn is_claimed(store: &SharedStore, key: CacheKey) -> bool {
    store.claims().is_claimed(key)
}

/// Is there an answer, after a wait? Counts it if so.
pub fn is_answered(store: &SharedStore, key: CacheKey) -> bool {
    let is_there = store.lookup(key).is_some_and(|pin| {
        let is_current = store.is_current(&pin);
        store.unpin(pin);
        is_current
    });
    store.counters().add(store.stripe(), Counter::WaitsAnswered, u64::from(is_there));
    is_there
}

/// Waits for whoever computes an answer, before a query is planned whose stored answer is outdated; says whether it is to be looked at
/// again. The snapshot of the execution is taken later, so that it sees what the answer rests on. `relations` are those that the query
/// reads.
pub fn wait_before_planning(store: &SharedStore, key: CacheKey, form: FormId, relations: &[u32]) -> bool {
    if session::explaining() {
        return false;
    }
    let Some(claimed) = store.claims().find(key, &store.versions()) else { return false };
    let Some(bound) = longest_wait(store, form).filter(|_| may_sleep()) else { return false };
    wait(store, &claimed, || relations.iter().copied(), bound)
}

/// How long a statement of this form waits at most; `None` if it does not wait, and nobody for it.
fn longest_wait(store: &SharedStore, form: FormId) -> Option<Duration> {
    let most = settings::max_wait();
    if most.is_zero() || settings::debug_serve_fills() {
        return None;
    }
    let times = store.form_times(form.0);
    let usual = Duration::from_micros(times.plain_micros);
    if times.executions > 0 && usual < SHORTEST_RUN {
        return None;
    }
    let bound = if times.executions > 0 { most.min(usual * MOST_RUNS + CROWD) } else { most };
    // Enough is left for computing the answer without waiting any longer.
    let spare = |left: Duration| if times.executions > 0 { left.saturating_sub(usual * 2) } else { left / 4 };
    Some(waiting::time_left().map_or(bound, |left| bound.min(spare(left))))
}

/// May the session sleep for another one? Its transaction has no locks but those of its statement.
fn may_sleep() -> bool {
    waiting::is_alone_in_transaction()
}

/// Waits until a claim is given back; says whether it was. Gives up when waiting is in vain or in somebody's way.
fn wait<R: Iterator<Item = u32>>(
    store: &SharedStore,
    claimed: &Claimed,
    relations: impl Fn() -> R,
    bound: Duration,
) -> bool {
    let began = Instant::now();
    let (claims, versions) = (store.claims(), store.versions());
    let is_in_vain = || !claims.is_promising(claimed, &versions) || waiting::is_held_up(claimed.owner());
    let mut has_slept = false;
    while claims.is_held(claimed) {
        let left = bound.saturating_sub(began.elapsed());
        if left.is_zero() || is_in_vain() || waiting::has_waiters(&relations) {
            break;
        }
        shmem::sleep_on_claim(claimed, left.min(SLICE));
        has_slept = true;
    }
    if has_slept {
        waiting::leave();
        let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        store.counters().add(store.stripe(), Counter::Waits, 1);
        store.counters().add(store.stripe(), Counter::WaitMicros, micros);
    }
    !claims.is_held(claimed)
}
