//! What is left to do after the commit of a transaction that has changed definitions: bumping their versions once more, when the
//! invalidations have been sent. Atomics only; nothing here can raise or wait.

use arrow_cache_core::{SlotId, Versions};
use pgrx::pg_sys;

use crate::invalidation::catalogs::SHARED;
use crate::invalidation::write_set;
use crate::pg::backend;
use crate::shmem;

/// Bumps once more the versions of the definitions that the ending transaction has changed, when its invalidations have been sent.
///
/// The slot of all catalogs is bumped before those of relations. A reader reads them in the opposite order. So if it tags its result
/// with a relation's last version, and its plan is older than the catalogs, it finds that out.
///
/// Not inlined into the callback, which is called many times and hardly ever has anything to do here.
#[inline(never)]
pub fn bump_definitions_again() {
    if write_set::has_bumps_due() {
        let slots = write_set::take_bumps_due();
        bump(|_| slots);
    }
    // Apply workers of logical replication commit prepared transactions inside other transactions, and no hook sees that.
    if backend::is_logical_worker() && shmem::may_have_prepared_definitions() {
        bump_all_definitions();
    }
}

/// Bumps the versions of all definitions that a transaction of this database can have changed.
pub fn bump_all_definitions() {
    // SAFETY: a plain read of a backend global.
    let database = unsafe { pg_sys::MyDatabaseId.to_u32() };
    bump(|versions| {
        [versions.catalogs(database), versions.ddl(database), versions.ddl(SHARED), versions.enums(database)]
    });
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
