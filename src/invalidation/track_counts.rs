//! The setting `track_counts`, as far as it decides what is known of a transaction's changes: while it is off, the
//! server does not list the relations whose rows change. State of this backend; no lock.

use std::cell::Cell;

use crate::invalidation::write_set;
use crate::pg::backend_local::Local;
use crate::pg::{backend, server_settings};

/// `note` is called whenever the setting changes.
static WATCHED: Local<Cell<bool>> = Local::new(Cell::new(false));

/// Says that `note` will be called. Once, in the postmaster.
pub fn watch() {
    WATCHED.set(true);
}

/// Notes that the server is about to list changes from now on, or to stop listing them. Can be called at any moment;
/// neither raises nor allocates.
///
/// Whether a change is listed is decided when its relation is opened, in the same transaction (pgstat_init_relation),
/// by the setting at that moment. So all changes of a transaction are listed if the setting was on from beginning to
/// end. That is so if it is on at the end and was never set before to off, or while it was off. A value that the end of
/// a subtransaction or a function restores was set earlier in this transaction; what the end of the transaction itself
/// restores comes after its changes.
pub fn note(on: bool) {
    if !(on && server_settings::counts_changes()) && backend::in_transaction() {
        write_set::note_unknown();
    }
}

/// Returns true if this transaction may have changed relations that neither the server nor the hooks have listed.
pub fn is_unlisted() -> bool {
    write_set::is_unknown() || !server_settings::counts_changes() || !WATCHED.get()
}
