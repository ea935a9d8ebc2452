//! What surrounds the end of a transaction that changes definitions. Before it publishes, it is counted with each slot
//! that it is going to move (`core::versions::definers`). When its invalidations have been sent, it moves them once
//! more, and is not counted any more. While it is counted nothing is stored that rests on such a slot.
//!
//! The slots are kept apart from what else is kept of a transaction, so that whoever is counted is counted off,
//! whichever way it ends: the server calls the callback for released resources after a commit, a PREPARE, an abort, and
//! when a session is terminated. A process that is killed takes shared memory with it. Atomics only; nothing but
//! `begin` can raise, and nothing can wait.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};

use arrow_cache_core::SlotId;
use pgrx::pg_sys;

use crate::invalidation::definitions::Definitions;
use crate::invalidation::waking;
use crate::invalidation::writer::look_for_the_past;
use crate::pg::backend_local::Local;
use crate::pg::{backend, compat};
use crate::shmem::{self, SharedStore};

/// The slots with which this process is counted. One that is listed twice is counted twice.
static COUNTED: Local<RefCell<Vec<SlotId>>> = Local::new(RefCell::new(Vec::new()));
/// A prepared transaction is being committed here.
static COMMITS_PREPARED: Local<Cell<bool>> = Local::new(Cell::new(false));
/// This process is counted as a worker of logical replication.
static IS_COUNTED_WORKER: Local<Cell<bool>> = Local::new(Cell::new(false));
/// `resources_released` is registered.
static IS_WATCHED: Local<Cell<bool>> = Local::new(Cell::new(false));

/// Registers `resources_released`, if it is not. The server calls it some six times for each statement, so that
/// backends which never change definitions are spared. May raise.
fn watch() {
    if !IS_WATCHED.get() {
        // SAFETY: the callback has the type that the server expects, and needs no argument.
        unsafe { kept!(pg_sys::RegisterResourceReleaseCallback(Some(resources_released), std::ptr::null_mut())) };
        IS_WATCHED.set(true);
    }
}

/// Called many times per transaction, and after the commit, where nothing may raise or wait.
unsafe extern "C-unwind" fn resources_released(
    phase: pg_sys::ResourceReleasePhase::Type,
    _is_commit: bool,
    is_top_level: bool,
    _arg: *mut c_void,
) {
    if is_top_level && phase == pg_sys::ResourceReleasePhase::RESOURCE_RELEASE_AFTER_LOCKS {
        end();
    }
}

/// This transaction is going to redefine what these slots stand for. To be called before it publishes. It may raise,
/// and then it has counted nothing.
pub fn begin(slots: &[SlotId]) {
    if slots.is_empty() {
        return;
    }
    watch();
    COUNTED.with_borrow_mut(|counted| counted.extend_from_slice(slots));
    if let Some(store) = shmem::store_without_area() {
        slots.iter().for_each(|slot| store.definers().enter(*slot));
    }
}

/// As `begin`, for COMMIT PREPARED of a transaction that may have redefined anything in this database. While none was
/// prepared that has redefined something, it is only noted: one may be prepared before the server looks for it.
pub fn begin_commit_prepared() {
    let Some(store) = shmem::store_without_area() else { return };
    watch();
    if !COMMITS_PREPARED.replace(true) {
        store.definers().enter_commit();
    }
    if store.may_have_prepared_definitions() {
        let mut slots = Vec::new();
        Definitions::OF_DATABASE.for_each_slot(backend::database(), store.versions(), |slot| slots.push(slot));
        begin(&slots);
    }
}

/// This process is a worker of logical replication, which commits prepared transactions without a statement: from now
/// on it is counted as if it committed one all the time. To be called at the end of each transaction; the first ones
/// only read. May raise.
pub fn count_worker() {
    let Some(store) = shmem::store_without_area() else { return };
    if !IS_COUNTED_WORKER.get() {
        // SAFETY: the callback has the type that the server expects, and needs no argument.
        unsafe { kept!(pg_sys::before_shmem_exit(Some(worker_ends), pg_sys::Datum::from(0_usize))) };
        IS_COUNTED_WORKER.set(true);
        store.definers().enter_commit();
    }
    // As long as there may be prepared transactions from before the start, nothing is stored: one may have been
    // committed just now.
    let next = compat::next_full_transaction_id();
    store.versions().ensure_floor(next);
    look_for_the_past(&store, next);
}

/// The worker ends.
unsafe extern "C-unwind" fn worker_ends(_code: c_int, _arg: pg_sys::Datum) {
    if let Some(store) = shmem::store_without_area() {
        store.definers().leave_commit();
    }
}

/// Moves the versions of what this transaction has redefined once more. To be called when its invalidations have been
/// sent, or when it was rolled back.
///
/// Not inlined into the callback, which is called many times and hardly ever has anything to do here.
#[inline(never)]
pub fn end() {
    let Some(store) = shmem::store_without_area() else { return };
    let is_counted = COUNTED.with_borrow(|counted| !counted.is_empty());
    if is_counted {
        let slots = COUNTED.take();
        slots.iter().for_each(|slot| bump(&store, *slot));
        count_off(&slots);
    }
    if COMMITS_PREPARED.get() {
        // One that has redefined something may have been prepared when it was only noted.
        if !is_counted && store.may_have_prepared_definitions() {
            Definitions::OF_DATABASE.for_each_slot(backend::database(), store.versions(), |slot| bump(&store, slot));
        }
        leave_commit_prepared();
    }
    waking::wake();
}

/// Returns true if `end` is due for this transaction.
pub fn is_under_way() -> bool {
    COUNTED.with_borrow(|counted| !counted.is_empty())
}

/// Nothing was redefined after all.
pub fn give_up() {
    count_off(&COUNTED.take());
    leave_commit_prepared();
}

/// COMMIT PREPARED is over, and versions have moved for it.
fn leave_commit_prepared() {
    if let Some(store) = shmem::store_without_area()
        && COMMITS_PREPARED.replace(false)
    {
        store.definers().leave_commit();
    }
}

fn count_off(slots: &[SlotId]) {
    if let Some(store) = shmem::store_without_area() {
        slots.iter().for_each(|slot| store.definers().leave(*slot));
    }
}

fn bump(store: &SharedStore, slot: SlotId) {
    store.versions().slot(slot).bump(backend::now());
    waking::note_moved(store, [slot]);
}
