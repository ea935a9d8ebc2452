//! The index: chains of published entries, one per bucket. A chain is read under the lock of its partition, shared, and changed under it,
//! exclusive.

use crate::entry::{Entry, Life, Link, State};
use crate::key::CacheKey;
use crate::layout::PARTITIONS;
use crate::memory::{Arena, Locks};
use crate::store::Store;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

impl<L: Locks, A: Arena> Store<'_, L, A> {
    fn bucket_of(&self, key: CacheKey) -> usize {
        key.hi as usize & (self.layout.bucket_count - 1)
    }

    /// Buckets are at least as many as partitions and a power of two like them, so a bucket has one partition.
    fn partition_of(&self, key: CacheKey) -> usize {
        self.bucket_of(key) % PARTITIONS
    }

    /// Finds the published entry of a key and pins it.
    pub(crate) fn find_and_pin(&self, key: CacheKey) -> Option<u32> {
        self.locks.shared(self.partition_of(key), || {
            let index = self.find(key)?;
            self.entry(index).pin();
            Some(index)
        })
    }

    /// Pins an entry that was seen in the table, if it is still what `life` showed, and published.
    pub(crate) fn pin_seen(&self, index: u32, life: Life) -> bool {
        if !life.is_published() {
            return false;
        }
        let entry = self.entry(index);
        let partition = self.partition_of(entry.key());
        self.locks.shared(partition, || {
            // The key was read between two equal lives, so it is theirs and this is the lock that its unlinking needs.
            let same = entry.life() == life;
            if same {
                entry.pin();
            }
            same
        })
    }

    /// Publishes an entry under its key, in one step; returns the entry it replaced, unlinked and pinned for the caller.
    pub(crate) fn link(&self, index: u32, key: CacheKey) -> Option<u32> {
        let bucket = self.bucket(key);
        let entry = self.entry(index);
        self.locks.exclusive(self.partition_of(key), || {
            let replaced = self.find(key);
            if let Some(old) = replaced {
                self.entry(old).pin();
                self.unlink_from(bucket, old);
            }
            entry.next_in_bucket.store(bucket.load(Relaxed), Relaxed);
            entry.set_life(entry.life().with(State::Published));
            bucket.store(index + 1, Relaxed);
            replaced
        })
    }

    /// Takes a pinned entry out of the index. False if somebody else has.
    pub(crate) fn unlink(&self, index: u32) -> bool {
        let entry = self.entry(index);
        let key = entry.key();
        self.locks.exclusive(self.partition_of(key), || {
            let published = entry.life().is_published();
            if published {
                self.unlink_from(self.bucket(key), index);
            }
            published
        })
    }

    /// Partition lock held.
    fn find(&self, key: CacheKey) -> Option<u32> {
        let mut link: Link = self.bucket(key).load(Relaxed);
        while link != 0 {
            let entry = self.entry(link - 1);
            if entry.key() == key {
                return Some(link - 1);
            }
            link = entry.next_in_bucket.load(Relaxed);
        }
        None
    }

    /// Exclusive partition lock held; the entry is in the chain.
    fn unlink_from(&self, bucket: &AtomicU32, index: u32) {
        let entry = self.entry(index);
        let mut place = bucket;
        loop {
            let link: Link = place.load(Relaxed);
            if link == index + 1 {
                place.store(entry.next_in_bucket.load(Relaxed), Relaxed);
                break;
            }
            if link == 0 {
                break;
            }
            place = &self.entry(link - 1).next_in_bucket;
        }
        entry.set_life(entry.life().with(State::Limbo));
    }

    fn bucket(&self, key: CacheKey) -> &AtomicU32 {
        let bucket = self.bucket_of(key);
        // SAFETY: `bucket_of` stays below the number of buckets, which the layout made room for at this offset; the block is mapped and
        // zeroed at first, as `attach` was promised, and an atomic may be shared.
        unsafe { &*self.base.as_ptr().add(self.layout.buckets).cast::<AtomicU32>().add(bucket) }
    }

    pub(crate) fn entry(&self, index: u32) -> &Entry {
        debug_assert!(index < self.layout.max_entries);
        // SAFETY: indexes come from the free list, the fresh counter or a link, all of which stay below `max_entries`; the layout made room
        // for that many entries at this offset, aligned to a cache line; zeroed memory is an entry; all fields are atomics.
        unsafe { &*self.base.as_ptr().add(self.layout.entries).cast::<Entry>().add(index as usize) }
    }
}
