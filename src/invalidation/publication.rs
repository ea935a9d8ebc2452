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
use crate::invalidation::{redefinition, track_counts, write_set};
use crate::pg::backend;
use crate::pg::backend_local::Local;
use crate::pg::object_ids::FIRST_USER_OID;
use crate::pg::transaction_changes;
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

/// Publishes everything this transaction has changed so far. At PRE_COMMIT and, then `preparing`, at PRE_PREPARE.
pub fn publish(preparing: bool) {
    let xid = backend::top_transaction_id();
    if xid == 0 {
        return;
    }
    let Some(store) = shmem::store() else { return };
    let writer = Writer::new(&store, xid);
    let mut lists = LISTS.take();
    let extent = lists.gather(&writer);
    let definitions = Definitions::of_transaction(&lists.catalogs, extent.unknown || extent.catalog_written);
    if definitions.any && preparing {
        store.note_prepared_definitions();
    }
    let redefined = if definitions.any { writer.redefined(&definitions) } else { Vec::new() };
    redefinition::begin(&redefined);
    redefined.iter().for_each(|slot| lists.add(&writer, *slot));
    // A relation that the hooks have seen is on the server's list as well.
    lists.slots.sort_unstable_by_key(|slot| slot.0);
    lists.slots.dedup();
    lists.slots.iter().for_each(|slot| writer.publish(*slot));
    store.counters().add(store.stripe(), Counter::Invalidations, lists.slots.len() as u64);
    lists.keep();
}

/// Lists that a publication fills. They are kept from one to the next, so that they are not allocated each time.
#[derive(Default)]
struct Lists {
    /// The catalogs that the server lists as changed.
    catalogs: Vec<u32>,
    /// What there is to publish.
    slots: Vec<SlotId>,
}

/// How complete the lists are.
struct Extent {
    /// They may lack relations. What there is no memory to list counts as unknown, too.
    unknown: bool,
    /// A statement has written to a catalog itself: it need not have sent the invalidations that DDL sends.
    catalog_written: bool,
}

/// Empty lists, unless a publication is under way.
static LISTS: Local<Cell<Lists>> = Local::new(Cell::new(Lists { catalogs: Vec::new(), slots: Vec::new() }));

impl Lists {
    /// Lists what this transaction has changed, as the hooks and the server know it.
    fn gather(&mut self, writer: &Writer<'_>) -> Extent {
        let mut extent = Extent { unknown: track_counts::is_unlisted(), catalog_written: false };
        write_set::for_each_relation(|relation| {
            extent.catalog_written |= is_meaningful_catalog(relation);
            self.add_relation(writer, relation);
        });
        transaction_changes::for_each_changed_relation(usize::MAX, |relation| {
            if is_meaningful_catalog(relation) {
                extent.unknown |= self.catalogs.add(relation).is_err();
            } else {
                self.add_relation(writer, relation);
            }
        });
        extent
    }

    fn add_relation(&mut self, writer: &Writer<'_>, relation: u32) {
        if may_carry_results(relation) {
            self.add(writer, writer.relation(relation));
        }
    }

    /// Lists a slot, which is published at once if there is no memory for that.
    fn add(&mut self, writer: &Writer<'_>, slot: SlotId) {
        if self.slots.add(slot).is_err() {
            writer.publish(slot);
        }
    }

    /// Gives the lists back to the next publication.
    fn keep(mut self) {
        write_set::empty(&mut self.catalogs);
        write_set::empty(&mut self.slots);
        LISTS.set(self);
    }
}
