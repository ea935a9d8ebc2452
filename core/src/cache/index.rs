//! The index: chains of published entries, one per bucket. A chain is changed under the lock of its partition,
//! exclusive. A lookup walks the chain without any lock; if that gives no clear answer, it walks once more under the
//! lock, shared.
//!
//! *Found* is exact, whatever changed during the walk. An entry is pinned only if it is published in that very step
//! (`Entry::try_pin`) or, if a seat holds it (`seats`), after the hold was written. It is published only while it is in
//! its chain. A pinned entry keeps its key, which is compared again under the pin. So the entry was in the index, under
//! this key, at that moment. An entry with this key that is not published is being put in or taken out; then the lookup
//! asks again under the lock.
//!
//! *Not found* may be wrong, which costs an execution: if a record that the walk has come to is taken out and used
//! again for another chain meanwhile, the walk is led there. Records that are taken out keep their links, and an entry
//! that replaces another is put in before the other is taken out.
//!
//! A walk that was led to another chain ends, because it takes a bounded number of steps.

use crate::atomics::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::cache::entry::{Life, State};
use crate::cache::key::CacheKey;
use crate::cache::layout::PARTITIONS;
use crate::cache::memory::{Arena, ArenaPtr, Locks};
use crate::cache::published::Pin;
use crate::cache::store::Store;
use crate::prefetch::prefetch;

/// Steps of a walk without a lock. There are as many buckets as entries, so chains are short.
const MOST_STEPS: usize = 64;

/// What a lookup without a lock has found.
enum Found {
    /// The entry, which is pinned now.
    Pinned(Pin),
    /// There is none.
    Absent,
    /// The chain changed during the walk, so the lookup has to be repeated under the lock.
    Disturbed,
}

impl<L: Locks, A: Arena> Store<'_, L, A> {
    fn bucket_of(&self, key: CacheKey) -> &AtomicU32 {
        self.bucket(key.0.hi as usize)
    }

    /// There are at least as many buckets as partitions, and both numbers are powers of two. So a bucket has one
    /// partition.
    fn partition_of(key: CacheKey) -> usize {
        key.0.hi as usize % PARTITIONS
    }

    /// Finds the published entry of a key and pins it.
    pub(crate) fn find_and_pin(&self, key: CacheKey) -> Option<Pin> {
        let found = match self.find_without_lock(key) {
            Found::Pinned(pin) => Some(pin),
            Found::Absent => None,
            Found::Disturbed => self.find_locked(key),
        }?;
        // The caller will read the head next.
        let entry = self.entry(found.entry().0);
        prefetch(self.arena.address(ArenaPtr(entry.head.load(Relaxed))));
        Some(found)
    }

    fn find_without_lock(&self, key: CacheKey) -> Found {
        let mut link = self.bucket_of(key).load(Acquire);
        for _ in 0..MOST_STEPS {
            if link == 0 {
                return Found::Absent;
            }
            let entry = self.entry(link - 1);
            entry.prefetch_usage();
            if entry.key() == key {
                return self.pin_found(link - 1, key).map_or(Found::Disturbed, Found::Pinned);
            }
            link = entry.next_in_bucket.load(Acquire);
        }
        Found::Disturbed
    }

    /// Pins an entry that was met in a chain, if it is published under this key. By the seat of this process, so that
    /// no line is written that others read; else by one step at the entry.
    fn pin_found(&self, index: u32, key: CacheKey) -> Option<Pin> {
        let entry = self.entry(index);
        let pin = match self.hold(index) {
            Some(hold) => Pin::by(index, hold),
            None if entry.try_pin(|_| true) => Pin::of(index),
            None => return None,
        };
        if entry.life().is_published() && entry.key() == key {
            return Some(pin);
        }
        self.drop_pin(pin);
        None
    }

    fn find_locked(&self, key: CacheKey) -> Option<Pin> {
        self.locks.shared(Self::partition_of(key), || {
            let index = self.find(key)?;
            self.entry(index).pin();
            Some(Pin::of(index))
        })
    }

    /// Pins an entry that was seen in the table, if it is still what `life` showed, and published.
    pub(crate) fn pin_seen(&self, index: u32, life: Life) -> bool {
        life.is_published() && self.entry(index).try_pin(|now| now == life)
    }

    /// Publishes an entry under its key, in one step; returns the entry it replaced, unlinked and pinned for the
    /// caller.
    pub(crate) fn link(&self, index: u32, key: CacheKey) -> Option<u32> {
        let bucket = self.bucket_of(key);
        self.locks.exclusive(Self::partition_of(key), || {
            let replaced = self.find(key);
            self.link_first(index, bucket);
            if let Some(old) = replaced {
                self.entry(old).pin();
                self.unlink_from(bucket, old);
            }
            replaced
        })
    }

    /// Publishes an entry again under its key, after `unlink`, unless there is another one now.
    pub(crate) fn link_again(&self, index: u32) -> bool {
        let entry = self.entry(index);
        let key = entry.key();
        self.locks.exclusive(Self::partition_of(key), || {
            let is_free = self.find(key).is_none();
            if is_free {
                self.link_first(index, self.bucket_of(key));
            }
            is_free
        })
    }

    /// Exclusive partition lock held.
    fn link_first(&self, index: u32, bucket: &AtomicU32) {
        let entry = self.entry(index);
        entry.next_in_bucket.store(bucket.load(Relaxed), Release);
        bucket.store(index + 1, Release);
        entry.set_state(State::Published);
        self.note_published(index);
    }

    /// Takes a pinned entry out of the index. False if another process has.
    pub(crate) fn unlink(&self, index: u32) -> bool {
        let entry = self.entry(index);
        let key = entry.key();
        self.locks.exclusive(Self::partition_of(key), || {
            let published = entry.life().is_published();
            if published {
                self.unlink_from(self.bucket_of(key), index);
            }
            published
        })
    }

    /// Partition lock held.
    fn find(&self, key: CacheKey) -> Option<u32> {
        let mut link = self.bucket_of(key).load(Relaxed);
        while link != 0 {
            let entry = self.entry(link - 1);
            if entry.key() == key {
                return Some(link - 1);
            }
            link = entry.next_in_bucket.load(Relaxed);
        }
        None
    }

    /// Exclusive partition lock held; the entry is in the chain, and pinned.
    fn unlink_from(&self, bucket: &AtomicU32, index: u32) {
        let entry = self.entry(index);
        entry.set_state(State::Limbo);
        self.note_retired(index);
        let next = entry.next_in_bucket.load(Relaxed);
        let mut before = bucket;
        loop {
            match before.load(Relaxed) {
                0 => return,
                link if link == index + 1 => return before.store(next, Release),
                link => before = &self.entry(link - 1).next_in_bucket,
            }
        }
    }
}
