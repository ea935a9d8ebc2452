//! The slot of a value: one word, so that there may be many, and answers over other values seldom share it.
//!
//! Of those that have published it keeps the newest id, and how far below it lies the oldest one that may not have
//! ended. All ids between these count as well. That can only make readers refuse more. The word itself is the version.

use crate::atomics::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::versions::slot::SlotState;
use crate::versions::xid_window::XidWindow;

/// What a word holds, from the high bits on: the newest id, how often others have published since, and the distance.
const COUNT_BITS: u32 = 8;
const DISTANCE_BITS: u32 = 8;
/// No snapshot sees a slot whole on which so many have published after a newer one. It is the same word from then on.
const TOO_MANY: u64 = (1 << COUNT_BITS) - 1;
/// The oldest may be anywhere below.
const FAR: u64 = (1 << DISTANCE_BITS) - 1;
/// Stands for all ids from here on. No snapshot sees it whole.
const TOO_NEW: u64 = (1 << (64 - COUNT_BITS - DISTANCE_BITS)) - 1;

/// The slot of a value. Zeroed memory is a valid one.
#[repr(transparent)]
pub struct ValueSlot(AtomicU64);

/// What a word holds.
#[derive(Clone, Copy, Default)]
struct Publishers {
    newest: u64,
    count: u64,
    distance: u64,
}

impl Publishers {
    fn of(word: u64) -> Self {
        Self {
            newest: word >> (COUNT_BITS + DISTANCE_BITS),
            count: word >> DISTANCE_BITS & TOO_MANY,
            distance: word & FAR,
        }
    }

    fn word(self) -> u64 {
        (self.newest << COUNT_BITS | self.count) << DISTANCE_BITS | self.distance
    }

    /// The ids that may not have ended.
    fn window(self) -> XidWindow {
        let low = if self.distance == FAR { 1 } else { self.newest.saturating_sub(self.distance).max(1) };
        XidWindow::between(low, self.newest)
    }

    /// No snapshot sees all of them.
    const fn are_unknown(self) -> bool {
        self.count == TOO_MANY || self.newest == TOO_NEW
    }

    /// These and one more, which runs. Of the others those are left that may not have ended.
    fn and(self, xid: u64, oldest_running: u64, mut is_running: impl FnMut(u64) -> bool) -> Self {
        let has_ended = |other| other == xid || other < oldest_running || !is_running(other);
        let left = self.window().without_ended(oldest_running, has_ended);
        let oldest = if left.is_empty() { xid } else { left.low.min(xid) };
        let newest = self.newest.max(xid).min(TOO_NEW);
        let count = if newest > self.newest { 0 } else { TOO_MANY.min(self.count + 1) };
        Self { newest, count, distance: FAR.min(newest.saturating_sub(oldest)) }
    }
}

impl ValueSlot {
    /// Publishes a transaction, on the terms of [`Slot::publish`](crate::versions::slot::Slot::publish).
    ///
    /// Who is found to have ended has also ended when the word is stored. No word comes twice but that which no
    /// snapshot sees whole: the newest id never sinks, and the count grows while it stays.
    pub fn publish(&self, xid: u64, oldest_running: u64, mut is_running: impl FnMut(u64) -> bool) {
        let mut before = self.0.load(Relaxed);
        loop {
            let after = Publishers::of(before).and(xid, oldest_running, &mut is_running).word();
            match self.0.compare_exchange_weak(before, after, Release, Relaxed) {
                Ok(_) => return,
                Err(other) => before = other,
            }
        }
    }

    /// Its version: another one after each publication.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.0.load(Acquire)
    }

    /// Its state. It knows no time.
    #[must_use]
    pub fn read(&self) -> SlotState {
        let version = self.version();
        let publishers = Publishers::of(version);
        let window = match () {
            () if version == 0 => XidWindow::default(),
            () if publishers.are_unknown() => XidWindow::between(1, u64::MAX),
            () => publishers.window(),
        };
        SlotState { version, window, ..SlotState::default() }
    }

    /// Returns true if it can hold this: no id is below the first one.
    pub(crate) fn is_possible(&self) -> bool {
        let Publishers { newest, count, distance } = Publishers::of(self.version());
        if newest == 0 { count == 0 && distance == 0 } else { distance == FAR || distance < newest }
    }
}

#[cfg(test)]
impl ValueSlot {
    /// Makes it a slot of one publisher, and others that would be below the first id.
    pub(crate) fn damage(&self) {
        self.0.store(Publishers { newest: 5, count: 0, distance: 9 }.word(), Relaxed);
    }
}

impl From<u64> for ValueSlot {
    fn from(version: u64) -> Self {
        Self(AtomicU64::new(version))
    }
}
