//! The present wait of this session for another one: how long it has taken, and how it ends, as `arrow_cache.stats` counts it. Each wait ends in
//! one way, and is counted when it does. State of this backend; no lock.

use std::cell::Cell;
use std::time::{Duration, Instant};

use arrow_cache_core::Counter;

use crate::pg::backend_local::Local;
use crate::shmem;

/// How a wait has ended. One that is neither of these was stopped: by an error, or by the end of the session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitEnd {
    /// The answer was there.
    Answered,
    /// The other one has stored nothing, and this session computes in its place.
    TakenOver,
    /// It took as long as it may.
    TimedOut,
    /// It was in vain, or in somebody's way.
    GivenUp,
}

/// A wait that has not ended. It may be made of several sleeps: for one session, and for who takes its place.
#[derive(Clone, Copy)]
struct Wait {
    slept: Duration,
    /// When the present sleep began.
    sleeping_since: Option<Instant>,
}

static PRESENT: Local<Cell<Option<Wait>>> = Local::new(Cell::new(None));

/// The session is about to sleep.
pub fn begin_sleep() {
    let slept = PRESENT.get().map_or(Duration::ZERO, |wait| wait.slept);
    PRESENT.set(Some(Wait { slept, sleeping_since: Some(Instant::now()) }));
}

/// The session has slept; its wait goes on until `end`.
pub fn end_sleep() {
    if let Some(wait) = PRESENT.get() {
        PRESENT.set(Some(Wait { slept: total(wait), sleeping_since: None }));
    }
}

/// The session does not wait any more. Counts the wait, if there was one.
#[inline]
pub fn end(how: WaitEnd) {
    count(match how {
        WaitEnd::Answered => Counter::WaitsAnswered,
        WaitEnd::TakenOver => Counter::WaitsTakenOver,
        WaitEnd::TimedOut => Counter::WaitsTimedOut,
        WaitEnd::GivenUp => Counter::WaitsGivenUp,
    });
}

/// The transaction has ended. A wait of which nobody has told how it ended was stopped; if the transaction was committed, its statement has
/// found the answer when it started. Cannot raise.
pub fn transaction_ended(is_committed: bool) {
    count(if is_committed { Counter::WaitsAnswered } else { Counter::WaitsStopped });
}

fn total(wait: Wait) -> Duration {
    wait.slept + wait.sleeping_since.map_or(Duration::ZERO, |since| since.elapsed())
}

/// Is there a wait of which nobody has told how it ended?
#[inline]
pub fn is_any() -> bool {
    PRESENT.get().is_some()
}

#[inline]
fn count(counter: Counter) {
    if is_any() {
        count_present(counter);
    }
}

#[cold]
#[inline(never)]
fn count_present(counter: Counter) {
    let Some(wait) = PRESENT.take() else { return };
    let micros = u64::try_from(total(wait).as_micros()).unwrap_or(u64::MAX);
    if let Some(store) = shmem::store_without_area() {
        store.counters().add(store.stripe(), counter, 1);
        store.counters().add(store.stripe(), Counter::WaitMicros, micros);
    }
}
