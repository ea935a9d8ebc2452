//! The free list and the limbo list, through the same two links of an entry, which is on one of them at most. Changed under the store lock.
//!
//! An entry in limbo with no pins is garbage, whoever left it there: a fill that an error ended, or the last reader of a retired entry.
//! What comes into limbo goes to the front, where it is looked at next; what was looked at and is still pinned goes to the back. So a look
//! at a few finds what was just retired, and in time everything else, however many entries open cursors keep there.

use crate::cache::entry::{Link, State};
use crate::cache::memory::{Arena, Locks};
use crate::cache::store::Store;
use std::sync::atomic::Ordering::Relaxed;

/// Most entries in limbo looked at while the lock is held once.
const BATCH: usize = 32;
/// Entries in limbo looked at in passing, and before giving up.
const GLANCE: u32 = 16;
const SEARCH: u32 = 1024;

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Takes a free entry, pins it and puts it into limbo, all in one step. `None` when every record of the table is in use.
    pub(crate) fn take_free(&self) -> Option<u32> {
        self.locks.store(|| {
            let header = self.header();
            let first: Link = header.free_head.load(Relaxed);
            let index = if first != 0 {
                let index = first - 1;
                header.free_head.store(self.entry(index).list_next.load(Relaxed), Relaxed);
                index
            } else {
                let fresh = header.fresh.load(Relaxed);
                if fresh >= self.layout.max_entries {
                    return None;
                }
                header.fresh.store(fresh + 1, Relaxed);
                fresh
            };
            self.entry(index).begin();
            self.link_limbo(index);
            Some(index)
        })
    }

    /// Puts an entry that was taken out of the index into limbo. The caller holds a pin.
    pub(crate) fn enter_limbo(&self, index: u32) {
        self.locks.store(|| self.link_limbo(index));
    }

    /// Takes an entry out of limbo. The caller holds a pin, and the only one if it means to free the entry.
    pub(crate) fn leave_limbo(&self, index: u32) {
        self.locks.store(|| self.unlink_limbo(index));
    }

    /// Puts an entry that is on no list, with no payload and nobody's, on the free list.
    pub(crate) fn give_free(&self, index: u32) {
        self.locks.store(|| self.link_free(index));
    }

    /// Frees the entries in limbo that nobody pins, and returns how many.
    pub fn reclaim(&self) -> usize {
        self.reclaim_among(u32::MAX)
    }

    /// The same among the first few, for whoever passes by.
    pub(crate) fn reclaim_some(&self) -> usize {
        self.reclaim_among(GLANCE)
    }

    /// The same among more, for whoever finds no room.
    pub(crate) fn reclaim_more(&self) -> usize {
        self.reclaim_among(SEARCH)
    }

    fn reclaim_among(&self, most: u32) -> usize {
        let mut reclaimed = 0;
        // Looked at without the lock: the usual case is that there is nothing, and who comes too late for an entry finds it next time.
        let mut left = self.header().limbo_len.load(Relaxed).min(most);
        while left > 0 {
            let looks = left.min(BATCH as u32);
            left -= looks;
            let mut batch = [0u32; BATCH];
            let count = self.locks.store(|| self.collect_garbage(&mut batch, looks));
            if count == 0 {
                continue;
            }
            for &index in &batch[..count] {
                self.free_payload(self.entry(index));
            }
            self.locks.store(|| {
                for &index in &batch[..count] {
                    self.link_free(index);
                }
            });
            reclaimed += count;
        }
        reclaimed
    }

    /// Looks at the first entries in limbo, takes out those that nobody pins and puts the others to the back. Store lock held.
    fn collect_garbage(&self, batch: &mut [u32; BATCH], looks: u32) -> usize {
        let header = self.header();
        let mut count = 0;
        for _ in 0..looks {
            let first: Link = header.limbo_head.load(Relaxed);
            if first == 0 {
                break;
            }
            let index = first - 1;
            self.unlink_limbo(index);
            if self.entry(index).pins() == 0 {
                batch[count] = index;
                count += 1;
            } else {
                self.link_limbo_last(index);
            }
        }
        count
    }

    /// Store lock held.
    fn link_free(&self, index: u32) {
        let entry = self.entry(index);
        let header = self.header();
        entry.set_state(State::Free);
        entry.list_next.store(header.free_head.load(Relaxed), Relaxed);
        header.free_head.store(index + 1, Relaxed);
    }

    /// Store lock held.
    fn link_limbo(&self, index: u32) {
        self.link_between(0, index, self.header().limbo_head.load(Relaxed));
    }

    /// Store lock held.
    fn link_limbo_last(&self, index: u32) {
        self.link_between(self.header().limbo_tail.load(Relaxed), index, 0);
    }

    fn link_between(&self, previous: Link, index: u32, next: Link) {
        let entry = self.entry(index);
        entry.list_previous.store(previous, Relaxed);
        entry.list_next.store(next, Relaxed);
        self.join(previous, index + 1);
        self.join(index + 1, next);
        let len = &self.header().limbo_len;
        len.store(len.load(Relaxed) + 1, Relaxed);
    }

    /// Store lock held.
    fn unlink_limbo(&self, index: u32) {
        let entry = self.entry(index);
        self.join(entry.list_previous.load(Relaxed), entry.list_next.load(Relaxed));
        let len = &self.header().limbo_len;
        len.store(len.load(Relaxed) - 1, Relaxed);
    }

    /// Makes the two neighbours in limbo; 0 is the end of the list.
    fn join(&self, before: Link, after: Link) {
        let header = self.header();
        let next = if before == 0 { &header.limbo_head } else { &self.entry(before - 1).list_next };
        next.store(after, Relaxed);
        let previous = if after == 0 { &header.limbo_tail } else { &self.entry(after - 1).list_previous };
        previous.store(before, Relaxed);
    }
}
