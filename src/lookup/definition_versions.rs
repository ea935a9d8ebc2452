//! The versions of this database's definitions: what a plan is compared with. Reads shared memory; keeps nothing.

use pgrx::pg_sys;

use crate::invalidation::catalogs::SHARED;
use crate::query::{Versions, trusted_extensions};
use crate::shmem::SharedStore;

/// Stands for a version of the catalogs under which no plan may be stored.
pub const UNKNOWN_CATALOGS: u64 = u64::MAX;

/// The versions at this moment.
///
/// They are read in the opposite order to that in which they are bumped: who sees the new version of the catalogs need not see that of
/// the ddl, but who sees the new one of the ddl sees that of the catalogs.
pub fn current(store: &SharedStore) -> Versions {
    let versions = store.versions();
    // SAFETY: a plain read of a backend global.
    let database = unsafe { pg_sys::MyDatabaseId.to_u32() };
    // Both only grow, so their sum stays the same only if both stay the same.
    let ddl = versions.slot(versions.ddl(database)).version() + versions.slot(versions.ddl(SHARED)).version();
    let catalogs = versions.slot(versions.catalogs(database)).version();
    // Which extensions are trusted decides like a definition, and each session may have another list.
    Versions { catalogs, ddl: ddl.wrapping_add(trusted_extensions::fingerprint()) }
}
