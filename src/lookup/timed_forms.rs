//! How long statements take that are bypassed because they ask for the time, but that may be combined of parts: by that it is decided whether that pays. State of
//! this backend: the statement under way.

use std::cell::Cell;

use arrow_cache_core::Counter;

use crate::pg::backend;
use crate::pg::backend_local::Local;
use crate::query::hashes::FormId;
use crate::{session, shmem};

/// A statement that is timed.
#[derive(Clone, Copy)]
struct Timed {
    form: FormId,
    /// It combines parts.
    is_combined: bool,
    /// When its message has arrived, which tells it from later ones.
    arrived: i64,
}

static TIMED: Local<Cell<Option<Timed>>> = Local::new(Cell::new(None));

/// Has the statement timed that is being planned.
pub fn time_statement(form: FormId, is_combined: bool) {
    TIMED.set(Some(Timed { form, is_combined, arrived: backend::statement_start() }));
}

/// A run has ended: notes its time if it was that of the timed statement, which began with its message.
#[inline]
pub fn note_run() {
    if TIMED.get().is_some() && session::depth() == 0 {
        note_timed_run();
    }
}

#[inline(never)]
fn note_timed_run() {
    let Some(timed) = TIMED.take().filter(|timed| timed.arrived == backend::statement_start()) else { return };
    if let Some(store) = shmem::store() {
        let micros = (backend::now() - timed.arrived).max(0).cast_unsigned();
        if timed.is_combined {
            let saved = store.form_times(timed.form.0).plain_micros.saturating_sub(micros);
            store.counters().add(store.stripe(), Counter::FragmentTimeSavedMicros, saved);
        }
        store.note_form_time(timed.form.0, micros, timed.is_combined);
    }
}
