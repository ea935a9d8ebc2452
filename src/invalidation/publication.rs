//! The publication of what a transaction has changed, before anybody can see it (protocol C; the whole argument is in
//! docs/architecture/exactness.md).
//!
//! The write set is the union of two lists: what the executor hooks saw, and the list that the heap access method itself keeps for
//! statistics. The latter names every relation whose tuples changed by any path: cascades, leaves of partitions, COPY, triggers,
//! logical apply, C code. A change of a catalog in that list means that definitions changed. While `track_counts` is off nothing is
//! added to the list: a transaction in which it was off at any moment publishes to a wildcard that every entry of the database rests
//! on.
//!
//! Everything happens at PRE_COMMIT or PRE_PREPARE, where raising is still allowed. Slots are atomics; no lock.

use std::cell::Cell;

use arrow_cache_core::{Counter, RoomyVec, SlotId};
use pgrx::pg_sys;

use crate::invalidation::catalogs::is_meaningful_catalog;
use crate::invalidation::definitions::Definitions;
use crate::invalidation::queried_relations::{known_slot, may_carry_results, remember_slot};
use crate::invalidation::writer::{Writer, publish_to};
use crate::invalidation::{redefinition, track_counts, write_set};
use crate::pg::backend;
use crate::pg::backend_local::Local;
use crate::pg::error_passing::edge;
use crate::pg::object_ids::FIRST_USER_OID;
use crate::pg::transaction_changes::{self, ChangedRelation};
use crate::session;
use crate::shmem;

/// Notes a change of one relation, which the user was allowed to make: a user who may not change a relation must not outdate results
/// over it either. If this transaction has published already (a deferred action of another library may come later), the change is
/// published at once.
#[inline]
pub fn note_relation(relation: pg_sys::Oid) {
    let relation = relation.to_u32();
    if relation < FIRST_USER_OID {
        session::note_definition_change();
    }
    if write_set::note(relation) && write_set::is_published() {
        publish(false);
    }
}

/// Most slots of what is published without lists.
const FEW: usize = 8;

/// Publishes at PRE_COMMIT what this transaction has changed, if that is nothing but rows of few relations that this backend knows, as in nearly all
/// transactions. False if it may be more: then nothing has been published, and `publish` does it. Its frame is plain data: what the server raises while
/// it is asked for its list jumps over it.
///
/// # Safety
/// As `edge`.
pub unsafe fn publish_few() -> bool {
    let xid = backend::top_transaction_id();
    let (Some(store), Some(counters)) = (shmem::attached_store(), shmem::own_counters()) else { return false };
    if xid == 0 || track_counts::is_unlisted() || store.past_is_unknown() {
        return false;
    }
    let mut slots = [SlotId(0); FEW];
    let mut count = 0;
    // A change of a catalog may be one of definitions; no slot is known of that.
    let mut list = |relation: u32| {
        let Some(slot) = known_slot(relation) else { return false };
        for listed in slots.get(..count).unwrap_or(&slots) {
            if *listed == slot {
                return true;
            }
        }
        let place = slots.get_mut(count);
        count += 1;
        place.map(|place| *place = slot).is_some()
    };
    // SAFETY: the caller's promise; the closure that is asked for each relation has no destructor.
    unsafe {
        if !edge(|| write_set::all_relations(&mut list)) || !transaction_changes::all_changed_relations(list) {
            return false;
        }
        edge(|| {
            publish_to(store, xid, slots.get(..count).unwrap_or(&slots));
            counters.add(Counter::Invalidations, count as u64);
            write_set::set_published();
        });
    }
    true
}

/// Publishes everything this transaction has changed so far. At PRE_COMMIT and, then `preparing`, at PRE_PREPARE.
pub fn publish(preparing: bool) {
    let xid = backend::top_transaction_id();
    if xid == 0 {
        return;
    }
    let Some(store) = shmem::store() else { return };
    let mut lists = LISTS.take();
    let extent = lists.gather();
    let definitions = Definitions::of_transaction(&lists.changed, extent.unknown || extent.catalog_written);

    let writer = Writer::new(&store, xid);
    if definitions.any && preparing {
        store.note_prepared_definitions();
    }
    let redefined = if definitions.any { writer.redefined(&definitions) } else { Vec::new() };
    redefinition::begin(&redefined);
    lists.list_slots(&writer, &redefined, extent.unknown);
    for slot in &lists.slots {
        writer.publish(*slot);
    }
    store.counters().add(store.stripe(), Counter::Invalidations, lists.slots.len() as u64);
    write_set::set_published();
    lists.keep();
}

/// Lists that a publication fills. They are kept from one to the next, so that they are not allocated each time.
#[derive(Default)]
struct Lists {
    /// What the server lists.
    changed: Vec<ChangedRelation>,
    /// OIDs of relations whose rows have changed, ascending.
    relations: Vec<u32>,
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
static LISTS: Local<Cell<Lists>> =
    Local::new(Cell::new(Lists { changed: Vec::new(), relations: Vec::new(), slots: Vec::new() }));

impl Lists {
    /// Lists the relations that this transaction has changed, as the hooks and the server know them.
    fn gather(&mut self) -> Extent {
        let Self { changed, relations, .. } = self;
        let mut listed = write_set::list_into(relations);
        let catalog_written = relations.iter().any(|relation| is_meaningful_catalog(*relation));
        let seen = relations.len();
        transaction_changes::for_each_changed_relation(|relation| {
            // Most were seen by the hooks as well.
            if relations[..seen].binary_search(&relation.oid).is_err() {
                listed = listed.and(relations.add(relation.oid));
            }
            listed = listed.and(changed.add(relation));
        });
        if relations.len() > seen {
            relations.sort_unstable();
            relations.dedup();
        }
        Extent { unknown: listed.is_err() || track_counts::is_unlisted(), catalog_written }
    }

    /// Lists the slots of what was redefined and of the relations, and the wildcard if relations may be missing. Each stands there
    /// once, so that it is published once; a slot that there is no memory to list is published at once.
    fn list_slots(&mut self, writer: &Writer<'_>, redefined: &[SlotId], unknown: bool) {
        let Self { relations, slots, .. } = self;
        let mut list = |slot| {
            if slots.add(slot).is_err() {
                writer.publish(slot);
            }
        };
        redefined.iter().for_each(|slot| list(*slot));
        for relation in relations {
            if may_carry_results(*relation) {
                let slot = writer.relation(*relation);
                remember_slot(*relation, slot);
                list(slot);
            }
        }
        if unknown {
            list(writer.wildcard());
        }
        slots.sort_unstable_by_key(|slot| slot.0);
        slots.dedup();
    }

    /// Gives the lists back to the next publication.
    fn keep(mut self) {
        write_set::empty(&mut self.changed);
        write_set::empty(&mut self.relations);
        write_set::empty(&mut self.slots);
        LISTS.set(self);
    }
}
