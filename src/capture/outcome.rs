//! What becomes of a result once its last row has been read: whether it is published, and who is told. Called by the
//! query's own backend.

use std::time::Duration;

use arrow_cache_core::{Counter, Ending, Pin, Reason};

use super::fill::ResultFill;
use crate::invalidation::registration;
use crate::lookup::{Miss, Missed, admission, quick_statements, timing};
use crate::report::{decision_log, tally};
use crate::{session, shmem};

/// Publishes a result that has been read to its end, unless it was too quick or something has changed since the start.
/// Returns the pin of the new entry. Tells why it was not stored; that it was is told by `note_stored`.
pub fn publish(miss: &Miss, fill: ResultFill, too_quick: bool, elapsed: Duration) -> Option<Pin> {
    let checked = if too_quick { Err(Reason::TooQuick) } else { check_start(miss) };
    let result = match checked {
        Ok(()) => fill.publish(miss, elapsed),
        Err(reason) => {
            fill.abandon();
            Err(reason)
        }
    };
    result.map_err(|reason| note_refusal(miss, reason)).ok()
}

/// Checks that everything is as it was when the statement was started.
///
/// # Errors
/// As `StartedUnder::check`.
pub fn check_start(miss: &Miss) -> Result<(), Reason> {
    miss.guarantees.started.check(&shmem::store().ok_or(Reason::NoRoom)?)
}

/// Notes for all sessions how long a query of this key, and of its form, takes when it is executed to its end, whether
/// its answer is stored or not. Counts that time, and the time that parts have saved.
pub fn note_form_time(miss: &Miss, elapsed: Duration) {
    if let (Some(missed), Some(store)) = (&miss.statement, shmem::store()) {
        let micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        store.counters().add(store.stripe(), Counter::TimeExecutedMicros, micros);
        timing::note_form(missed.form, micros, missed.combined);
        // A run that combines parts is quick because they are stored; computing the answer would not be.
        let usual = if missed.combined { store.speed(missed.form.0).plain_micros } else { 0 };
        admission::note_run(&store, miss.key, micros.max(usual));
    }
}

/// The statement of a miss, if its run tells how quick its fingerprint is: one with a hint, or of parts, does not.
fn timed(miss: &Miss) -> Option<&Missed> {
    miss.statement.as_ref().filter(|missed| !miss.terms.insisted && !missed.combined)
}

/// Remembers whether a run took less than `min_execution_time`, and returns that.
pub fn remember_speed(miss: &Miss, elapsed: Duration) -> bool {
    timed(miss).is_some_and(|missed| quick_statements::note_run(missed.fingerprint, elapsed, true))
}

/// Remembers how long the runs of a query have taken whose result was not read to its end.
pub fn remember_part(miss: &Miss, elapsed: Duration) {
    if let Some(missed) = timed(miss) {
        quick_statements::note_part(missed.fingerprint, elapsed);
    }
}

/// Tells that a result was stored, and lets those go on who wait for it. Called when its pin was given back or is held:
/// writing to the log accepts interrupts, and an error would leave the pin behind.
pub fn note_stored(miss: &Miss) {
    miss.lead.end(Ending::Open);
    if let Some(store) = shmem::store_without_area() {
        store.claims().note_stored(miss.key);
        miss.guarantees.wishes.iter().for_each(|wish| registration::note_wish(&store, wish));
    }
    if let Some(missed) = &miss.statement {
        decision_log::note_late(miss.status(None), missed.query_id);
    }
}

/// Counts and tells why a result was not stored.
pub fn note_refusal(miss: &Miss, reason: Reason) {
    miss.lead.note_refusal(reason);
    let Some(missed) = &miss.statement else { return };
    if let Some(store) = shmem::store() {
        tally::count_refusal(&store, reason, missed.query_id);
    }
    let status = miss.status(Some(reason));
    session::set_status_of(miss.guarantees.started.statement, status);
    decision_log::note_late(status, missed.query_id);
}
