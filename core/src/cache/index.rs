//! The index: chains of published entries, one per bucket. A chain is changed under the lock of its partition, exclusive; a look-up walks
//! it without any lock, and only when that gave no clear answer once more under the lock, shared.
//!
//! *Found* is exact whatever the walk went through. An entry is pinned only if it is published in that very step (`Entry::try_pin`), and it is
//! published only while it is in its chain. A pinned entry keeps its key, which is compared again under the pin. So the entry was in the
//! index, under this key, at the moment of the pin. One with this key that is not published is being put in or taken out: the lock tells.
//!
//! *Not found* is said without a lock only if the word of the bucket was the same before and after the walk. The word holds the first link
//! and the number of changes so far, and moves with each change: in the same store that puts an entry at the head, and after an entry was
//! taken out, before its record can be used again. So under an unchanged word nothing was put in, and what a walk passes through are records
//! that were in the chain when it began, with the links they had then or had when they were taken out: all lead on to what is still there.
//! (An entry that replaces another goes in first, so that there is no moment with neither.) Whoever reads a link or key of a record that was
//! used again, which are stored with Release and loaded with Acquire, sees the moved word afterwards. The count of changes has 32 bits; even
//! if that many came in the middle of one walk, a wrong "not found" would cost an execution, not an answer.
//!
//! A walk that was led astray ends: it takes a bounded number of steps.

use crate::cache::entry::{Entry, Life, Link, State};
use crate::cache::key::CacheKey;
use crate::cache::layout::PARTITIONS;
use crate::cache::memory::{Arena, ArenaPtr, Locks, prefetch};
use crate::cache::store::Store;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// Steps of a walk without a lock. There are as many buckets as entries, so chains are short.
const MOST_STEPS: usize = 64;

/// Start of a chain. Zeroed memory is an empty one.
pub(crate) struct Bucket {
    /// How often the chain was changed, and the link to its first entry in the lower half.
    word: AtomicU64,
}

impl Bucket {
    fn read(&self) -> u64 {
        self.word.load(Acquire)
    }

    fn first(&self) -> Link {
        self.read() as Link
    }

    /// Notes a change of the chain, which begins with `first`. Exclusive partition lock held.
    fn set_first(&self, first: Link) {
        let changes = (self.word.load(Relaxed) >> 32).wrapping_add(1);
        self.word.store(changes << 32 | u64::from(first), Release);
    }
}

/// What a walk without a lock came to.
enum Walk {
    Pinned(u32),
    Absent,
    Disturbed,
}

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
        let found = match self.walk(key) {
            Walk::Pinned(index) => Some(index),
            Walk::Absent => None,
            Walk::Disturbed => self.find_locked(key),
        }?;
        // The caller will read these next.
        let entry = self.entry(found);
        prefetch(self.arena.address(ArenaPtr(entry.head.load(Relaxed))));
        Some(found)
    }

    fn walk(&self, key: CacheKey) -> Walk {
        let bucket = self.bucket(key);
        let before = bucket.read();
        let mut link = before as Link;
        for _ in 0..MOST_STEPS {
            if link == 0 {
                // Pairs with the Release stores of links and keys: see the head of the module.
                fence(Acquire);
                return if bucket.word.load(Relaxed) == before { Walk::Absent } else { Walk::Disturbed };
            }
            let entry = self.entry(link - 1);
            entry.prefetch_usage();
            if entry.key() == key {
                if !entry.try_pin(|_| true) {
                    return Walk::Disturbed;
                }
                if entry.key() == key {
                    return Walk::Pinned(link - 1);
                }
                entry.unpin();
                return Walk::Disturbed;
            }
            link = entry.next_in_bucket.load(Acquire);
        }
        Walk::Disturbed
    }

    fn find_locked(&self, key: CacheKey) -> Option<u32> {
        self.locks.shared(self.partition_of(key), || {
            let index = self.find(key)?;
            self.entry(index).pin();
            Some(index)
        })
    }

    /// Pins an entry that was seen in the table, if it is still what `life` showed, and published.
    pub(crate) fn pin_seen(&self, index: u32, life: Life) -> bool {
        life.is_published() && self.entry(index).try_pin(|now| now == life)
    }

    /// Publishes an entry under its key, in one step; returns the entry it replaced, unlinked and pinned for the caller.
    pub(crate) fn link(&self, index: u32, key: CacheKey) -> Option<u32> {
        let bucket = self.bucket(key);
        let entry = self.entry(index);
        self.locks.exclusive(self.partition_of(key), || {
            let replaced = self.find(key);
            entry.next_in_bucket.store(bucket.first(), Release);
            bucket.set_first(index + 1);
            entry.set_state(State::Published);
            self.note_published(index);
            if let Some(old) = replaced {
                self.entry(old).pin();
                self.unlink_from(bucket, old);
            }
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
        let mut link = self.bucket(key).first();
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
    fn unlink_from(&self, bucket: &Bucket, index: u32) {
        let entry = self.entry(index);
        entry.set_state(State::Limbo);
        self.note_retired(index);
        let next = entry.next_in_bucket.load(Relaxed);
        let mut first = bucket.first();
        if first == index + 1 {
            first = next;
        } else {
            let mut link = first;
            while link != 0 {
                let before = self.entry(link - 1);
                link = before.next_in_bucket.load(Relaxed);
                if link == index + 1 {
                    before.next_in_bucket.store(next, Release);
                    break;
                }
            }
        }
        bucket.set_first(first);
    }

    fn bucket(&self, key: CacheKey) -> &Bucket {
        let bucket = self.bucket_of(key);
        // SAFETY: `bucket_of` stays below the number of buckets, which the layout made room for at this offset; the block is mapped and
        // zeroed at first, as `attach` was promised, and an atomic may be shared.
        unsafe { &*self.base.as_ptr().add(self.layout.buckets).cast::<Bucket>().add(bucket) }
    }

    pub(crate) fn entry(&self, index: u32) -> &Entry {
        debug_assert!(index < self.layout.max_entries);
        // SAFETY: indexes come from the free list, the fresh counter or a link, all of which stay below `max_entries`; the layout made room
        // for that many entries at this offset, aligned to a cache line; zeroed memory is an entry; all fields are atomics.
        unsafe { &*self.base.as_ptr().add(self.layout.entries).cast::<Entry>().add(index as usize) }
    }
}
