//! How long statements take that nobody captures: those that are too quick to be looked up, and those that are bypassed
//! because they ask for the time but may be combined of parts. `session` knows the statement under way; kept here is
//! how long the parts took to plan of a statement that was planned for one execution, until that has ended.

use std::cell::Cell;
use std::time::Duration;

use arrow_cache_core::Counter;

use super::fingerprint::Fingerprint;
use super::quick_statements;
use crate::pg::backend;
use crate::pg::backend_local::Local;
use crate::query::hashes::FormId;
use crate::session::{self, Purpose, Timed};
use crate::shmem;

/// The form whose parts were planned last, and the microseconds that this took; `None` once its run was noted.
static PLANNED_PARTS: Local<Cell<Option<(FormId, u64)>>> = Local::new(Cell::new(None));

/// Notes how long it took to plan the parts of a statement that is executed next, and once. If nobody has noted the run
/// of the one before, since it was bypassed, that counts with its planning alone.
pub fn note_planned_parts(form: FormId, took: Duration) {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    if let (Some((form, micros)), Some(store)) = (PLANNED_PARTS.replace(Some((form, micros))), shmem::store()) {
        store.note_run(form.0, micros, true);
    }
}

/// Has the run of the statement that starts now timed, for others with its fingerprint. Nothing else is done with it.
pub fn time_run(fingerprint: Option<Fingerprint>) {
    let timed = |Fingerprint(alike)| Timed { alike, purpose: Purpose::Lookup, began: None };
    session::time_run(fingerprint.map(timed));
}

/// Has the run timed of the statement that starts now, and is skipped since others with its fingerprint are too quick.
/// If they have been for long, now and then is enough.
pub fn time_skipped(fingerprint: Fingerprint) {
    time_run(quick_statements::is_timed(fingerprint).then_some(fingerprint));
}

/// Has the statement timed that is being planned, from its message on: planning is a part of what combining costs.
pub fn time_statement(form: FormId, combined: bool) {
    let began = Some(backend::statement_start());
    session::time_run(Some(Timed { alike: form.0, purpose: Purpose::Parts { combined }, began }));
}

/// A run has ended: notes its time, if it was timed.
#[inline]
pub fn end_run() {
    if let Some(timed) = session::take_timed() {
        note(timed);
    }
}

#[inline(never)]
fn note(Timed { alike, purpose, began }: Timed) {
    let Some(began) = began else { return };
    let micros = u64::try_from(backend::now() - began).unwrap_or(0);
    match purpose {
        Purpose::Lookup => _ = quick_statements::note_run(Fingerprint(alike), Duration::from_micros(micros), false),
        Purpose::Parts { combined } => note_form(FormId(alike), micros, combined),
    }
}

/// Notes for all sessions how long a query of this form has taken that was executed to its end, with planning its
/// parts, and counts the time that parts have saved.
pub fn note_form(form: FormId, mut micros: u64, combined: bool) {
    let Some(store) = shmem::store() else { return };
    if combined {
        let planned = PLANNED_PARTS.take().filter(|(planned, _)| *planned == form);
        micros = micros.saturating_add(planned.map_or(0, |(_, micros)| micros));
        let saved = store.speed(form.0).plain_micros.saturating_sub(micros);
        store.counters().add(store.stripe(), Counter::FragmentTimeSavedMicros, saved);
    }
    store.note_run(form.0, micros, combined);
}
