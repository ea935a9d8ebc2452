//! The free list and the limbo list. Both use the same two links of an entry, which is on one of the lists at most.
//! Changed under the store lock.
//!
//! An entry in limbo with no pins is garbage: an error ended its fill, or the last reader of a retired entry is gone.
//! An entry that comes into limbo goes to the front, where the next reclaim begins. An entry that reclaim finds still
//! pinned goes to the back. So a reclaim of a few entries finds what was just retired, and in time finds everything
//! else, however many entries open cursors keep there.

use crate::atomics::Ordering::Relaxed;
use crate::cache::entry::{Link, State};
use crate::cache::memory::{Arena, Locks};
use crate::cache::store::Store;

/// Most entries in limbo that are checked while the lock is held once.
const BATCH: usize = 32;
/// Entries in limbo that `reclaim_some` checks.
const SOME: u32 = 16;
/// Entries in limbo that `reclaim_more` checks.
const MORE: u32 = 1024;

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Takes a free entry, pins it and puts it into limbo, all in one step. `None` when every record of the table is in
    /// use.
    pub(crate) fn take_free(&self) -> Option<u32> {
        let _step = self.step();
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

    /// Takes an entry out of limbo. The caller holds a pin; to free the entry, it must hold the only one.
    pub(crate) fn leave_limbo(&self, index: u32) {
        self.locks.store(|| self.unlink_limbo(index));
    }

    /// Puts an entry on the free list. It is on no list, has no payload, and belongs to the caller alone.
    pub(crate) fn give_free(&self, index: u32) {
        self.locks.store(|| self.link_free(index));
    }

    /// Frees the entries in limbo that have no pins, and returns how many.
    pub fn reclaim(&self) -> usize {
        self.reclaim_among(u32::MAX)
    }

    /// The same among the first few. Called by a process that is here for something else.
    pub(crate) fn reclaim_some(&self) -> usize {
        self.reclaim_among(SOME)
    }

    /// The same among more. Called by a process that finds no room.
    pub(crate) fn reclaim_more(&self) -> usize {
        self.reclaim_among(MORE)
    }

    fn reclaim_among(&self, most: u32) -> usize {
        let mut reclaimed = 0;
        // Read without the lock: there is usually nothing. An entry that comes too late for this call is found by the
        // next.
        let mut left = self.header().limbo_len.load(Relaxed).min(most);
        while left > 0 {
            let _step = self.step();
            let checks = left.min(BATCH as u32);
            left -= checks;
            let mut batch = [0u32; BATCH];
            let count = self.locks.store(|| self.collect_garbage(&mut batch, checks));
            if count == 0 {
                continue;
            }
            for &index in &batch[..count] {
                self.free_payload(index);
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

    /// Checks the first entries in limbo, takes out those without a pin and puts the others to the back. Store lock
    /// held.
    fn collect_garbage(&self, batch: &mut [u32; BATCH], checks: u32) -> usize {
        let header = self.header();
        // All that is in limbo was retired before the lock was taken.
        let held = self.held();
        let mut count = 0;
        for _ in 0..checks {
            let first: Link = header.limbo_head.load(Relaxed);
            if first == 0 {
                break;
            }
            let index = first - 1;
            self.unlink_limbo(index);
            if self.entry(index).pins() == 0 && !held.has(index) {
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

    /// Links two entries as neighbours in limbo; 0 is the end of the list.
    fn join(&self, before: Link, after: Link) {
        let header = self.header();
        let next = if before == 0 { &header.limbo_head } else { &self.entry(before - 1).list_next };
        next.store(after, Relaxed);
        let previous = if after == 0 { &header.limbo_tail } else { &self.entry(after - 1).list_previous };
        previous.store(before, Relaxed);
    }
}
