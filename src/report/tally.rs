//! Counting what became of statements, in the counters that all backends share. Atomics, so no lock.

use arrow_cache_core::{Counter, Pin, Reason};

use crate::pg::backend;
use crate::shmem::SharedStore;

/// Counts a served answer, and the time that serving it saved.
pub fn count_hit(store: &SharedStore, pin: &Pin) {
    store.touch(pin, backend::statement_start());
    let saved = store.view(pin).execution_micros();
    store.counters().add(store.stripe(), Counter::Hits, 1);
    store.counters().add(store.stripe(), Counter::TimeSavedMicros, saved);
}

/// Counts a lookup that found nothing, or only an outdated answer (`stale`). `refused` is why the new answer will not be stored.
pub fn count_miss(store: &SharedStore, stale: bool, refused: Option<Reason>) {
    let counter = if stale { Counter::Stale } else { Counter::Misses };
    store.counters().add(store.stripe(), counter, 1);
    if let Some(reason) = refused {
        store.counters().add_reason(store.stripe(), reason);
    }
}

/// Counts a statement that was executed without a lookup, or in spite of one.
pub fn count_bypass(store: &SharedStore, reason: Reason) {
    store.counters().add(store.stripe(), Counter::Bypasses, 1);
    store.counters().add_reason(store.stripe(), reason);
}
