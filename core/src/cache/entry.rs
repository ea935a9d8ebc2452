//! The record of an entry in the shared table.
//!
//! `life` is one word with three parts: the generation (which result the record holds), the state (where that result is
//! in its life) and the pins (the number of holders). Pins come and go without a lock; the other two change as
//! [`Entry::set_state`] says. They are in one word so that taking a pin and reading the state is one step: see
//! [`Entry::try_pin`]. Most hits hold the entry by a word of their process instead (`seats`). `next_in_bucket` changes
//! under the partition lock of the key; `list_*` under the store lock; `hits` and `last_used` without a lock. The other
//! fields and the payload are written only by the one process that fills the entry, before it is published, and by the
//! one that frees it, after the last pin is gone; readers hold a pin. All fields are atomics, because lookups and
//! eviction read records without a pin.

use crate::atomics::{
    AtomicI64, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use crate::cache::key::CacheKey;
use crate::cache::memory::ArenaPtr;
use crate::cache::worth::{Uses, Worth};
use crate::hash::Hash128;
use crate::prefetch::prefetch;
use crate::versions::slots::SlotId;

/// Index of an entry in the entry table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EntryId(pub u32);

/// What a result rests on: the version its slot had when the result was computed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(C)]
pub struct Dependency {
    /// The slot.
    pub slot: SlotId,
    /// Object id of the relation, for showing; 0 if the slot does not stand for a relation.
    pub relation: u32,
    /// Version of the slot.
    pub version: u64,
}

const _: () = assert!(size_of::<Dependency>() == 16);

/// What an entry holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryKind {
    /// The answer of a statement.
    Answer,
    /// The answer of a part, from which answers are combined.
    Fragment,
}

/// Where an entry is in its life. Zeroed memory is a free entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub(crate) enum State {
    /// On the free list, never used, or on its way there.
    Free = 0,
    /// Being filled, or retired and perhaps still pinned.
    Limbo = 1 << PIN_BITS,
    /// In the index.
    Published = 2 << PIN_BITS,
}

/// Bits of the number of pins. A pin belongs to a scan with a memory context of its own, so memory ends long before
/// 2^30 pins.
const PIN_BITS: u32 = 30;
const PINS: u64 = (1 << PIN_BITS) - 1;
const STATE: u64 = 3 << PIN_BITS;
const GENERATION_SHIFT: u32 = 32;

/// A generation and the state it is in. The generation grows with every reuse of the record, so an unchanged `Life`
/// means that the same result has been there all the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Life(u64);

impl Life {
    fn of(word: u64) -> Self {
        Self(word & !PINS)
    }

    pub(crate) fn is_published(self) -> bool {
        self.0 & STATE == State::Published as u64
    }

    pub(crate) fn is_free(self) -> bool {
        self.0 & STATE == State::Free as u64
    }

    pub(crate) fn generation(self) -> u32 {
        (self.0 >> GENERATION_SHIFT) as u32
    }

    /// A number that no other result in this block ever has, for the record of this index.
    pub(crate) fn number(self, index: u32) -> u64 {
        u64::from(self.generation()) << GENERATION_SHIFT | u64::from(index)
    }
}

/// Link to an entry: its index plus one; 0 is none.
pub(crate) type Link = u32;

/// One entry, on three cache lines: what every lookup of the key or a hit reads, what hits write, and what neither
/// needs. Zeroed memory is a free entry.
#[repr(C, align(64))]
pub(crate) struct Entry {
    key_hi: AtomicU64,
    key_lo: AtomicU64,
    pub(crate) head: AtomicU64,
    pub(crate) first_chunk: AtomicU64,
    pub(crate) expires_at: AtomicI64,
    pub(crate) next_in_bucket: AtomicU32,
    pub(crate) columns: AtomicU32,
    pub(crate) text_len: AtomicU32,
    pub(crate) descriptor_len: AtomicU32,
    pub(crate) dependency_count: AtomicU32,
    pub(crate) chunk_count: AtomicU32,
    usage: Usage,
    pub(crate) list_next: AtomicU32,
    pub(crate) list_previous: AtomicU32,
    pub(crate) last_chunk: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) created_at: AtomicI64,
    pub(crate) database: AtomicU32,
    pub(crate) role: AtomicU32,
    needs_plan: AtomicU32,
    kind: AtomicU32,
    catalogs_low: AtomicU32,
    /// Bytes of the file that has the chunks; 0 = they lie in the arena.
    pub(crate) file_bytes: AtomicU64,
}

/// The line that a process without a seat writes at every hit, others now and then (`seats`), and what a hit reads once
/// it has the line.
#[repr(C, align(64))]
struct Usage {
    life: AtomicU64,
    hits: AtomicU64,
    last_used: AtomicI64,
    rows: AtomicU64,
    execution_micros: AtomicU64,
    /// The upper bits of the version of the catalogs; and [`KEEPS_OUTDATED`].
    catalogs_high: AtomicU32,
    /// The first of the entry's renditions, or null.
    renditions: AtomicU64,
}

/// Somebody takes the entry when it is outdated: it stays in the index until another one takes its place.
const KEEPS_OUTDATED: u32 = 1 << 31;

const _: () = assert!(size_of::<Entry>() == 192 && std::mem::offset_of!(Entry, usage) == 64);

impl Entry {
    pub(crate) fn life(&self) -> Life {
        Life::of(self.usage.life.load(Acquire))
    }

    /// Into and out of `Published`: under the exclusive partition lock of the key. To `Free`: by the process that took
    /// the entry out of limbo.
    pub(crate) fn set_state(&self, state: State) {
        let before = self.usage.life.load(Relaxed) & STATE;
        self.add_to_life((state as u64).wrapping_sub(before));
    }

    /// From `Free` to `Limbo` under the next generation, pinned: under the store lock, by the process that takes the
    /// entry to fill it.
    pub(crate) fn begin(&self) {
        self.add_to_life((1 << GENERATION_SHIFT) + (State::Limbo as u64 - State::Free as u64) + 1);
    }

    /// Adds, so that pins that come and go meanwhile stay counted; nobody else changes the rest.
    fn add_to_life(&self, difference: u64) {
        self.usage.life.fetch_add(difference, AcqRel);
    }

    /// The key of the generation that [`Entry::life`] showed before, if `life` shows it again afterwards.
    pub(crate) fn key(&self) -> CacheKey {
        CacheKey(Hash128 { hi: self.key_hi.load(Acquire), lo: self.key_lo.load(Acquire) })
    }

    /// Set while filling, after `life` has the new generation: a process that sees the new key sees the new life too.
    pub(crate) fn set_key(&self, key: CacheKey) {
        self.key_hi.store(key.0.hi, Release);
        self.key_lo.store(key.0.lo, Release);
    }

    pub(crate) fn needs_plan(&self) -> bool {
        self.needs_plan.load(Relaxed) != 0
    }

    /// While filling.
    pub(crate) fn set_needs_plan(&self, needs_plan: bool) {
        self.needs_plan.store(u32::from(needs_plan), Relaxed);
    }

    pub(crate) fn kind(&self) -> EntryKind {
        if self.kind.load(Relaxed) == 0 { EntryKind::Answer } else { EntryKind::Fragment }
    }

    /// The version of the catalogs under which it was computed.
    pub(crate) fn catalogs(&self) -> u64 {
        let high = self.usage.catalogs_high.load(Relaxed) & !KEEPS_OUTDATED;
        u64::from(high) << 32 | u64::from(self.catalogs_low.load(Relaxed))
    }

    /// While filling.
    pub(crate) fn set_catalogs(&self, catalogs: u64, keeps_outdated: bool) {
        let flag = if keeps_outdated { KEEPS_OUTDATED } else { 0 };
        self.catalogs_low.store(catalogs as u32, Relaxed);
        self.usage.catalogs_high.store((catalogs >> 32) as u32 & !KEEPS_OUTDATED | flag, Relaxed);
    }

    pub(crate) fn keeps_outdated(&self) -> bool {
        self.usage.catalogs_high.load(Relaxed) & KEEPS_OUTDATED != 0
    }

    /// By anybody who has pinned it.
    pub(crate) fn keep_outdated(&self) {
        if !self.keeps_outdated() {
            self.usage.catalogs_high.fetch_or(KEEPS_OUTDATED, Relaxed);
        }
    }

    /// While filling.
    pub(crate) fn set_kind(&self, kind: EntryKind) {
        self.kind.store(u32::from(kind == EntryKind::Fragment), Relaxed);
    }

    pub(crate) fn pins(&self) -> u64 {
        self.usage.life.load(Acquire) & PINS
    }

    /// The pins that are counted at the entry, as of the last step of its word: what this process has written before is
    /// seen by whoever pins it later.
    pub(crate) fn pins_exactly(&self) -> u64 {
        self.usage.life.fetch_add(0, AcqRel) & PINS
    }

    /// Pins the entry if it is published and its life is `wanted`. What it holds then stays until [`Entry::unpin`].
    /// Takes no lock.
    ///
    /// The pin and the state come from one atomic step. If the state was `Published`, a process that retires the entry
    /// does so later, and the process that would free it then finds the pin. If not, nobody relied on the pin and
    /// nothing was read; it is given back at once. Until then `pins` is too large by one, so a reclaim may pass over a
    /// record without pins; the next one finds it.
    pub(crate) fn try_pin(&self, wanted: impl FnOnce(Life) -> bool) -> bool {
        let life = Life::of(self.usage.life.fetch_add(1, AcqRel));
        let pinned = life.is_published() && wanted(life);
        if !pinned {
            self.unpin();
        }
        pinned
    }

    /// Adds a pin. The caller holds one already, or the lock under which a published entry would be retired.
    pub(crate) fn pin(&self) {
        self.usage.life.fetch_add(1, AcqRel);
    }

    pub(crate) fn unpin(&self) {
        self.usage.life.fetch_sub(1, AcqRel);
    }

    /// Asks the processor to fetch the line that a pin will write.
    pub(crate) fn prefetch_usage(&self) {
        prefetch((&raw const self.usage).cast());
    }

    /// Adds hits, the last of them at `now`.
    pub(crate) fn touch(&self, hits: u64, now: i64) {
        self.usage.hits.fetch_add(hits, Relaxed);
        self.usage.last_used.fetch_max(now, Relaxed);
    }

    pub(crate) fn reset_usage(&self, now: i64) {
        self.usage.hits.store(0, Relaxed);
        self.usage.last_used.store(now, Relaxed);
    }

    /// How the entry was used by now.
    pub(crate) fn uses(&self, now: i64) -> Uses {
        let since = |time: i64| u64::try_from(now.saturating_sub(time)).unwrap_or(0);
        Uses { hits: self.hits(), span: since(self.created_at.load(Relaxed)), idle: since(self.last_used()) }
    }

    /// Returns true if it was ever used.
    pub(crate) fn was_used(&self) -> bool {
        self.hits() > 0
    }

    /// What keeping the entry is worth, for the bytes that its chunks take where they lie.
    pub(crate) fn worth(&self, now: i64) -> Worth {
        let bytes = if self.is_in_file() { &self.file_bytes } else { &self.bytes };
        Worth::of(self.execution_micros(), bytes.load(Relaxed), self.uses(now))
    }

    /// Returns true if a file has the chunks.
    pub(crate) fn is_in_file(&self) -> bool {
        self.file_bytes.load(Relaxed) != 0
    }

    pub(crate) fn hits(&self) -> u64 {
        self.usage.hits.load(Relaxed)
    }

    pub(crate) fn last_used(&self) -> i64 {
        self.usage.last_used.load(Relaxed)
    }

    /// The first rendition. Read under a pin.
    pub(crate) fn renditions(&self) -> ArenaPtr {
        ArenaPtr(self.usage.renditions.load(Acquire))
    }

    /// Takes the list of renditions off the entry.
    pub(crate) fn take_renditions(&self) -> ArenaPtr {
        ArenaPtr(self.usage.renditions.swap(0, AcqRel))
    }

    /// Makes another rendition the first, in front of `before`; the error is the one that has become the first
    /// meanwhile.
    pub(crate) fn replace_renditions(&self, before: ArenaPtr, first: ArenaPtr) -> Result<(), ArenaPtr> {
        let exchanged = self.usage.renditions.compare_exchange(before.0, first.0, AcqRel, Acquire);
        exchanged.map(|_| ()).map_err(ArenaPtr)
    }

    pub(crate) fn rows(&self) -> u64 {
        self.usage.rows.load(Relaxed)
    }

    pub(crate) fn execution_micros(&self) -> u64 {
        self.usage.execution_micros.load(Relaxed)
    }

    /// By the process that fills the entry.
    pub(crate) fn set_result(&self, rows: u64, execution_micros: u64) {
        self.usage.rows.store(rows, Relaxed);
        self.usage.execution_micros.store(execution_micros, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zeroed() -> Entry {
        // SAFETY: zeroed memory is an entry.
        unsafe { std::mem::zeroed() }
    }

    fn published() -> Entry {
        let entry = zeroed();
        entry.begin();
        entry.set_state(State::Published);
        entry.unpin();
        entry
    }

    #[test]
    fn only_a_published_entry_can_be_pinned() {
        let entry = zeroed();
        assert!(!entry.try_pin(|_| true));
        entry.begin();
        assert!(!entry.try_pin(|_| true));
        assert_eq!(entry.pins(), 1);
        entry.set_state(State::Published);
        assert!(entry.try_pin(|_| true));
        assert_eq!(entry.pins(), 2);
        entry.set_state(State::Limbo);
        assert!(!entry.try_pin(|_| true));
        assert_eq!(entry.pins(), 2);
    }

    #[test]
    fn an_entry_that_was_used_anew_is_not_the_one_seen() {
        let entry = published();
        let seen = entry.life();
        assert!(entry.try_pin(|life| life == seen));
        entry.unpin();
        entry.set_state(State::Free);
        entry.begin();
        entry.set_state(State::Published);
        assert!(!entry.try_pin(|life| life == seen));
        assert_eq!(entry.pins(), 1);
        assert_eq!(entry.life().generation(), seen.generation() + 1);
    }

    #[test]
    fn pins_of_the_moment_survive_every_step() {
        let entry = zeroed();
        for generation in 1..5 {
            entry.pin();
            entry.begin();
            entry.set_state(State::Published);
            entry.set_state(State::Limbo);
            entry.set_state(State::Free);
            assert_eq!(entry.pins(), 2);
            assert_eq!(entry.life().generation(), generation);
            entry.unpin();
            entry.unpin();
        }
    }

    #[test]
    fn generations_wrap_around() {
        let entry = zeroed();
        entry.usage.life.store(u64::from(u32::MAX) << GENERATION_SHIFT, Relaxed);
        entry.begin();
        assert_eq!((entry.life().generation(), entry.pins()), (0, 1));
    }
}
