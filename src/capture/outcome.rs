//! What becomes of a result once its last row has been read: whether it is published, and who is told. Called by the query's own backend.

use std::time::Duration;

use arrow_cache_core::{Counter, Ending, Pin, Reason};

use super::fill::ResultFill;
use crate::lookup::{Miss, definition_versions, quick_statements, timing};
use crate::pg::encoding;
use crate::query::environment;
use crate::report::{decision_log, tally};
use crate::{session, settings, shmem};

/// Publishes a result that has been read to its end, unless it was too quick or settings have changed. Returns the pin of
/// the new entry. Tells why it was not stored; that it was is told by `note_stored`.
pub fn publish(miss: &Miss, fill: ResultFill, too_quick: bool, elapsed: Duration) -> Option<Pin> {
    let result = if too_quick {
        fill.abandon();
        Err(Reason::TooQuick)
    } else if settings_changed(miss) {
        fill.abandon();
        Err(Reason::SettingsChanged)
    } else if names_may_have_moved(miss) {
        fill.abandon();
        Err(Reason::DdlInProgress)
    } else {
        fill.publish(miss, elapsed)
    };
    result.map_err(|reason| note_refusal(miss, reason)).ok()
}

/// Have settings changed that are part of the key, or that the answer must not be computed under?
pub fn settings_changed(miss: &Miss) -> bool {
    (miss.receives_text && encoding::client_differs())
        || shmem::seed().is_none_or(|seed| environment::hash(seed, &miss.settings) != Ok(miss.environment))
}

/// May names in bodies of functions, which the server resolves while it runs, have come to stand for something else since the start?
fn names_may_have_moved(miss: &Miss) -> bool {
    miss.catalogs
        .is_some_and(|version| shmem::store().is_none_or(|store| definition_versions(&store).catalogs != version))
}

/// Notes for all sessions how long a query of this form takes when it is executed to its end, whether its answer is stored or not. Counts
/// that time, and the time that parts have saved.
pub fn note_form_time(miss: &Miss, elapsed: Duration) {
    if miss.is_part {
        return;
    }
    if let Some(store) = shmem::store() {
        let micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        store.counters().add(store.stripe(), Counter::TimeExecutedMicros, micros);
        timing::note_form(miss.form, micros, miss.combined);
    }
}

/// Remembers whether a run took less than `min_execution_time`, and returns that.
pub fn remember_speed(miss: &Miss, elapsed: Duration) -> bool {
    // A run that combines parts is quick because they are stored; computing the answer would not be.
    if miss.terms.insisted || miss.combined {
        return false;
    }
    let too_quick = elapsed < settings::min_execution_time() && !settings::debug_serve_fills();
    if let Some(store) = shmem::store() {
        store.note_too_quick(miss.key, too_quick);
    }
    quick_statements::note_run(miss.fingerprint, elapsed, too_quick);
    too_quick
}

/// Remembers how long the runs of a query have taken whose result was not read to its end.
pub fn remember_part(miss: &Miss, elapsed: Duration) {
    if !miss.terms.insisted && !miss.combined {
        quick_statements::note_part(miss.fingerprint, elapsed);
    }
}

/// Tells that a result was stored, and lets those go on who wait for it. Called when its pin was given back or is held: writing to the log accepts interrupts, and an error
/// would leave the pin behind.
pub fn note_stored(miss: &Miss) {
    miss.lead.end(Ending::Open);
    if let Some(store) = shmem::store_without_area() {
        store.claims().note_stored(miss.key);
    }
    if miss.is_part {
        return;
    }
    decision_log::note_late(miss.status(None), miss.query_id);
}

/// Counts and tells why a result was not stored.
pub fn note_refusal(miss: &Miss, reason: Reason) {
    miss.lead.note_refusal(reason);
    if miss.is_part {
        return;
    }
    if let Some(store) = shmem::store() {
        tally::count_refusal(&store, reason, miss.query_id);
    }
    let status = miss.status(Some(reason));
    session::set_status_of(miss.statement, status);
    decision_log::note_late(status, miss.query_id);
}
