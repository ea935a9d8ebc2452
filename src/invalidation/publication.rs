//! The publication of what a transaction has changed, before anybody can see it (protocol C; the whole argument is in
//! docs/architecture/exactness.md).
//!
//! The write set is the union of two lists: what the executor hooks saw, and the list that the heap access method
//! itself keeps for statistics. The latter names every relation whose tuples changed by any path: cascades, leaves of
//! partitions, COPY, triggers, logical apply, C code. A change of a catalog in that list means that definitions
//! changed. While `track_counts` is off nothing is added to the list: a transaction in which it was off at any moment
//! counts as one that has redefined everything.
//!
//! Everything happens at PRE_COMMIT or PRE_PREPARE, where raising is still allowed. Slots are atomics; no lock.

use std::cell::Cell;

use arrow_cache_core::{Counter, RoomyVec, SlotId};
use pgrx::pg_sys;

use crate::invalidation::catalogs::is_meaningful_catalog;
use crate::invalidation::definitions::Definitions;
use crate::invalidation::queried_relations::may_carry_results;
use crate::invalidation::writer::Writer;
use crate::invalidation::{extent, redefinition, track_counts, waking, write_set};
use crate::pg::backend;
use crate::pg::backend_local::Local;
use crate::pg::object_ids::FIRST_USER_OID;
use crate::pg::transaction_changes::{self, Change};
use crate::session;
use crate::shmem;

/// An empty list of slots whose memory the last transactions have used.
static SLOTS: Local<Cell<Vec<SlotId>>> = Local::new(Cell::new(Vec::new()));
/// Slots that it keeps memory for.
const KEPT: usize = 1024;

/// Notes a change of one relation, which the user was allowed to make: a user who may not change a relation must not
/// outdate results over it either.
#[inline]
pub fn note_relation(relation: pg_sys::Oid) {
    let relation = relation.to_u32();
    if relation < FIRST_USER_OID {
        session::note_definition_change();
    }
    write_set::note(relation);
}

/// Publishes everything this transaction has changed so far. At PRE_COMMIT and, then `preparing`, at PRE_PREPARE.
pub fn publish(preparing: bool) {
    let xid = backend::top_transaction_id();
    // Of an id that snapshots do not list, a slot cannot tell them that it runs.
    if xid == 0 || backend::is_vacuuming() {
        return;
    }
    let Some(store) = shmem::store() else { return };
    let writer = Writer::new(&store, xid);
    let (mut slots, mut tracked, mut definitions) = (SLOTS.take(), Vec::new(), Definitions::default());
    // What there is no memory to list is published at once.
    let mut add = |slot: SlotId| {
        if slots.add(slot).is_err() {
            writer.publish(slot);
            waking::note_moved(&store, &[slot]);
        }
    };
    let mut add_relation = |relation: u32, change: Option<Change<'_>>| {
        if !may_carry_results(relation) {
            return;
        }
        let [whole, coarse] = writer.of_relation(relation);
        add(whole);
        // Whoever has got his id after a relation was taken in finds it here. For all others it was published then.
        if let Some(columns) = store.registry().columns_of(backend::database(), relation)
            && tracked.add((relation, columns, change.map(Change::counted))).is_err()
        {
            add(coarse);
        }
    };
    let mut is_unknown = track_counts::is_unlisted();
    write_set::for_each_relation(|relation| {
        // A statement has written to a catalog itself: it need not have sent the invalidations that DDL sends.
        is_unknown |= is_meaningful_catalog(relation);
        add_relation(relation, None);
    });
    transaction_changes::for_each_change(usize::MAX, |change| {
        definitions.add(change.relation(), change.effective());
        add_relation(change.relation(), Some(change));
    });
    // The messages of an inner level are not those of the whole transaction.
    if is_unknown || (definitions.any && backend::transaction_nest_level() > 1) {
        definitions = Definitions::ALL;
    }
    if definitions.are_some() && preparing {
        store.note_prepared_definitions();
    }
    let redefined = definitions.slots_of_transaction(backend::database(), store.versions());
    redefinition::begin(&redefined);
    redefined.iter().for_each(|slot| add(*slot));
    extent::for_each_slot(&store, &writer, tracked, definitions.any, &mut add);
    // A relation that the hooks have seen is on the server's list as well.
    slots.sort_unstable_by_key(|slot| slot.0);
    slots.dedup();
    slots.iter().for_each(|slot| writer.publish(*slot));
    waking::note_moved(&store, &slots);
    store.counters().add(store.stripe(), Counter::Invalidations, slots.len() as u64);
    slots.clear();
    slots.shrink_to(KEPT);
    SLOTS.set(slots);
}
