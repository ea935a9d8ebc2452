//! The locks of indexes that planning takes. A plan that the server keeps is started without them: it waits for the indexes that it scans alone. So whoever plans
//! in its place, at its start or its first run, must not wait for others. Keeps nothing; the locks go with the transaction.

use pgrx::pg_sys;

use crate::lookup::parts;
use crate::pg::compat;
use crate::pg::error_passing::{keeping, kept};
use crate::pg::index_list::indexes_of;
use crate::pg::server;
use crate::pg::tree::{Tree, children};
use crate::query::Versions;
use crate::shmem;

/// Locks all indexes of the relations that a plan names, which are locked, if none of them is to be waited for, and the table of locks has room for all; says whether it has. What this transaction has
/// planned before, it has locked. False, too, if the definitions are not these `versions` any more: there may be other relations and indexes to be waited for.
pub fn are_had(plan: Tree<'_, pg_sys::PlannedStmt>, versions: Versions) -> bool {
    let mut taken = Vec::new();
    for entry in children!(plan.rtable as RangeTblEntry) {
        if entry.rtekind != pg_sys::RTEKind::RTE_RELATION {
            continue;
        }
        for index in indexes_of(entry.relid) {
            // SAFETY: inside a transaction; what was locked here is given back.
            unsafe {
                if !keeping(|| compat::lock_at_once(index)) {
                    for index in taken {
                        kept!(server::UnlockRelationOid(index, pg_sys::AccessShareLock as i32));
                    }
                    return false;
                }
            }
            taken.push(index);
        }
    }
    shmem::store().is_some_and(|store| parts::are_current(&store, versions))
}
