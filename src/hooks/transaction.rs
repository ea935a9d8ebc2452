//! The callback at the end of a transaction. Keeps nothing.

use std::ffi::c_void;

use pgrx::pg_sys;

use crate::invalidation::{foreign, own_writes, publication, redefinition, rows, write_set};
use crate::lookup::single_flight;
use crate::pg::error_passing::edge;
use crate::pg::transaction_changes::Changes;
use crate::pg::{attention, backend, error_passing};
use crate::{capture, session};

/// Called twice per transaction, and after the commit too, where only flags may be cleared.
///
/// # Safety
/// Called by the server.
pub unsafe extern "C-unwind" fn ended(event: pg_sys::XactEvent::Type, _arg: *mut c_void) {
    if event == pg_sys::XactEvent::XACT_EVENT_COMMIT {
        // Nothing is left by most transactions that have not written.
        if attention::take_left() {
            succeeded(true);
        }
    } else if event == pg_sys::XactEvent::XACT_EVENT_PRE_COMMIT {
        if own_writes::has_transaction_id() {
            // SAFETY: no frame above this one has destructors.
            unsafe { publish(false) };
        } else if backend::is_logical_worker() {
            // SAFETY: no frame above this one has destructors.
            unsafe { edge(redefinition::count_worker) };
        }
    } else {
        // SAFETY: no frame above this one has destructors.
        unsafe { ended_otherwise(event) };
    }
}

/// A transaction is prepared or fails, or is that of a parallel worker.
///
/// # Safety
/// As `edge`.
#[inline(never)]
unsafe fn ended_otherwise(event: pg_sys::XactEvent::Type) {
    match event {
        // SAFETY: the caller's promise.
        pg_sys::XactEvent::XACT_EVENT_PRE_PREPARE if own_writes::has_transaction_id() => unsafe { publish(true) },
        pg_sys::XactEvent::XACT_EVENT_PREPARE if attention::take_left() => succeeded(false),
        pg_sys::XactEvent::XACT_EVENT_ABORT => failed(),
        _ => {}
    }
}

/// The transaction is visible by now, unless it was only prepared.
#[inline(never)]
fn succeeded(is_committed: bool) {
    session::note_end(|| is_committed.then(backend::now));
    foreign::committed();
    single_flight::transaction_ended();
    forget();
}

/// The transaction has failed or was rolled back.
#[inline(never)]
fn failed() {
    // SAFETY: the server lets relations go after this.
    unsafe { rows::fail() };
    attention::take_left();
    session::transaction_failed();
    session::note_end(|| None);
    foreign::rolled_back();
    capture::forget();
    single_flight::transaction_ended();
    forget();
}

/// Publishes what a transaction has changed that is about to be committed or, then `preparing`, prepared.
///
/// # Safety
/// As `edge`.
#[inline(never)]
unsafe fn publish(preparing: bool) {
    session::note_writing();
    // SAFETY: the caller's promise.
    unsafe {
        if backend::is_logical_worker() {
            edge(redefinition::count_worker);
        }
        let changes = Changes::of_now_unguarded();
        edge(|| publication::publish(changes, preparing));
    }
}

/// Forgets what belonged to the transaction.
fn forget() {
    write_set::forget();
    rows::forget();
    // SAFETY: an error that ends a transaction has left our functions; one that they caught is over.
    unsafe { error_passing::recover() };
}
