//! Waking those who wait for a change of an answer (`arrow_cache.wait`; core, `cache/awaited.rs`).
//!
//! Whoever moves slots asks at once which of them somebody waits for, and wakes those who do when what was changed is
//! visible: a process that is woken earlier would find its answer changed, and read the old one. A transaction that is
//! prepared wakes them then, since whoever ends it does not know what it has changed.
//!
//! Kept until the end of the transaction, or of the record that is replayed. Atomics and signals only; nothing here can
//! raise, wait or allocate.

use std::cell::{Cell, RefCell};

use arrow_cache_core::{SlotBits, SlotId};

use crate::pg::backend_local::Local;
use crate::pg::{attention, waiting};
use crate::shmem::{self, SharedStore};

/// The slots that this process has moved, as far as somebody waits for them.
static AWAITED: Local<RefCell<SlotBits>> = Local::new(RefCell::new(SlotBits::NONE));
/// There are some.
static ARE_SOME: Local<Cell<bool>> = Local::new(Cell::new(false));

/// Notes those of the slots, which were moved just now, that somebody waits for: `wake` is due when what was changed is
/// visible, or will never be.
#[inline]
pub fn note_moved(store: &SharedStore, moved: impl IntoIterator<Item = SlotId>) {
    AWAITED.with_borrow_mut(|awaited| {
        if store.awaited().add_awaited(moved, awaited) {
            ARE_SOME.set(true);
            attention::leave_for_end();
        }
    });
}

/// Wakes those who wait for what this process has moved.
#[inline]
pub fn wake() {
    if ARE_SOME.get() {
        wake_waiters();
    }
}

#[cold]
#[inline(never)]
fn wake_waiters() {
    let awaited = AWAITED.replace(SlotBits::NONE);
    ARE_SOME.set(false);
    if let Some(store) = shmem::store_without_area() {
        store.awaited().waiting_for(&awaited).for_each(waiting::wake_process);
    }
}

/// Wakes those who wait for slots that were moved just now, by no transaction.
pub fn wake_for(store: &SharedStore, moved: impl IntoIterator<Item = SlotId>) {
    note_moved(store, moved);
    wake();
}

/// Wakes all who wait: nobody knows what has changed.
pub fn wake_all() {
    if let Some(store) = shmem::store_without_area() {
        store.awaited().all().for_each(waiting::wake_process);
    }
}
