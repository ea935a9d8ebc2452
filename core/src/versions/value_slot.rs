//! The slot of a value: one word, so that there may be many, and answers over other values seldom share it.
//!
//! Of those that have published it keeps the newest id, and another one that may not have ended. If there are more, all
//! ids from the oldest of them on count, which can only make readers refuse more. The word itself is the version.

use crate::atomics::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::versions::slot::{PENDING, SlotState};
use crate::versions::xid_window::XidWindow;

/// What a word holds, from the high bits on: the newest id, how often others have published since, whether all ids down
/// to the oldest one count, and how far below the newest that one lies.
const COUNT_BITS: u32 = 5;
const DISTANCE_BITS: u32 = 14;
const NEWEST_BITS: u32 = 64 - COUNT_BITS - 1 - DISTANCE_BITS;
/// No snapshot sees a slot whole on which so many have published after a newer one. It is the same word from then on.
const TOO_MANY: u64 = (1 << COUNT_BITS) - 1;
/// All ids below count.
const FAR: u64 = (1 << DISTANCE_BITS) - 1;
/// Stands for all ids from here on. No snapshot sees it whole.
const TOO_NEW: u64 = (1 << NEWEST_BITS) - 1;

/// The slot of a value. Zeroed memory is a valid one.
#[repr(transparent)]
pub struct ValueSlot(AtomicU64);

/// What a word holds.
#[derive(Clone, Copy, Default)]
struct Publishers {
    newest: u64,
    count: u64,
    is_range: bool,
    distance: u64,
}

impl Publishers {
    #[inline]
    fn of(word: u64) -> Self {
        Self {
            newest: word >> (64 - NEWEST_BITS),
            count: word >> (DISTANCE_BITS + 1) & TOO_MANY,
            is_range: word >> DISTANCE_BITS & 1 != 0,
            distance: word & FAR,
        }
    }

    #[inline]
    fn word(self) -> u64 {
        ((self.newest << COUNT_BITS | self.count) << 1 | u64::from(self.is_range)) << DISTANCE_BITS | self.distance
    }

    /// The oldest id that may not have ended.
    fn oldest(self) -> u64 {
        if self.distance == FAR { 1 } else { self.newest.saturating_sub(self.distance) }
    }

    /// No snapshot sees all of them.
    const fn are_unknown(self) -> bool {
        self.count == TOO_MANY || self.newest == TOO_NEW
    }

    /// The oldest and the newest of those that may not have ended, and those between them.
    fn left(self, oldest_running: u64, has_ended: impl Fn(u64) -> bool) -> XidWindow {
        if self.is_range {
            return XidWindow::between(self.oldest(), self.newest).without_ended(oldest_running, has_ended);
        }
        let mut left = XidWindow::default();
        [self.oldest(), self.newest].into_iter().filter(|xid| !has_ended(*xid)).for_each(|xid| left.add(xid));
        left
    }

    /// Returns true if the id counts as that of one that may not have ended.
    fn hold(self, xid: u64) -> bool {
        if self.is_range {
            (self.oldest()..=self.newest).contains(&xid)
        } else {
            xid == self.newest || xid == self.oldest()
        }
    }

    /// One alone.
    #[inline]
    fn alone(xid: u64) -> Self {
        Self { newest: xid.min(TOO_NEW), ..Self::default() }
    }

    /// These and one more, which runs. Of the others those are left that may not have ended. The same if they hold it.
    #[cold]
    #[inline(never)]
    fn and(self, xid: u64, oldest_running: u64, is_running: impl Fn(u64) -> bool) -> Self {
        if self.hold(xid) {
            return self;
        }
        let has_ended = |other| other == 0 || other == xid || other < oldest_running || !is_running(other);
        let left = self.left(oldest_running, has_ended);
        let newest = self.newest.max(xid).min(TOO_NEW);
        let count = if newest > self.newest { 0 } else { TOO_MANY.min(self.count + 1) };
        let others = [left.low, left.high, xid].into_iter().filter(|other| *other != 0 && *other != newest);
        let oldest = others.clone().min().unwrap_or(newest);
        let distance = FAR.min(newest.saturating_sub(oldest));
        let are_more = others.clone().any(|other| other != oldest) || (self.is_range && left.low != left.high);
        Self { newest, count, is_range: are_more || distance == FAR, distance }
    }
}

impl ValueSlot {
    /// Publishes a transaction, on the terms of [`Slot::publish`](crate::versions::slot::Slot::publish).
    ///
    /// Who is found to have ended has also ended when the word is stored. No word comes twice but that which no
    /// snapshot sees whole: the newest id never sinks, and the count grows while it stays.
    ///
    /// If the word holds the id, it stays: who sees it whole takes `xid`, which runs, for ended. So nobody does, and
    /// nothing rests on it.
    #[inline]
    pub fn publish(&self, xid: u64, oldest_running: u64, is_running: impl Fn(u64) -> bool) {
        let (alone, first) = (Publishers::alone(xid).word(), oldest_running.min(xid));
        let mut before = self.0.load(Relaxed);
        loop {
            let publishers = Publishers::of(before);
            // All of them have ended, as is usual.
            let after = match publishers.newest < first {
                true => alone,
                false => publishers.and(xid, oldest_running, &is_running).word(),
            };
            if after == before {
                return;
            }
            match self.0.compare_exchange_weak(before, after, Release, Relaxed) {
                Ok(_) => return,
                Err(other) => before = other,
            }
        }
    }

    /// Its version: another one after each publication of a transaction that it did not hold.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.0.load(Acquire)
    }

    /// Its state. It knows no time.
    #[must_use]
    pub fn read(&self) -> SlotState {
        let version = self.version();
        let publishers = Publishers::of(version);
        let Publishers { newest, is_range, distance, .. } = publishers;
        let (pending, window) = match () {
            () if publishers.are_unknown() => ([0; PENDING], XidWindow::between(1, u64::MAX)),
            () if is_range => ([0; PENDING], XidWindow::between(publishers.oldest(), newest)),
            () if distance == 0 => ([newest, 0, 0], XidWindow::default()),
            () => ([newest, publishers.oldest(), 0], XidWindow::default()),
        };
        SlotState { version, pending, window, ..SlotState::default() }
    }

    /// Returns true if it can hold this: no id is below the first one.
    pub(crate) fn is_possible(&self) -> bool {
        let Publishers { newest, count, is_range, distance } = Publishers::of(self.version());
        let is_far = distance == FAR;
        (is_range || !is_far) && (newest > 0 || count == 0) && (is_far || distance < newest.max(1))
    }
}

#[cfg(test)]
impl ValueSlot {
    /// Makes it a slot of one publisher, and others that would be below the first id.
    pub(crate) fn damage(&self) {
        self.0.store(Publishers { newest: 5, distance: 9, ..Publishers::default() }.word(), Relaxed);
    }
}

impl From<u64> for ValueSlot {
    fn from(version: u64) -> Self {
        Self(AtomicU64::new(version))
    }
}
