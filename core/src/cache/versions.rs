//! Versions of what results rest on, by the protocol "publish before visible": slots that writers change before their transaction can
//! become visible to anybody, and that readers compare with their snapshot.
//!
//! Any process may publish to a slot, at any time. A slot is read and written as a whole under its own sequence word: writers make the word
//! odd while they store, readers try again when it was odd or moved. No other lock is taken, and nothing is called while the word is odd.
//!
//! A slot does not know its relation: relations that hash to the same slot share it, which can only invalidate too much.

use crate::atomics::{
    AtomicI64, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    fence, spin_loop, yield_now,
};
use crate::cache::xid_window::XidWindow;

/// Publishing transactions that a slot remembers one by one; more are folded into its window.
pub const PENDING: usize = 3;

/// Number of slots of each kind that stands for a whole database. The models of `core/loom` have one of each.
pub const DATABASE_SLOTS: usize = if cfg!(modelled) { 1 } else { 64 };
/// Number of slots before those of relations: four kinds that stand for a whole database.
pub const FIXED_SLOTS: usize = 4 * DATABASE_SLOTS;
/// Fewest and most slots for relations. Fewer for Miri: see `RUN_WORDS`.
const RELATION_SLOTS: std::ops::RangeInclusive<usize> = if cfg!(miri) { 256..=256 } else { 8192..=65_536 };
/// One in 64 bytes of the block may go to slots of relations.
const SHARE_OF_SLOTS: usize = 64;

/// Number of slots in a block of this size. The more there are, the less often two relations share one.
#[must_use]
pub fn slot_count(memory: usize) -> usize {
    let wanted = memory / SHARE_OF_SLOTS / size_of::<Slot>();
    let relations = wanted.max(1).next_power_of_two();
    FIXED_SLOTS + relations.clamp(*RELATION_SLOTS.start(), *RELATION_SLOTS.end())
}

/// One version slot, a cache line of its own. Zeroed memory is a valid slot.
#[repr(C, align(64))]
pub struct Slot {
    /// Twice the version, and one more while a writer stores.
    sequence: AtomicU64,
    pending: [AtomicU64; PENDING],
    window_low: AtomicU64,
    window_high: AtomicU64,
    window_marks: AtomicU64,
    last_change: AtomicI64,
}

const _: () = assert!(size_of::<Slot>() == 64);

/// The state of a slot at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SlotState {
    /// Counts publications.
    pub version: u64,
    /// 64-bit ids of publishing transactions; 0 = empty.
    pub pending: [u64; PENDING],
    /// Publishing transactions that found no empty place.
    pub window: XidWindow,
    /// When the last publication was, in microseconds.
    pub last_change: i64,
}

/// What a snapshot sees, in 64-bit transaction ids.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotView<'a> {
    /// Every id below has ended.
    pub xmin: u64,
    /// Every id from here on had not begun.
    pub xmax: u64,
    /// Low halves of the top-level ids in `xmin..xmax` that were running, in any order.
    pub in_progress: &'a [u32],
}

impl<'a> SnapshotView<'a> {
    /// A snapshot with 32-bit ids. `next_full_xid` is the next id at any time less than 2^31 transactions away from the snapshot.
    #[must_use]
    pub fn new(next_full_xid: u64, xmin32: u32, xmax32: u32, xip: &'a [u32]) -> Self {
        Self { xmin: widen_xid(next_full_xid, xmin32), xmax: widen_xid(next_full_xid, xmax32), in_progress: xip }
    }

    /// Whether the transaction had ended when the snapshot was taken, so that the snapshot sees it if it committed.
    #[must_use]
    pub fn finished(&self, xid: u64) -> bool {
        xid < self.xmin || (xid < self.xmax && !self.in_progress.contains(&(xid as u32)))
    }

    /// Whether all of them had ended.
    fn all_finished(&self, window: &XidWindow) -> bool {
        let widened = |xid: u32| self.xmin + u64::from(xid.wrapping_sub(self.xmin as u32));
        window.is_empty()
            || window.high < self.xmin
            || (window.high < self.xmax && !self.in_progress.iter().any(|&xid| window.holds(widened(xid))))
    }
}

/// The 64-bit id nearest to `reference` whose low half is `xid`.
#[must_use]
pub fn widen_xid(reference: u64, xid: u32) -> u64 {
    let distance = xid.wrapping_sub(reference as u32).cast_signed();
    reference.saturating_add_signed(i64::from(distance))
}

impl SlotState {
    /// Whether the snapshot sees every change published to the slot. The slot must have been read after the snapshot was taken.
    #[must_use]
    pub fn seen_whole(&self, snapshot: &SnapshotView<'_>) -> bool {
        snapshot.all_finished(&self.window) && self.publishers().all(|xid| snapshot.finished(xid))
    }

    /// Can a slot be in this state? No publisher is remembered twice, and both ends of a window belong to it.
    pub(crate) fn is_possible(&self) -> bool {
        let are_distinct = (1..PENDING).all(|n| self.pending[n] == 0 || !self.pending[..n].contains(&self.pending[n]));
        let window = &self.window;
        are_distinct && (window.is_empty() || (window.holds(window.low) && window.holds(window.high)))
    }

    fn publishers(&self) -> impl Iterator<Item = u64> + '_ {
        self.pending.iter().copied().filter(|&xid| xid != 0)
    }

    /// Forgets the publishers that were found ended. Those that came after that stay: nobody has asked about them.
    fn forget(&mut self, ended: &Ended) {
        for cell in &mut self.pending {
            if ended.pending.contains(cell) {
                *cell = 0;
            }
        }
        if self.window == ended.window {
            self.window = ended.window_left;
        }
    }

    fn add(&mut self, xid: u64) {
        if self.pending.contains(&xid) || self.window.holds(xid) {
            return;
        }
        if let Some(empty) = self.pending.iter_mut().find(|cell| **cell == 0) {
            *empty = xid;
            return;
        }
        // The id that leaves the window narrowest is folded. Of several such ids it is the newest, so that long transactions are remembered
        // one by one and the window holds short ones.
        let preference = |xid: u64| (self.window.growth(xid), std::cmp::Reverse(xid));
        let mut folded = xid;
        for cell in &mut self.pending {
            if preference(*cell) < preference(folded) {
                std::mem::swap(cell, &mut folded);
            }
        }
        self.window.add(folded);
    }
}

/// The publishers of a slot that have ended: see [`Slot::find_ended`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Ended {
    pending: [u64; PENDING],
    window: XidWindow,
    window_left: XidWindow,
}

impl Slot {
    /// The state of the slot, as one consistent whole.
    #[must_use]
    pub fn read(&self) -> SlotState {
        let mut waits = 0;
        loop {
            let before = self.sequence.load(Acquire);
            if before & 1 == 0 {
                let state = self.load(before);
                fence(Acquire);
                if self.sequence.load(Relaxed) == before {
                    return state;
                }
            }
            wait(&mut waits);
        }
    }

    /// The state of the slot, as one consistent whole; `None` if somebody is changing it.
    pub(crate) fn try_read(&self) -> Option<SlotState> {
        let before = self.sequence.load(Acquire);
        let state = (before & 1 == 0).then(|| self.load(before))?;
        fence(Acquire);
        (self.sequence.load(Relaxed) == before).then_some(state)
    }

    /// The change that somebody is making at this moment: each has a number of its own.
    pub(crate) fn change_under_way(&self) -> Option<u64> {
        Some(self.sequence.load(Relaxed)).filter(|sequence| sequence & 1 != 0)
    }

    /// The version alone: enough to find that it moved, but not what a snapshot sees.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.sequence.load(Acquire) / 2
    }

    /// Publishes that top-level transaction `xid`, still running, changes what this slot stands for. Must be called before `xid` can
    /// become visible. `oldest_running` is at most every id that runs at the time of the call or later, `xid` included.
    /// `is_running` is asked about other publishers, with no lock held. A wrong `true` makes readers refuse entries that they could
    /// serve; a wrong `false` lets outdated entries be served. `now` is in microseconds.
    ///
    /// Publishers that have ended are forgotten: a snapshot that sees `xid` sees them too, and one that does not is refused because of
    /// `xid`.
    pub fn publish(&self, xid: u64, oldest_running: u64, is_running: impl FnMut(u64) -> bool, now: i64) {
        let ended = self.find_ended(xid, oldest_running, is_running);
        self.enter(xid, &ended, now);
    }

    /// The first half of [`Slot::publish`]: finds publishers that `xid` can stand for. It stores nothing.
    #[must_use]
    pub fn find_ended(&self, xid: u64, oldest_running: u64, mut is_running: impl FnMut(u64) -> bool) -> Ended {
        let seen = self.read();
        // `xid` itself is entered anew.
        let mut has_ended = |other| other == xid || other < oldest_running || !is_running(other);
        let mut ended = Ended { window: seen.window, ..Ended::default() };
        for (cell, other) in ended.pending.iter_mut().zip(seen.publishers()) {
            if has_ended(other) {
                *cell = other;
            }
        }
        ended.window_left = seen.window.without_ended(oldest_running, has_ended);
        ended
    }

    /// The second half of [`Slot::publish`], at any later time: an id that has ended never runs again.
    pub fn enter(&self, xid: u64, ended: &Ended, now: i64) {
        self.change(now, |state| {
            state.forget(ended);
            state.add(xid);
        });
    }

    /// Publishes `xid` from the one process that replays the WAL of a primary, before it replays the record that ends `xid`.
    ///
    /// It takes the publisher before for ended. That is so: this process alone publishes on a standby, each time just before it replays the
    /// end of the publisher, and it replays one record after the other. So whatever it published before has ended by now. After the end of
    /// recovery other processes publish transactions that run on: this must not be called any more then.
    ///
    /// A slot that was published in this way alone has one publisher, in the first place. Others are left as they are, which could only make
    /// readers refuse more.
    #[inline]
    pub fn publish_replayed(&self, xid: u64, now: i64) {
        let sequence = self.begin();
        self.pending[0].store(xid, Relaxed);
        self.last_change.store(now, Relaxed);
        self.sequence.store(sequence.wrapping_add(2), Release);
    }

    /// Moves the version and nothing else: results stored under the old one are outdated, and new ones can be stored at once.
    pub fn bump(&self, now: i64) {
        self.change(now, |_| ());
    }

    /// Runs `edit` on the state with the sequence word odd, and stores the state under the next version.
    fn change(&self, now: i64, edit: impl FnOnce(&mut SlotState)) {
        let sequence = self.begin();
        let mut state = self.load(sequence);
        edit(&mut state);
        state.last_change = now;
        self.store(&state);
        self.sequence.store(sequence.wrapping_add(2), Release);
    }

    /// Makes the sequence word odd and returns what it was.
    #[inline(always)]
    fn begin(&self) -> u64 {
        let before = self.try_begin().unwrap_or_else(|| self.wait_and_begin());
        // Pairs with the fence of `read`: a reader that sees one of the stores that follow sees the word odd or later.
        fence(Release);
        before
    }

    #[inline(always)]
    fn try_begin(&self) -> Option<u64> {
        let current = self.sequence.load(Relaxed);
        let odd = current.wrapping_add(1);
        (current & 1 == 0 && self.sequence.compare_exchange_weak(current, odd, Acquire, Relaxed).is_ok())
            .then_some(current)
    }

    /// Another writer stores at this moment.
    #[cold]
    #[inline(never)]
    fn wait_and_begin(&self) -> u64 {
        let mut waits = 0;
        loop {
            wait(&mut waits);
            if let Some(before) = self.try_begin() {
                return before;
            }
        }
    }

    /// The state under a sequence word, which is even.
    fn load(&self, sequence: u64) -> SlotState {
        SlotState {
            version: sequence / 2,
            pending: std::array::from_fn(|i| self.pending[i].load(Relaxed)),
            window: XidWindow {
                low: self.window_low.load(Relaxed),
                high: self.window_high.load(Relaxed),
                marks: self.window_marks.load(Relaxed),
            },
            last_change: self.last_change.load(Relaxed),
        }
    }

    fn store(&self, state: &SlotState) {
        for (cell, &xid) in self.pending.iter().zip(&state.pending) {
            cell.store(xid, Relaxed);
        }
        self.window_low.store(state.window.low, Relaxed);
        self.window_high.store(state.window.high, Relaxed);
        self.window_marks.store(state.window.marks, Relaxed);
        self.last_change.store(state.last_change, Relaxed);
    }
}

#[cfg(test)]
impl Slot {
    /// Makes it a slot with these publishers.
    pub(crate) fn damage(&self, pending: [u64; PENDING]) {
        self.change(0, |state| state.pending = pending);
    }

    /// Leaves it in the middle of a change.
    pub(crate) fn damage_word(&self) {
        self.begin();
    }
}

impl From<SlotState> for Slot {
    fn from(state: SlotState) -> Self {
        Self {
            sequence: AtomicU64::new(state.version * 2),
            pending: state.pending.map(AtomicU64::new),
            window_low: AtomicU64::new(state.window.low),
            window_high: AtomicU64::new(state.window.high),
            window_marks: AtomicU64::new(state.window.marks),
            last_change: AtomicI64::new(state.last_change),
        }
    }
}

/// Spins for a while, then gives up the processor: the holder of the word may have lost it.
fn wait(waits: &mut u32) {
    if *waits < 64 {
        *waits += 1;
        spin_loop();
    } else {
        yield_now();
    }
}

/// Index over all slots: those of databases, kind by kind, then those of relations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct SlotId(pub u32);

/// View over all slots of the block and the floor below which nothing is known.
#[derive(Clone, Copy)]
pub struct Versions<'a> {
    slots: &'a [Slot],
    base_floor: &'a AtomicU64,
}

impl<'a> Versions<'a> {
    /// A view over slots, as many as [`slot_count`] returns, and a base floor (0 = not set yet).
    ///
    /// # Panics
    /// If there are no slots for relations.
    #[must_use]
    pub fn new(slots: &'a [Slot], base_floor: &'a AtomicU64) -> Self {
        assert!(slots.len() > FIXED_SLOTS, "there are no slots for relations");
        Self { slots, base_floor }
    }

    /// The slot of a relation: of its rows and of its definition. On a standby also the slot of a file, by its number.
    #[must_use]
    pub fn relation(&self, database: u32, relation: u32) -> SlotId {
        // Ids that follow each other have slots that do: relations of one database share a slot only if their ids lie far apart.
        let hash = (scatter(u64::from(database)) >> 1) + u64::from(relation);
        let relations = self.slots.len() - FIXED_SLOTS;
        // Their number is a power of two.
        SlotId((FIXED_SLOTS + (hash as usize & (relations - 1))) as u32)
    }

    /// The slot for changes of definitions that no relation stands for (functions, operators, casts, …) in a database.
    #[must_use]
    pub fn ddl(&self, database: u32) -> SlotId {
        Self::of_database(0, database)
    }

    /// The slot for writers of unknown relations in a database.
    #[must_use]
    pub fn wildcard(&self, database: u32) -> SlotId {
        Self::of_database(1, database)
    }

    /// The slot for changes of the labels of enums in a database.
    #[must_use]
    pub fn enums(&self, database: u32) -> SlotId {
        Self::of_database(2, database)
    }

    /// The slot for changes of any definition in a database. Plans are compared with it; results do not rest on it.
    #[must_use]
    pub fn catalogs(&self, database: u32) -> SlotId {
        Self::of_database(3, database)
    }

    fn of_database(kind: usize, database: u32) -> SlotId {
        let hash = scatter(u64::from(database)) as usize % DATABASE_SLOTS;
        SlotId((kind * DATABASE_SLOTS + hash) as u32)
    }

    /// All slots.
    pub(crate) fn slots(&self) -> &'a [Slot] {
        self.slots
    }

    /// The slot itself. An id this view did not make is taken modulo the number of slots.
    #[must_use]
    pub fn slot(&self, id: SlotId) -> &'a Slot {
        let index = id.0 as usize;
        // A division would take longer than the rest of reading a slot.
        self.slots.get(index).unwrap_or_else(|| &self.slots[index % self.slots.len()])
    }

    /// The id below which nothing is known, 0 while it is not set: see `ensure_floor`.
    #[must_use]
    pub fn base_floor(&self) -> u64 {
        self.base_floor.load(Acquire)
    }

    /// Sets the base floor to `next_full_xid - 1` unless it was set since the block was made: transactions from before the start, prepared
    /// ones included, published to slots that no longer exist.
    pub fn ensure_floor(&self, next_full_xid: u64) {
        if self.base_floor.load(Acquire) == 0 {
            // If another process was first, it has set it: nothing is left to do.
            let _ = self.base_floor.compare_exchange(0, Self::floor_below(next_full_xid), Release, Relaxed);
        }
    }

    /// Starts over after something could not be published: nothing from before `next_full_xid` is taken for known any more. The caller is
    /// the one process that replays, and nothing of what it could not publish is visible before this returns; or it is at the end of
    /// recovery, and nobody writes before this returns.
    ///
    /// The floor rises before the slots of databases move, on one of which each result rests. So a result whose versions were read before
    /// is outdated, and whoever reads versions after that finds the higher floor. The floor never sinks.
    pub fn begin_anew(&self, next_full_xid: u64, now: i64) {
        self.base_floor.fetch_max(Self::floor_below(next_full_xid), AcqRel);
        for slot in &self.slots[..FIXED_SLOTS] {
            slot.bump(now);
        }
    }

    fn floor_below(next_full_xid: u64) -> u64 {
        next_full_xid.saturating_sub(1).max(1)
    }

    /// The version of a slot if the snapshot sees all that was ever published to it; `None` also while the base floor is not set.
    #[must_use]
    pub fn seen_whole(&self, id: SlotId, snapshot: &SnapshotView<'_>) -> Option<u64> {
        let state = self.slot(id).read();
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

/// Finaliser of splitmix64: neighbouring object ids land far apart.
pub(crate) fn scatter(value: u64) -> u64 {
    let mut x = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
