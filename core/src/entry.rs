//! The record of an entry in the shared table.
//!
//! `life` and the key are changed as [`Entry::set_life`] says; `next_in_bucket` under the partition lock of the key; `list_*` under the store
//! lock; `usage` by anybody. The other fields and the payload are written only by the one process that fills the entry, before it is
//! published, and by the one that frees it, after the last pin is gone; readers hold a pin, which they got under the partition lock that
//! the publication was made under. All fields are atomics all the same, for eviction looks at entries without a pin.

use crate::key::CacheKey;
use crate::versions::SlotId;
use std::sync::atomic::{
    AtomicI64, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// Index of an entry in the entry table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EntryId(pub u32);

/// What a result rests on: the version its slot had when the result was computed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(C)]
pub struct Dependency {
    /// The slot.
    pub slot: SlotId,
    /// Object id of the relation, for showing; 0 for a slot that is no relation's.
    pub relation: u32,
    /// Version of the slot.
    pub version: u64,
}

const _: () = assert!(size_of::<Dependency>() == 16);

/// Where an entry is in its life. Zeroed memory is a free entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum State {
    /// On the free list, never used, or on its way there.
    Free = 0,
    /// Being filled, or retired and perhaps still pinned.
    Limbo = 1,
    /// In the index.
    Published = 2,
}

/// A state and the generation it belongs to. The generation grows with every reuse of the record, so an unchanged `Life` means that the same
/// result has been there all the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Life(u64);

impl Life {
    pub(crate) fn is_published(self) -> bool {
        self.0 as u32 == State::Published as u32
    }

    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(crate) fn with(self, state: State) -> Life {
        Life((self.0 & !0xFFFF_FFFF) | state as u64)
    }

    pub(crate) fn next_generation(self) -> Life {
        Life(self.0.wrapping_add(1 << 32))
    }
}

/// Link to an entry: its index plus one; 0 is none.
pub(crate) type Link = u32;

/// What every hit writes, on a cache line of its own.
#[repr(C, align(64))]
pub(crate) struct Usage {
    pins: AtomicU32,
    hits: AtomicU64,
    last_used: AtomicI64,
}

/// One entry. Zeroed memory is a free entry.
#[repr(C, align(64))]
pub(crate) struct Entry {
    life: AtomicU64,
    key_hi: AtomicU64,
    key_lo: AtomicU64,
    pub(crate) next_in_bucket: AtomicU32,
    pub(crate) list_next: AtomicU32,
    pub(crate) list_previous: AtomicU32,
    pub(crate) columns: AtomicU32,
    pub(crate) created_at: AtomicI64,
    pub(crate) expires_at: AtomicI64,
    pub(crate) text_len: AtomicU32,
    pub(crate) descriptor_len: AtomicU32,
    usage: Usage,
    pub(crate) head: AtomicU64,
    pub(crate) first_chunk: AtomicU64,
    pub(crate) last_chunk: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) rows: AtomicU64,
    pub(crate) execution_micros: AtomicU64,
    pub(crate) database: AtomicU32,
    pub(crate) role: AtomicU32,
    pub(crate) chunk_count: AtomicU32,
    pub(crate) dependency_count: AtomicU32,
}

const _: () = assert!(size_of::<Entry>() == 192);

impl Entry {
    pub(crate) fn life(&self) -> Life {
        Life(self.life.load(Acquire))
    }

    /// Into and out of `Published`: under the exclusive partition lock of the key. From `Free` to `Limbo`: under the store lock. To `Free`:
    /// by whoever took the entry out of limbo.
    pub(crate) fn set_life(&self, life: Life) {
        self.life.store(life.0, Release);
    }

    /// The key of the generation that [`Entry::life`] showed before, if `life` shows it again afterwards.
    pub(crate) fn key(&self) -> CacheKey {
        CacheKey { hi: self.key_hi.load(Acquire), lo: self.key_lo.load(Acquire) }
    }

    /// Set while filling, after `life` took on the new generation: who sees the new key sees the new life too.
    pub(crate) fn set_key(&self, key: CacheKey) {
        self.key_hi.store(key.hi, Release);
        self.key_lo.store(key.lo, Release);
    }

    pub(crate) fn pins(&self) -> u32 {
        self.usage.pins.load(Acquire)
    }

    /// Allowed under the partition lock of a published entry, to the process that takes a free one, and to holders of a pin.
    pub(crate) fn pin(&self) {
        self.usage.pins.fetch_add(1, AcqRel);
    }

    pub(crate) fn unpin(&self) {
        self.usage.pins.fetch_sub(1, AcqRel);
    }

    pub(crate) fn touch(&self, now: i64) {
        self.usage.hits.fetch_add(1, Relaxed);
        self.usage.last_used.store(now, Relaxed);
    }

    pub(crate) fn reset_usage(&self, now: i64) {
        self.usage.hits.store(0, Relaxed);
        self.usage.last_used.store(now, Relaxed);
    }

    pub(crate) fn hits(&self) -> u64 {
        self.usage.hits.load(Relaxed)
    }

    pub(crate) fn last_used(&self) -> i64 {
        self.usage.last_used.load(Relaxed)
    }
}
