//! Whose definitions are being changed at this moment: for each slot, how many transactions are on their way from the
//! first move of its version, before they become visible, to the second one, after their invalidation messages were
//! sent.
//!
//! In between, a session whose caches have not heard of such a transaction computes the old answer, and one whose
//! caches have heard of it the new one, under the same versions. So nothing is stored that rests on such a slot.
//! Results that were stored before are outdated by the first move.
//!
//! Whoever commits a prepared transaction does not know what that has changed, and need not count while none was
//! prepared that has changed a definition. One may be prepared just after it was asked for. So such a commit is noted
//! apart, and counts with all slots as soon as one was.
//!
//! Any process counts itself, and takes itself off again. Atomics; no lock. Slots of relations share counts, which can
//! only forbid too much.

use crate::atomics::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use crate::versions::slots::{FIXED_SLOTS, SlotId};

/// Counts that the slots of relations share: a power of two, since a division would take longer than counting. The
/// slots of databases have one each.
const SHARED_COUNTS: usize = 1024;
/// The place of the count of those who may commit a prepared transaction that they have not asked about.
const COMMITS: usize = FIXED_SLOTS + SHARED_COUNTS;
/// Number of counts.
pub(crate) const COUNTS: usize = COMMITS + 1;

/// The counts. Zeroed memory says that nobody is changing anything.
#[derive(Clone, Copy)]
pub struct Definers<'a> {
    counts: &'a [AtomicU32; COUNTS],
    prepared: PreparedDefinitions<'a>,
}

impl<'a> Definers<'a> {
    pub(crate) fn new(counts: &'a [AtomicU32; COUNTS], prepared: PreparedDefinitions<'a>) -> Self {
        Self { counts, prepared }
    }

    /// A prepared transaction is about to be committed. To be called before it is asked whether it may have changed
    /// definitions.
    pub fn enter_commit(&self) {
        self.counts[COMMITS].fetch_add(1, AcqRel);
    }

    /// It was committed, and versions have moved for it, or it was not. To be called once for each `enter_commit`.
    pub fn leave_commit(&self) {
        count_off(&self.counts[COMMITS]);
    }

    /// A transaction is about to change what this slot stands for. To be called before it can become visible.
    pub fn enter(&self, slot: SlotId) {
        self.count(slot).fetch_add(1, AcqRel);
    }

    /// The transaction has moved the version for the second time, or was rolled back. To be called once for each
    /// `enter`.
    pub fn leave(&self, slot: SlotId) {
        count_off(self.count(slot));
    }

    /// Returns true if a transaction is changing what this slot stands for. If not, whoever reads a version after that
    /// finds what all those have published that a snapshot sees which was taken before.
    #[must_use]
    pub fn are_in(&self, slot: SlotId) -> bool {
        self.count(slot).load(Acquire) != 0 || self.counts[COMMITS].load(Acquire) != 0 && self.prepared.may_be()
    }

    /// Returns true if any transaction is changing a definition.
    pub(crate) fn are_any(&self) -> bool {
        self.counts.iter().any(|count| count.load(Acquire) != 0)
    }

    fn count(&self, slot: SlotId) -> &'a AtomicU32 {
        let slot = slot.0 as usize;
        let place = if slot < FIXED_SLOTS { slot } else { FIXED_SLOTS + (slot - FIXED_SLOTS) % SHARED_COUNTS };
        &self.counts[place]
    }
}

/// One less. A count of zero stays: if it went below, nothing would be stored any more.
fn count_off(count: &AtomicU32) {
    let _ = count.fetch_update(AcqRel, Acquire, |count| count.checked_sub(1));
}

/// Whether transactions that have changed definitions are, or were, prepared for a two-phase commit: one of the three
/// numbers below. Atomic; no lock.
#[derive(Clone, Copy)]
pub(crate) struct PreparedDefinitions<'a>(&'a AtomicU32);

impl<'a> PreparedDefinitions<'a> {
    /// Transactions from before the start may be prepared, and nobody knows what they changed.
    const PAST_UNKNOWN: u32 = 0;
    /// Nothing of the kind was prepared.
    const NONE: u32 = 1;
    /// A transaction that changed definitions was prepared since the start. Never goes back.
    const SOME: u32 = 2;

    pub(crate) fn new(word: &'a AtomicU32) -> Self {
        Self(word)
    }

    pub(crate) fn note_one(self) {
        self.0.store(Self::SOME, Release);
    }

    pub(crate) fn note_past_is_over(self) {
        // If another process was first, it has noted the same, or that some were prepared: nothing is left to do.
        let _ = self.0.compare_exchange(Self::PAST_UNKNOWN, Self::NONE, AcqRel, Relaxed);
    }

    pub(crate) fn forget_past(self) {
        self.0.store(Self::PAST_UNKNOWN, Release);
    }

    pub(crate) fn past_is_unknown(self) -> bool {
        self.0.load(Acquire) == Self::PAST_UNKNOWN
    }

    pub(crate) fn may_be(self) -> bool {
        self.0.load(Acquire) != Self::NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_counts_once_a_definition_may_be_prepared() {
        let counts = std::array::from_fn(|_| AtomicU32::new(0));
        let word = AtomicU32::new(0);
        let prepared = PreparedDefinitions::new(&word);
        let definers = Definers::new(&counts, prepared);
        let slots = [SlotId(0), SlotId(5), SlotId(FIXED_SLOTS as u32 + 7)];
        let all_are = |expected: bool| slots.iter().all(|slot| definers.are_in(*slot) == expected);
        definers.enter_commit();
        assert!(all_are(true), "the past is unknown");
        prepared.note_past_is_over();
        assert!(all_are(false), "nothing was prepared");
        prepared.note_one();
        assert!(all_are(true));
        definers.leave_commit();
        assert!(all_are(false));
        definers.leave_commit();
        definers.enter_commit();
        assert!(all_are(true), "who leaves twice does not hide the next one");
    }

    #[test]
    fn a_slot_is_free_when_all_have_left() {
        let counts = std::array::from_fn(|_| AtomicU32::new(0));
        let word = AtomicU32::new(0);
        let definers = Definers::new(&counts, PreparedDefinitions::new(&word));
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
        let word = AtomicU32::new(0);
        let definers = Definers::new(&counts, PreparedDefinitions::new(&word));
        for slot in FIXED_SLOTS..FIXED_SLOTS + 70_000 {
            definers.enter(SlotId(slot as u32));
        }
        assert!((0..FIXED_SLOTS).all(|slot| !definers.are_in(SlotId(slot as u32))));
        let of_relations = counts[FIXED_SLOTS..COMMITS].iter().map(|count| count.load(Acquire));
        assert_eq!(of_relations.sum::<u32>(), 70_000);
    }
}
