//! May a stored answer be given to a statement now? Validity is decided here, and nowhere earlier. Keeps nothing.

use arrow_cache_core::{Counter, Pin, Reason, SnapshotView, Validity};

use crate::pg::backend;
use crate::query::statement_terms::StatementTerms;
use crate::shmem::SharedStore;

/// May this entry be given to a statement with this text and these columns? `Ok(false)` when it is of no use now; entries that are of
/// no use to anybody are retired.
///
/// # Errors
/// The reason to bypass: the entry answers another statement, or a writer that the snapshot does not see may have changed the answer.
pub fn check(
    store: &SharedStore,
    pin: &Pin,
    text: &[u8],
    descriptor: &[u8],
    snapshot: &SnapshotView<'_>,
    terms: StatementTerms,
) -> Result<bool, Reason> {
    let view = store.view(pin);
    if view.text() != text || view.descriptor() != descriptor {
        return Err(Reason::KeyCollision);
    }
    match store.valid_for(pin, snapshot) {
        Validity::Changed => {
            // It stays for those who take it within their `max_stale`, until another one takes its place.
            if !store.keeps_outdated(pin) {
                store.retire(pin);
            }
            return Ok(false);
        }
        Validity::NotVisible => return Err(Reason::WriterInProgress),
        Validity::Valid => {}
    }
    let now = backend::statement_start();
    if has_expired(store, pin) {
        if store.retire(pin) {
            store.counters().add(store.stripe(), Counter::Expirations, 1);
        }
        return Ok(false);
    }
    if terms.max_stale_micros().is_some() {
        // The message arrived before the slots were read, so the answer was right then or later, whenever the snapshot was taken.
        store.renew(pin, now);
        store.keep_outdated(pin);
    }
    Ok(is_young_enough(store, pin, terms))
}

/// Will `check` find that nothing that the entry rests on has changed, and that it is not too old for these terms? As far as that is known before there is a snapshot.
pub fn is_promising(store: &SharedStore, pin: &Pin, terms: StatementTerms) -> bool {
    store.is_current(pin) && !has_expired(store, pin) && is_young_enough(store, pin, terms)
}

fn has_expired(store: &SharedStore, pin: &Pin) -> bool {
    store.view(pin).expires_at() <= backend::statement_start()
}

fn is_young_enough(store: &SharedStore, pin: &Pin, terms: StatementTerms) -> bool {
    let age = backend::statement_start().saturating_sub(store.view(pin).created_at());
    terms.ttl_micros().is_none_or(|ttl| age <= ttl)
}
