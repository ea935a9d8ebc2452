//! The free list and the limbo list, through the same two links of an entry, which is on one of them at most. Changed under the store lock.
//!
//! An entry in limbo with no pins is garbage, whoever left it there: a fill that an error ended, or the last reader of a retired entry.

use crate::entry::{Link, State};
use crate::memory::{Arena, Locks};
use crate::store::Store;
use std::sync::atomic::Ordering::Relaxed;

/// Most entries taken out of limbo while the lock is held once.
const BATCH: usize = 32;

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
            let entry = self.entry(index);
            entry.pin();
            entry.set_life(entry.life().next_generation().with(State::Limbo));
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

    /// Puts an entry that is on no list, with no payload and no pins, on the free list.
    pub(crate) fn give_free(&self, index: u32) {
        self.locks.store(|| self.link_free(index));
    }

    /// Frees the entries in limbo that nobody pins, and returns how many.
    pub fn reclaim(&self) -> usize {
        let mut reclaimed = 0;
        // Looked at without the lock: the usual case is that there is nothing, and who comes too late for an entry finds it next time.
        while self.header().limbo_head.load(Relaxed) != 0 {
            let mut batch = [0u32; BATCH];
            let count = self.locks.store(|| self.collect_garbage(&mut batch));
            for &index in &batch[..count] {
                self.free_payload(self.entry(index));
            }
            self.locks.store(|| {
                for &index in &batch[..count] {
                    self.link_free(index);
                }
            });
            reclaimed += count;
            if count < BATCH {
                break;
            }
        }
        reclaimed
    }

    /// Takes up to a batch of unpinned entries out of limbo. Store lock held.
    fn collect_garbage(&self, batch: &mut [u32; BATCH]) -> usize {
        let mut count = 0;
        let mut link: Link = self.header().limbo_head.load(Relaxed);
        while link != 0 && count < BATCH {
            let index = link - 1;
            let entry = self.entry(index);
            link = entry.list_next.load(Relaxed);
            if entry.pins() == 0 {
                self.unlink_limbo(index);
                batch[count] = index;
                count += 1;
            }
        }
        count
    }

    /// Store lock held.
    fn link_free(&self, index: u32) {
        let entry = self.entry(index);
        let header = self.header();
        entry.set_life(entry.life().with(State::Free));
        entry.list_next.store(header.free_head.load(Relaxed), Relaxed);
        header.free_head.store(index + 1, Relaxed);
    }

    /// Store lock held.
    fn link_limbo(&self, index: u32) {
        let entry = self.entry(index);
        let header = self.header();
        let first: Link = header.limbo_head.load(Relaxed);
        entry.list_previous.store(0, Relaxed);
        entry.list_next.store(first, Relaxed);
        if first != 0 {
            self.entry(first - 1).list_previous.store(index + 1, Relaxed);
        }
        header.limbo_head.store(index + 1, Relaxed);
    }

    /// Store lock held.
    fn unlink_limbo(&self, index: u32) {
        let entry = self.entry(index);
        let next: Link = entry.list_next.load(Relaxed);
        let previous: Link = entry.list_previous.load(Relaxed);
        if next != 0 {
            self.entry(next - 1).list_previous.store(previous, Relaxed);
        }
        if previous != 0 {
            self.entry(previous - 1).list_next.store(next, Relaxed);
        } else {
            self.header().limbo_head.store(next, Relaxed);
        }
    }
}
