//! Whose definitions are being changed at this moment: for each slot, how many transactions are on their way from the first move of its
//! version, before they become visible, to the second one, after their invalidation messages were sent.
//!
//! In between, a session whose caches have not heard of such a transaction computes the old answer, and one whose caches have heard of it
//! the new one, under the same versions. So nothing is stored that rests on such a slot. Results that were stored before are outdated by the
//! first move.
//!
//! Any process counts itself, and takes itself off again. Atomics; no lock. Slots of relations share counts, which can only forbid too much.

use crate::cache::versions::{FIXED_SLOTS, SlotId};
use std::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire},
};

/// Counts that the slots of relations share. The slots of databases have one each.
const SHARED_COUNTS: usize = 768;
/// Number of counts.
pub(crate) const COUNTS: usize = FIXED_SLOTS + SHARED_COUNTS;

/// The counts. Zeroed memory says that nobody is changing anything.
#[derive(Clone, Copy)]
pub struct Definers<'a> {
    counts: &'a [AtomicU32; COUNTS],
}

impl<'a> Definers<'a> {
    pub(crate) fn new(counts: &'a [AtomicU32; COUNTS]) -> Self {
        Self { counts }
    }

    /// A transaction is about to change what this slot stands for. To be called before it can become visible.
    pub fn enter(&self, slot: SlotId) {
        self.count(slot).fetch_add(1, AcqRel);
    }

    /// The transaction has moved the version for the second time, or was rolled back. To be called once for each `enter`.
    pub fn leave(&self, slot: SlotId) {
        // A count of zero stays: if it went below, nothing would be stored any more.
        let _ = self.count(slot).fetch_update(AcqRel, Acquire, |count| count.checked_sub(1));
    }

    /// Is a transaction changing what this slot stands for? If not, whoever reads a version after that finds what all those have published
    /// that a snapshot sees which was taken before.
    #[must_use]
    pub fn are_in(&self, slot: SlotId) -> bool {
        self.count(slot).load(Acquire) != 0
    }

    /// Is any transaction changing a definition?
    pub(crate) fn are_any(&self) -> bool {
        self.counts.iter().any(|count| count.load(Acquire) != 0)
    }

    fn count(&self, slot: SlotId) -> &'a AtomicU32 {
        let slot = slot.0 as usize;
        let place = if slot < FIXED_SLOTS { slot } else { FIXED_SLOTS + (slot - FIXED_SLOTS) % SHARED_COUNTS };
        &self.counts[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_free_when_all_have_left() {
        let counts = std::array::from_fn(|_| AtomicU32::new(0));
        let definers = Definers::new(&counts);
        let (slot, other) = (SlotId(5), SlotId(6));
        definers.enter(slot);
        definers.enter(slot);
        definers.leave(slot);
        assert!(definers.are_in(slot) && !definers.are_in(other));
        definers.leave(slot);
        assert!(!definers.are_in(slot));
        definers.leave(slot);
        definers.enter(slot);
        assert!(definers.are_in(slot), "who leaves twice does not hide the next one");
    }

    #[test]
    fn each_slot_of_a_database_has_a_count_of_its_own() {
        let counts = std::array::from_fn(|_| AtomicU32::new(0));
        let definers = Definers::new(&counts);
        for slot in FIXED_SLOTS..FIXED_SLOTS + 70_000 {
            definers.enter(SlotId(slot as u32));
        }
        assert!((0..FIXED_SLOTS).all(|slot| !definers.are_in(SlotId(slot as u32))));
        let of_relations = counts[FIXED_SLOTS..].iter().map(|count| count.load(Acquire));
        assert_eq!(of_relations.sum::<u32>(), 70_000);
    }
}
