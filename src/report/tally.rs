//! Counting what became of statements, in the counters that all backends share. Atomics, so no lock.

use arrow_cache_core::{Counter, Pin, Reason, Share};

use crate::pg::backend;
use crate::shmem::SharedStore;

/// Counts a served answer, and the time that serving it saved.
pub fn count_hit(store: &SharedStore, pin: &Pin) {
    store.touch(pin, backend::statement_start());
    let saved = store.view(pin).execution_micros();
    store.counters().add(store.stripe(), Counter::Hits, 1);
    store.counters().add(store.stripe(), Counter::TimeSavedMicros, saved);
}

/// Counts an outdated answer that was served, and the time that serving it saved.
pub fn count_stale_hit(store: &SharedStore, pin: &Pin) {
    store.touch(pin, backend::statement_start());
    let saved = store.view(pin).execution_micros();
    store.counters().add(store.stripe(), Counter::StaleHits, 1);
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

/// Counts a statement that was executed without a lookup, or in spite of one. Reasons are counted of queries of clients alone.
pub fn count_bypass(store: &SharedStore, reason: Reason) {
    match reason.share() {
        Share::Bypass => {
            store.counters().add(store.stripe(), Counter::Bypasses, 1);
            store.counters().add_reason(store.stripe(), reason);
        }
        Share::Other => count_other(store),
        Share::Nested => count_nested(store),
    }
}

/// Counts a statement of a client that no cache answers.
pub fn count_other(store: &SharedStore) {
    store.counters().add(store.stripe(), Counter::OtherStatements, 1);
}

/// Counts a statement that another one runs, or the server for it: in a function, for a trigger or a foreign key.
pub fn count_nested(store: &SharedStore) {
    store.counters().add(store.stripe(), Counter::NestedStatements, 1);
}
