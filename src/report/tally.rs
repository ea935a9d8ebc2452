//! Counting what became of statements, in the counters that all backends share, and for each statement by its query id
//! (0 = it has none). What is counted for a statement takes a lock that sessions share.

use arrow_cache_core::{Counter, Pin, Reason, Share, StatementCounter, StatementCounts, StatementKey, Stripe};

use crate::pg::backend;
use crate::shmem::SharedStore;

/// Counts a served answer, which may be outdated (`stale`), and the time that serving it saved.
pub fn count_hit(store: &SharedStore, pin: &Pin, stale: bool, query_id: i64) {
    let (counter, of_statement) =
        if stale { (Counter::StaleHits, StatementCounter::StaleHits) } else { (Counter::Hits, StatementCounter::Hits) };
    store.touch(pin, backend::statement_start());
    let saved = store.view(pin).execution_micros();
    store.counters().add(store.stripe(), counter, 1);
    store.counters().add(store.stripe(), Counter::TimeSavedMicros, saved);
    count_of(store, query_id, || StatementCounts::one(of_statement).saving(saved));
}

/// Counts a lookup that found nothing, or only an outdated answer (`stale`). `refused` is why the new answer will not
/// be stored.
pub fn count_miss(store: &SharedStore, stale: bool, refused: Option<Reason>, query_id: i64) {
    let (counter, of_statement) =
        if stale { (Counter::Stale, StatementCounter::Stale) } else { (Counter::Misses, StatementCounter::Misses) };
    store.counters().add(store.stripe(), counter, 1);
    if let Some(reason) = refused {
        store.counters().add_reason(store.stripe(), reason);
    }
    count_of(store, query_id, || StatementCounts::one(of_statement).because(refused));
}

/// Counts why the answer of a miss was not stored, once that is known.
pub fn count_refusal(store: &SharedStore, reason: Reason, query_id: i64) {
    store.counters().add_reason(store.stripe(), reason);
    count_of(store, query_id, || StatementCounts::default().because(Some(reason)));
}

/// Counts a statement that was executed without a lookup, or in spite of one. Reasons are counted of queries of clients
/// alone.
pub fn count_bypass(store: &SharedStore, reason: Reason, query_id: i64) {
    count_once(store.counters().own(store.stripe()), reason);
    if reason.share() == Share::Bypass {
        count_of(store, query_id, || StatementCounts::one(StatementCounter::Bypasses).because(Some(reason)));
    }
}

/// Returns true if a bypass for this reason counts among those of this backend alone, and not for its statement too.
#[inline]
pub fn is_counted_once(reason: Reason, query_id: i64) -> bool {
    query_id == 0 || reason.share() != Share::Bypass
}

/// Counts a bypass that `is_counted_once`.
#[inline]
pub fn count_once(counters: &Stripe, reason: Reason) {
    match reason.share() {
        Share::Bypass => {
            counters.add(Counter::Bypasses, 1);
            counters.add_reason(reason);
        }
        Share::Other => counters.add(Counter::OtherStatements, 1),
        Share::Nested => counters.add(Counter::NestedStatements, 1),
    }
}

/// Counts a statement that another one runs, or the server for it: in a function, for a trigger or a foreign key.
pub fn count_nested(store: &SharedStore) {
    store.counters().add(store.stripe(), Counter::NestedStatements, 1);
}

/// Counts for the statement of this query id, as which the present role asks.
fn count_of(store: &SharedStore, query_id: i64, counts: impl FnOnce() -> StatementCounts) {
    if query_id == 0 {
        return;
    }
    let database = backend::database();
    let key = StatementKey { query_id, user: backend::user_id().to_u32(), database };
    store.count_statement(key, counts(), backend::statement_start());
}
