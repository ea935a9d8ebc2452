//! Which records of the entry table are published: one bit each, so that a search for published entries passes over the
//! others 64 at a time. A bit is set and cleared in the step that publishes or retires its entry, under the same
//! partition lock. A word of 64 bits is an atomic that anybody reads. A bit may be out of date as soon as it is read:
//! `pin_seen` decides.

use crate::atomics::Ordering::{Acquire, Release};
use crate::cache::memory::{Arena, Locks};
use crate::cache::store::Store;

/// Records that share a word.
const PER_WORD: u32 = u64::BITS;

impl<L: Locks, A: Arena> Store<'_, L, A> {
    pub(crate) fn note_published(&self, index: u32) {
        self.occupied()[(index / PER_WORD) as usize].fetch_or(1 << (index % PER_WORD), Release);
    }

    pub(crate) fn note_retired(&self, index: u32) {
        self.occupied()[(index / PER_WORD) as usize].fetch_and(!(1 << (index % PER_WORD)), Release);
    }

    /// The first published record in `from..end`, or `end`.
    pub(crate) fn first_published(&self, from: u32, end: u32) -> u32 {
        let mut index = from;
        while index < end {
            let ahead = self.occupied()[(index / PER_WORD) as usize].load(Acquire) >> (index % PER_WORD);
            if ahead != 0 {
                return (index + ahead.trailing_zeros()).min(end);
            }
            index = (index / PER_WORD + 1) * PER_WORD;
        }
        end
    }
}
