//! One computes, the others wait: who misses an answer claims it, and who asks the same meanwhile waits for it, for a
//! bounded time.
//!
//! Waiting changes only when a lookup is made; whether a stored answer may be given is asked as for any other. A
//! session that waits holds locks, and condition variables are unknown to the server's detection of deadlocks. So it
//! gives up when somebody waits for a lock that it holds, or when whoever computes is held up by a lock or by its
//! client. Who waits holds no claim that others wait for.
//!
//! Claims lie in shared memory (core, `cache/claims.rs`), those of this session in `held_claims`; `waited` counts how
//! waits end.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use arrow_cache_core::{CacheKey, Claimed, Counter, Dependency, Reason, Taking, Wanted};
use pgrx::pg_sys::{self, NodeTag};

use super::held_claims::{self, Lead};
use super::outcome::{Found, Guarantees};
use super::portal;
use super::waited;
use crate::pg::backend_local::Local;
use crate::pg::lists::nodes;
use crate::pg::{attention, backend, waiting};
use crate::query::hashes::FormId;
use crate::shmem::SharedStore;
use crate::{session, settings, shmem};

/// Forms that usually run shorter are computed by everybody: a wait would cost about as much.
const SHORTEST_RUN: Duration = Duration::from_millis(5);
/// For how many times the usual time of a form one session that computes it is waited for, and so much longer: many
/// sessions that come at once take time from whoever computes.
const MOST_RUNS: u32 = 3;
const CROWD: Duration = Duration::from_millis(100);
/// How long a session sleeps before it looks whether it stands in somebody's way.
const SLICE: Duration = Duration::from_millis(20);

/// Something is to be done at the end of the transaction.
static USED: Local<Cell<bool>> = Local::new(Cell::new(false));

/// What a session misses, and what it will rest on.
#[derive(Clone, Copy)]
struct Missed<'m> {
    /// Its key.
    key: CacheKey,
    /// The form of its query.
    form: FormId,
    /// The versions that it will rest on.
    dependencies: &'m [Dependency],
    /// True if rows may change while it is computed.
    wanted: Wanted,
}

/// What a statement is to do that has missed its answer.
enum Joined {
    /// To compute it, for itself and perhaps for others.
    Computes(Lead),
    /// To look once more: somebody else was computing it, and is not any more.
    LooksAgain,
}

/// How long a statement waits at most.
#[derive(Clone, Copy)]
struct Bounds {
    /// For all who compute its answer, one after the other if they fail.
    in_all: Duration,
    /// For one of them.
    for_one: Duration,
}

/// Has a miss computed by one of those who ask at the same time. `ask` looks the question up once more.
pub fn share(store: &SharedStore, found: Found, ask: impl Fn() -> Result<Found, Reason>) -> Found {
    let Found::Miss(mut miss) = found else { return found };
    let form = miss.statement.as_ref().map(|missed| missed.form).filter(|_| miss.refused.is_none());
    let Some(form) = form else { return Found::Miss(miss) };
    let mut until = None;
    let Guarantees { stale_bound, known_good, catalogs, .. } = miss.guarantees;
    let wanted = stale_bound
        .map_or(Wanted::Current, |bound| late(store, known_good, backend::now().saturating_sub(bound), catalogs));
    // Who accepts an outdated answer looks for it again before it waits: by now somebody else computes the next one.
    let mut sleeps = stale_bound.is_none();
    loop {
        let missed = Missed { key: miss.key, form, dependencies: &miss.guarantees.dependencies, wanted };
        match join(store, missed, &mut until, sleeps) {
            Joined::Computes(lead) => {
                miss.lead = Rc::new(lead);
                return Found::Miss(miss);
            }
            Joined::LooksAgain => {}
        }
        if (!sleeps || stale_bound.is_some() || is_answered(store, miss.key))
            && let Ok(hit @ Found::Hit(..)) = ask()
        {
            waited::end(Counter::WaitsAnswered);
            return hit;
        }
        sleeps = true;
    }
}

/// Claims what a statement has missed, or waits for whoever has claimed it. If that one gives up, one of those who have
/// waited takes its place, and the others wait for it, all `until` the same time, which counts from the first. Without
/// `sleeps` it does not wait, and is to look again.
fn join(store: &SharedStore, missed: Missed<'_>, until: &mut Option<Instant>, sleeps: bool) -> Joined {
    let alone = |how| {
        waited::end(how);
        Joined::Computes(Lead::default())
    };
    let bounds = longest_wait(store, missed.form);
    // Who accepts outdated answers is given one while somebody computes the next: that one claims it even if nobody is
    // to wait.
    if (bounds.is_none() && missed.wanted == Wanted::Current) || !held_claims::has_room() {
        return alone(Counter::WaitsGivenUp);
    }
    note_use();
    match store.claims().take(missed.key, missed.dependencies, &store.versions(), waiting::own_process(), missed.wanted)
    {
        Taking::Taken(claim) => {
            waited::end(Counter::WaitsTakenOver);
            Joined::Computes(Lead::of(claim))
        }
        Taking::Claimed(_) if !sleeps => Joined::LooksAgain,
        Taking::Claimed(claimed) => {
            let Some(bounds) = bounds.filter(|_| may_sleep()) else { return alone(Counter::WaitsGivenUp) };
            let now = Instant::now();
            let left = until.get_or_insert(now + bounds.in_all).saturating_duration_since(now);
            match wait(store, &claimed, missed.wanted, left.min(bounds.for_one)) {
                None => Joined::LooksAgain,
                Some(how) => alone(how),
            }
        }
        Taking::Refused => alone(Counter::WaitsGivenUp),
    }
}

/// Returns true if somebody computes this answer now.
pub fn is_computed(store: &SharedStore, key: CacheKey, wanted: Wanted) -> bool {
    store.claims().find(key, &store.versions(), wanted).is_some()
}

/// What a statement wants that accepts outdated answers as of `earliest`, but none from before its session's own
/// commits. Its own answer would be right as of `as_of`, and is not stored late if the definitions have not the version
/// `catalogs` any more. Times in microseconds.
pub fn late(store: &SharedStore, as_of: i64, earliest: i64, catalogs: u64) -> Wanted {
    let database = backend::database();
    let earliest = earliest.max(session::last_own_commit().saturating_add(1));
    Wanted::Late { as_of, earliest, catalogs: (store.versions().catalogs(database), catalogs) }
}

/// Returns true if there is an answer that is not outdated.
fn is_answered(store: &SharedStore, key: CacheKey) -> bool {
    store.lookup(key).is_some_and(|pin| {
        let is_current = store.is_current(&pin);
        store.unpin(pin);
        is_current
    })
}

/// Something is kept until the transaction ends.
fn note_use() {
    attention::leave_for_end();
    USED.set(true);
}

/// The transaction has ended: nobody waits any longer for what it was to compute. A wait that has not ended by now was
/// stopped. Cannot raise.
#[inline]
pub fn transaction_ended() {
    if USED.replace(false) {
        held_claims::transaction_ended();
        waited::end(Counter::WaitsStopped);
    }
}

/// How long a statement of this form waits at most; `None` if it does not wait, and nobody for it.
fn longest_wait(store: &SharedStore, form: FormId) -> Option<Bounds> {
    let most = settings::max_wait();
    if most.is_zero() {
        return None;
    }
    let times = store.speed(form.0);
    let usual = Duration::from_micros(times.plain_micros);
    if times.executions > 0 && usual < SHORTEST_RUN {
        return None;
    }
    // Enough is left for computing the answer without waiting any longer. A form leaves out constants: with these it
    // may take longer than usual.
    let spare = |left: Duration| left.saturating_sub(usual * 2).min(left / 4);
    let in_all = waiting::time_left().map_or(most, |left| most.min(spare(left)));
    Some(Bounds { in_all, for_one: if times.executions > 0 { in_all.min(usual * MOST_RUNS + CROWD) } else { in_all } })
}

/// Returns true if the session may sleep for another one. Its transaction has done nothing before its statement, and
/// nobody waits for it who could be waited for.
fn may_sleep() -> bool {
    !held_claims::is_any()
        && session::depth() <= 1
        && !runs_code()
        && backend::transaction_nest_level() == 1
        && waiting::is_alone_in_transaction()
}

/// Returns true if the active portal runs a block of code, which may have taken locks before the query under way.
fn runs_code() -> bool {
    portal::active().is_some_and(|portal| {
        // SAFETY: an active portal has a list of statements, all of them plans.
        let mut statements = unsafe { nodes::<pg_sys::PlannedStmt>(portal.stmts) };
        statements.any(|plan| {
            // SAFETY: as above; the statement of a plan is null or a node.
            let utility = unsafe { (*plan).utilityStmt.as_ref() };
            utility.is_some_and(|node| matches!(node.type_, NodeTag::T_DoStmt | NodeTag::T_CallStmt))
        })
    })
}

/// Waits until a claim is given back. If it is waited for no longer, since that takes too long, or is in vain or in
/// somebody's way, returns as what that counts.
fn wait(store: &SharedStore, claimed: &Claimed, wanted: Wanted, bound: Duration) -> Option<Counter> {
    let began = Instant::now();
    let (claims, versions) = (store.claims(), store.versions());
    let mut has_slept = false;
    let waited = loop {
        if !claims.is_held(claimed) {
            break None;
        }
        let left = bound.saturating_sub(began.elapsed());
        if left.is_zero() {
            break Some(Counter::WaitsTimedOut);
        }
        let is_promising = claims.is_promising(claimed, &versions, wanted);
        if !is_promising || waiting::is_held_up(claimed.owner()) || waiting::is_in_the_way() {
            break Some(Counter::WaitsGivenUp);
        }
        waited::begin();
        has_slept = true;
        shmem::sleep_on_claim(claimed, left.min(SLICE));
    };
    if has_slept {
        waiting::leave();
    }
    // It may have been given back just now.
    waited.filter(|_| claims.is_held(claimed))
}
