//! The present wait of this session for others that compute its answer: when it began, and how it ends, as
//! `arrow_cache.stats` counts it. Each wait ends in one way, and is counted when it does. State of this backend; no
//! lock.

use std::cell::Cell;
use std::time::Instant;

use arrow_cache_core::Counter;

use crate::pg::backend_local::Local;
use crate::shmem;

/// When the statement under way began to wait.
static SINCE: Local<Cell<Option<Instant>>> = Local::new(Cell::new(None));

/// The session is about to sleep.
pub fn begin() {
    SINCE.set(SINCE.get().or_else(|| Some(Instant::now())));
}

/// The session does not wait any more: counts how the wait has ended, if there was one. Cannot raise.
pub fn end(how: Counter) {
    let Some(since) = SINCE.take() else { return };
    let Some(store) = shmem::store_without_area() else { return };
    let micros = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
    store.counters().add(store.stripe(), how, 1);
    store.counters().add(store.stripe(), Counter::WaitMicros, micros);
}
