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

use arrow_cache_core::{Counter, RoomyVec};
use pgrx::pg_sys;

use crate::invalidation::catalogs::is_meaningful_catalog;
use crate::invalidation::definitions::Definitions;
use crate::invalidation::queried_relations::may_carry_results;
use crate::invalidation::writer::Writer;
use crate::invalidation::{extent, redefinition, track_counts, write_set};
use crate::pg::backend;
use crate::pg::object_ids::FIRST_USER_OID;
use crate::pg::transaction_changes::{Change, Changes};
use crate::session;
use crate::shmem;

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

/// Publishes everything this transaction has changed, which the server lists as `changes`. At PRE_COMMIT and, then
/// `preparing`, at PRE_PREPARE.
pub fn publish(changes: Changes, preparing: bool) {
    let xid = backend::top_transaction_id();
    // Of an id that snapshots do not list, a slot cannot tell them that it runs.
    if xid == 0 || backend::is_vacuuming() {
        return;
    }
    let Some(store) = shmem::store() else { return };
    let writer = Writer::new(&store, xid);
    let (mut tracked, mut definitions) = (Vec::new(), Definitions::default());
    let mut publish_relation = |relation: u32, change: Option<Change<'_>>| {
        if !may_carry_results(relation) {
            return;
        }
        let [whole, coarse] = writer.of_relation(relation);
        writer.publish(whole);
        // Whoever has got his id after a relation was taken in finds it here. For all others it was published then.
        if let Some(columns) = store.registry().columns_of(backend::database(), relation)
            && tracked.add((relation, columns, change.map(Change::counted))).is_err()
        {
            writer.publish(coarse);
        }
    };
    let mut is_unknown = track_counts::is_unlisted();
    write_set::for_each_relation(|relation| {
        // A statement has written to a catalog itself: it need not have sent the invalidations that DDL sends.
        is_unknown |= is_meaningful_catalog(relation);
        publish_relation(relation, None);
    });
    changes.for_each(usize::MAX, |change| {
        definitions.add(change.relation(), change.effective());
        publish_relation(change.relation(), Some(change));
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
    redefined.iter().for_each(|slot| writer.publish(*slot));
    extent::publish(&store, &writer, tracked, definitions.any);
    store.counters().add(store.stripe(), Counter::Invalidations, writer.published());
}
