//! Whether rows that a statement routes may come to tracked leaves: finding the leaf of each row is not worth it
//! otherwise. State of this backend, and only a hint; no lock.

use std::cell::Cell;

use arrow_cache_core::Usage;
use pgrx::pg_sys;

use crate::pg::backend;
use crate::pg::backend_local::Local;
use crate::shmem::SharedStore;

/// What was found out about a partitioned table, which holds as long as the rest is the same.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Known {
    root: u32,
    partitions: i32,
    usage: Usage,
    may_be_tracked: bool,
}

/// So many are remembered.
const MOST_ROOTS: usize = 8;

static KNOWN: Local<Cell<([Known; MOST_ROOTS], usize)>> = Local::new(Cell::new((
    [Known { root: 0, partitions: 0, usage: Usage::NONE, may_be_tracked: false }; MOST_ROOTS],
    0,
)));

/// Returns true if a partition of a table may be tracked, or has partitions itself.
///
/// # Safety
/// An open partitioned table.
pub unsafe fn may_be_tracked(store: &SharedStore, root: pg_sys::Relation) -> bool {
    let registry = store.registry();
    // SAFETY: the caller's promise; the description stays as long as the table is open.
    let (number, partitions, leaves) = unsafe {
        let partitions = &*kept!(pg_sys::RelationGetPartitionDesc(root, false));
        let leaves =
            (0..partitions.nparts as usize).map(|place| (*partitions.oids.add(place), *partitions.is_leaf.add(place)));
        ((*root).rd_id.to_u32(), partitions.nparts, leaves)
    };
    let known = Known { root: number, partitions, usage: registry.usage(), may_be_tracked: false };
    let (mut all, last) = KNOWN.get();
    if let Some(found) = all.iter().find(|one| Known { may_be_tracked: false, ..**one } == known) {
        return found.may_be_tracked;
    }
    let may_be = |(relation, is_leaf): (pg_sys::Oid, bool)| {
        !is_leaf || registry.may_track(backend::database(), relation.to_u32())
    };
    let known = Known { may_be_tracked: leaves.into_iter().any(may_be), ..known };
    let place = all.iter().position(|one| one.root == number).unwrap_or((last + 1) % MOST_ROOTS);
    all[place] = known;
    KNOWN.set((all, place));
    known.may_be_tracked
}
