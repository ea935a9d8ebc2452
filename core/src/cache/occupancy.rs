//! Which records of the entry table are published: one bit each, so that who looks for published entries passes over the others 64 at a
//! time. A bit is set and cleared in the step that publishes or retires its entry, under the same partition lock; a word of them is an
//! atomic, read by anybody. What it says may be outdated at once: `pin_seen` decides.

use crate::cache::memory::{Arena, Locks};
use crate::cache::store::Store;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};

/// Records that share a word.
const PER_WORD: u32 = u64::BITS;

/// Words for a table of so many records.
pub(crate) fn words(max_entries: u32) -> usize {
    max_entries.div_ceil(PER_WORD) as usize
}

impl<L: Locks, A: Arena> Store<'_, L, A> {
    pub(crate) fn note_published(&self, index: u32) {
        self.words()[(index / PER_WORD) as usize].fetch_or(1 << (index % PER_WORD), Release);
    }

    pub(crate) fn note_retired(&self, index: u32) {
        self.words()[(index / PER_WORD) as usize].fetch_and(!(1 << (index % PER_WORD)), Release);
    }

    /// The first published record in `from..end`, or `end`.
    pub(crate) fn first_published(&self, from: u32, end: u32) -> u32 {
        let mut index = from;
        while index < end {
            let ahead = self.words()[(index / PER_WORD) as usize].load(Acquire) >> (index % PER_WORD);
            if ahead != 0 {
                return (index + ahead.trailing_zeros()).min(end);
            }
            index = (index / PER_WORD + 1) * PER_WORD;
        }
        end
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the layout has room for so many words at this offset, aligned to a line; the block is mapped and zeroed at first, as
        // `attach` was promised, and an atomic may be shared.
        unsafe {
            let first = self.base.as_ptr().add(self.layout.occupied).cast::<AtomicU64>();
            std::slice::from_raw_parts(first, words(self.layout.max_entries))
        }
    }
}
