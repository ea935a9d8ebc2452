//! Versions of what results rest on, by the protocol "publish before visible": slots that writers change before their
//! transaction can become visible to anybody, and that readers compare with their snapshot.
//!
//! Any process may publish to a slot, at any time, and read one: see `slot`, and for values `value_slot`. A slot does
//! not know its relation: relations that hash to the same slot share it, which can only invalidate too much.

use crate::atomics::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use crate::versions::places::{near, number_of_column, place_of_value, scatter};
use crate::versions::slot::{Slot, SlotState};
use crate::versions::snapshot::SnapshotView;
use crate::versions::value_slot::ValueSlot;

/// Number of slots of each kind that stands for a whole database. The models of `core/loom` have one of each.
pub const DATABASE_SLOTS: usize = if cfg!(modelled) { 1 } else { 64 };
/// Number of slots before those of relations: one of all databases, and three kinds that stand for a whole database.
pub const FIXED_SLOTS: usize = 1 + 3 * DATABASE_SLOTS;
/// The fewest slots but those of values: two for relations.
pub const LEAST_SLOTS: usize = FIXED_SLOTS + 2;
/// Fewest and most places of relations, of two slots each. Fewer for Miri, which takes minutes to check so many.
const RELATION_PLACES: std::ops::RangeInclusive<usize> = if cfg!(miri) { 256..=256 } else { 4096..=65_536 };
/// Fewest and most slots for values. Each change publishes to some, so answers over other values that share these are
/// outdated.
const VALUE_SLOTS: std::ops::RangeInclusive<usize> = if cfg!(miri) { 512..=512 } else { 1 << 16..=1 << 23 };
/// One in so many bytes of the block may go to each slot of relations, and to values.
const SHARES: [usize; 2] = [64, 16];

/// Number of slots but those of values in a block of this size. The more there are, the less often two relations share
/// one.
#[must_use]
pub fn slot_count(memory: usize) -> usize {
    let places = (memory / SHARES[0] / size_of::<Slot>()).max(1).next_power_of_two();
    FIXED_SLOTS + 2 * places.clamp(*RELATION_PLACES.start(), *RELATION_PLACES.end())
}

/// Number of slots for values in a block of this size, a power of two.
#[must_use]
pub fn value_count(memory: usize) -> usize {
    let values = (memory / SHARES[1] / size_of::<ValueSlot>()).max(1).next_power_of_two();
    values.clamp(*VALUE_SLOTS.start(), *VALUE_SLOTS.end())
}

/// Index over all slots: the one of all databases, those of databases, kind by kind, then those of
/// relations, two for each, and those of values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct SlotId(pub u32);

/// View over all slots of the block and the floor below which nothing is known.
#[derive(Clone, Copy)]
pub struct Versions<'a> {
    slots: &'a [Slot],
    values: &'a [ValueSlot],
    base_floor: &'a AtomicU64,
}

impl<'a> Versions<'a> {
    /// A view over slots, as many as [`slot_count`] and [`value_count`] return, and a base floor (0 = not set yet).
    ///
    /// # Panics
    /// If there are no slots for relations, or the number of those for values is no power of two.
    #[must_use]
    pub fn new(slots: &'a [Slot], values: &'a [ValueSlot], base_floor: &'a AtomicU64) -> Self {
        assert!(slots.len() >= LEAST_SLOTS, "there are no slots for relations");
        assert!(values.len().is_power_of_two(), "the number of slots for values is no power of two");
        Self { slots, values, base_floor }
    }

    /// The slot of a relation: of its rows and of its definition. On a standby also the slot of a file, by its number.
    #[must_use]
    pub fn relation(&self, database: u32, relation: u32) -> SlotId {
        self.place(near(database, relation))
    }

    /// The first slot of a place of relations, by any number.
    fn place(&self, number: u32) -> SlotId {
        // The number of places is a power of two of 32 bits.
        SlotId(FIXED_SLOTS as u32 + 2 * (number & (self.relation_slots() / 2 - 1) as u32))
    }

    /// The slot for all changes of a tracked relation but those of rows whose values are published: it stands beside
    /// the slots of values in the place of the slot of the relation (`tracked`).
    #[must_use]
    pub fn coarse(&self, database: u32, relation: u32) -> SlotId {
        Self::beside(self.relation(database, relation))
    }

    /// The coarse slot of a relation whose slot is given.
    #[must_use]
    pub const fn beside(whole: SlotId) -> SlotId {
        SlotId(whole.0 + 1)
    }

    /// The slots to which each change of a relation is published, unless it is known which values it concerns.
    #[must_use]
    pub fn of_relation(&self, database: u32, relation: u32) -> [SlotId; 2] {
        let whole = self.relation(database, relation);
        [whole, Self::beside(whole)]
    }

    /// The slot for the rows of a relation that have a value in a column, which is given by its hash.
    #[must_use]
    pub fn value(&self, database: u32, relation: u32, column: i16, hash: u64) -> SlotId {
        let place = place_of_value(number_of_column(database, relation, column), hash);
        SlotId((self.slots.len() + self.index_of(place)) as u32)
    }

    /// The slot for those rows of a relation of which it is not known which values they have in a column: answers over
    /// values of the column rest on it. For the first column that is tracked, the coarse slot is that.
    ///
    /// All answers over values of the column rest on it, so it is none that changes of other values move. It is the
    /// coarse slot of any place, which moves only if that has a tracked relation.
    #[must_use]
    pub fn unknown(&self, database: u32, relation: u32, column: i16) -> SlotId {
        SlotId(self.place(number_of_column(database, relation, column) as u32).0 + 1)
    }

    /// Returns true if a slot stands for rows with a value.
    #[must_use]
    pub fn is_of_value(&self, slot: SlotId) -> bool {
        slot.0 as usize >= self.slots.len()
    }

    /// Number of slots of relations, two for each place.
    #[must_use]
    pub fn relation_slots(&self) -> usize {
        self.slots.len() - FIXED_SLOTS
    }

    /// The slot for changes of definitions that no relation stands for (functions, operators, casts, …) in a database,
    /// and for writers of unknown relations: every result of the database rests on it.
    #[must_use]
    pub fn ddl(&self, database: u32) -> SlotId {
        Self::of_database(0, database)
    }

    /// The slot for what queries inside of functions go by, in all databases: roles, and which objects a name may stand
    /// for. Results rest on it if they come from such queries.
    #[must_use]
    pub fn inner(&self) -> SlotId {
        SlotId(0)
    }

    /// The slots for changes of definitions that no relation stands for in all databases.
    pub fn ddl_everywhere(&self) -> impl Iterator<Item = SlotId> + use<> {
        (1..=DATABASE_SLOTS as u32).map(SlotId)
    }

    /// The slot for changes of the labels of enums in a database.
    #[must_use]
    pub fn enums(&self, database: u32) -> SlotId {
        Self::of_database(1, database)
    }

    /// The slot for changes of any definition in a database. Plans are compared with it; results do not rest on it.
    #[must_use]
    pub fn catalogs(&self, database: u32) -> SlotId {
        Self::of_database(2, database)
    }

    fn of_database(kind: usize, database: u32) -> SlotId {
        let hash = scatter(u64::from(database)) as usize % DATABASE_SLOTS;
        SlotId((1 + kind * DATABASE_SLOTS + hash) as u32)
    }

    /// All slots but those of values.
    pub(crate) fn slots(&self) -> &'a [Slot] {
        self.slots
    }

    /// Returns true if no process has ended in the middle of a change.
    pub(crate) fn are_at_rest(&self) -> bool {
        self.slots.iter().all(|slot| slot.change_under_way().is_none())
    }

    /// All slots of values.
    pub(crate) fn values(&self) -> &'a [ValueSlot] {
        self.values
    }

    /// The slot itself, which is none of a value. An id this view did not make is taken modulo the number of slots.
    #[must_use]
    pub fn slot(&self, id: SlotId) -> &'a Slot {
        let index = id.0 as usize;
        // A division would take longer than the rest of reading a slot.
        self.slots.get(index).unwrap_or_else(|| &self.slots[index % self.slots.len()])
    }

    /// Which of the slots of values is the one of this place.
    #[inline]
    fn index_of(&self, place: u64) -> usize {
        // Their number is a power of two.
        place as usize & (self.values.len() - 1)
    }

    /// The slot itself if it is one of a value. An id this view did not make is taken modulo the number of these.
    fn value_slot(&self, id: SlotId) -> Option<&'a ValueSlot> {
        let index = (id.0 as usize).checked_sub(self.slots.len())?;
        Some(&self.values[index & (self.values.len() - 1)])
    }

    /// The state of any slot.
    #[must_use]
    pub fn read(&self, id: SlotId) -> SlotState {
        self.value_slot(id).map_or_else(|| self.slot(id).read(), ValueSlot::read)
    }

    /// The version of any slot alone.
    #[must_use]
    pub fn version(&self, id: SlotId) -> u64 {
        self.value_slot(id).map_or_else(|| self.slot(id).version(), ValueSlot::version)
    }

    /// Publishes to any slot, on the terms of [`Slot::publish`].
    pub fn publish(&self, id: SlotId, xid: u64, oldest_running: u64, is_running: impl Fn(u64) -> bool, now: i64) {
        match self.value_slot(id) {
            Some(value) => value.publish(xid, oldest_running, is_running),
            None => self.slot(id).publish(xid, oldest_running, is_running, now),
        }
    }

    /// Publishes to the slots of values that have these places, on the terms of [`Slot::publish`].
    #[inline]
    pub fn publish_values(&self, places: &[u64], xid: u64, oldest_running: u64, is_running: impl Fn(u64) -> bool) {
        for place in places {
            self.values[self.index_of(*place)].publish(xid, oldest_running, &is_running);
        }
    }

    /// Publishes to any slot, on the terms of [`Slot::publish_replayed`].
    pub fn publish_replayed(&self, id: SlotId, xid: u64, now: i64) {
        match self.value_slot(id) {
            Some(value) => value.publish(xid, xid, |_| false),
            None => self.slot(id).publish_replayed(xid, now),
        }
    }

    /// The id below which nothing is known, 0 while it is not set: see `ensure_floor`.
    #[must_use]
    pub fn base_floor(&self) -> u64 {
        self.base_floor.load(Acquire)
    }

    /// Sets the base floor to `next_full_xid - 1` unless it was set since the block was made: transactions from before
    /// the start, prepared ones included, published to slots that no longer exist.
    pub fn ensure_floor(&self, next_full_xid: u64) {
        if self.base_floor.load(Acquire) == 0 {
            // If another process was first, it has set it: nothing is left to do.
            let _ = self.base_floor.compare_exchange(0, Self::floor_below(next_full_xid), Release, Relaxed);
        }
    }

    /// Starts over after something could not be published: nothing from before `next_full_xid` is taken for known any
    /// more. The caller is the one process that replays, and nothing of what it could not publish is visible before
    /// this returns; or it is at the end of recovery, and nobody writes before this returns.
    ///
    /// The floor rises before the slots of databases move, on one of which each result rests. So a result whose
    /// versions were read before is outdated, and whoever reads versions after that finds the higher floor. The floor
    /// never sinks.
    pub fn begin_anew(&self, next_full_xid: u64, now: i64) {
        self.base_floor.fetch_max(Self::floor_below(next_full_xid), AcqRel);
        for slot in &self.slots[..FIXED_SLOTS] {
            slot.bump(now);
        }
    }

    /// From now on no snapshot sees anything whole: nothing is stored any more, and nothing is given. What is stored
    /// already stays as it is. For the end of a server.
    pub fn close(&self) {
        self.base_floor.store(u64::MAX, Release);
    }

    fn floor_below(next_full_xid: u64) -> u64 {
        next_full_xid.saturating_sub(1).max(1)
    }

    /// The version of a slot if the snapshot sees all that was ever published to it; `None` also while the base floor
    /// is not set.
    #[must_use]
    pub fn seen_whole(&self, id: SlotId, snapshot: &SnapshotView<'_>) -> Option<u64> {
        let state = self.read(id);
        // The floor is read after the slot: see `begin_anew`.
        (self.above_base_floor(snapshot) && state.seen_whole(snapshot)).then_some(state.version)
    }

    /// Whether the snapshot sees everything from before the start. Asked after the slots were read: see `begin_anew`.
    #[must_use]
    pub fn above_base_floor(&self, snapshot: &SnapshotView<'_>) -> bool {
        let floor = self.base_floor.load(Acquire);
        floor != 0 && floor < snapshot.xmin
    }
}
