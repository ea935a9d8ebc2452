//! What surrounds the end of a transaction that changes definitions. Before it publishes, it is counted with each slot that it is going to
//! move (`core::cache::definers`). When its invalidations have been sent, it moves them once more, and is not counted any more. While it is
//! counted nothing is stored that rests on such a slot.
//!
//! The slots are kept in `write_set` of this backend, so that whoever is counted is counted off, whichever way the transaction ends:
//! the server calls the callback for released resources after a commit, a PREPARE, an abort, and when a session is terminated. A process that
//! is killed takes shared memory with it. Atomics only; nothing but `begin` can raise, and nothing can wait.

use arrow_cache_core::{SlotId, Versions};
use pgrx::pg_sys;

use crate::invalidation::catalogs::SHARED;
use crate::invalidation::write_set;
use crate::pg::backend;
use crate::shmem;

/// This transaction is going to redefine what these slots stand for. To be called before it publishes. It may raise, and then it has counted
/// nothing.
pub fn begin(slots: &[SlotId]) {
    if slots.is_empty() {
        return;
    }
    write_set::note_redefined(slots);
    shmem::with_definers(|definers| slots.iter().for_each(|slot| definers.enter(*slot)));
}

/// As `begin`, for a transaction that was prepared, and that may have redefined anything in this database.
pub fn begin_all() {
    if let Some(slots) = shmem::with_versions(all_definitions) {
        begin(&slots);
    }
}

/// Moves the versions of what this transaction has redefined once more. To be called when its invalidations have been sent, or when it was
/// rolled back.
///
/// Not inlined into the callback, which is called many times and hardly ever has anything to do here.
#[inline(never)]
pub fn end() {
    if write_set::is_redefining() {
        let slots = write_set::take_redefined();
        bump(|_| slots.iter().copied());
        count_off(&slots);
    }
    // Apply workers of logical replication commit prepared transactions inside other transactions, and no hook sees that.
    if backend::is_logical_worker() && shmem::may_have_prepared_definitions() {
        bump(all_definitions);
    }
}

/// A prepared transaction has been committed. If `begin_all` was not called, since none was known then that had redefined anything, one may
/// have been prepared since.
pub fn end_all() {
    if !write_set::is_redefining() && shmem::may_have_prepared_definitions() {
        bump(all_definitions);
    }
    end();
}

/// Nothing was redefined after all.
pub fn give_up() {
    count_off(&write_set::take_redefined());
}

/// The slots of all definitions that a transaction of this database can have changed.
fn all_definitions(versions: Versions<'_>) -> [SlotId; 4] {
    // SAFETY: a plain read of a backend global.
    let database = unsafe { pg_sys::MyDatabaseId.to_u32() };
    [versions.catalogs(database), versions.ddl(database), versions.ddl(SHARED), versions.enums(database)]
}

fn count_off(slots: &[SlotId]) {
    shmem::with_definers(|definers| slots.iter().for_each(|slot| definers.leave(*slot)));
}

/// Bumps the versions of some slots.
fn bump<S: IntoIterator<Item = SlotId>>(slots: impl FnOnce(Versions<'_>) -> S) {
    let now = backend::now();
    shmem::with_versions(|versions| {
        for slot in slots(versions) {
            versions.slot(slot).bump(now);
        }
    });
}
