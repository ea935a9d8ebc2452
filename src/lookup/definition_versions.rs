//! The versions of this database's definitions: what a plan is compared with. Reads shared memory; keeps nothing.

use crate::invalidation::catalogs::SHARED;
use crate::pg::backend;
use crate::query::{Versions, trusted_extensions};
use crate::shmem::{self, SharedStore};

/// Stands for a version of the catalogs under which no plan may be stored.
pub const UNKNOWN_CATALOGS: u64 = u64::MAX;

/// Has everybody who has moved a version that this session can have read by now sent the invalidations and moved it for the last time?
///
/// If not, what is found out at this moment may be what was true before the change, and the versions may stay the same until the session
/// hears of the change.
pub fn are_settled() -> bool {
    let Some(store) = shmem::store() else { return true };
    let (versions, definers) = (store.versions(), store.definers());
    let database = backend::database();
    !definers.are_in(versions.catalogs(database)) && !definers.are_in(versions.ddl(SHARED))
}

/// The versions at this moment.
pub fn current(store: &SharedStore) -> Versions {
    let versions = store.versions();
    let database = backend::database();
    // Both only grow, so their sum stays the same only if both stay the same.
    let ddl = versions.slot(versions.ddl(database)).version() + versions.slot(versions.ddl(SHARED)).version();
    let catalogs = versions.slot(versions.catalogs(database)).version();
    // Which extensions are trusted decides like a definition, and each session may have another list.
    Versions { catalogs, ddl: ddl.wrapping_add(trusted_extensions::fingerprint()) }
}
