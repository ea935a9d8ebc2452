//! One slot of versions: a version, and the transactions that have published to it.
//!
//! Any process may publish to a slot, at any time. A slot is read and written as a whole under its own sequence word.
//! No other lock is taken.

use crate::atomics::{AtomicI64, AtomicU64, Ordering::Relaxed};
use crate::versions::sequence::SequenceWord;
use crate::versions::snapshot::SnapshotView;
use crate::versions::xid_window::XidWindow;

/// Publishing transactions that a slot remembers one by one; more are folded into its window.
pub const PENDING: usize = 3;

/// One version slot, a cache line of its own. Zeroed memory is a valid slot.
#[repr(C, align(64))]
pub struct Slot {
    /// Moves with each publication: how often is the version.
    sequence: SequenceWord,
    pending: [AtomicU64; PENDING],
    window_low: AtomicU64,
    window_high: AtomicU64,
    window_marks: AtomicU64,
    last_change: AtomicI64,
}

const _: () = assert!(size_of::<Slot>() == 64);

/// The state of a slot at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SlotState {
    /// Counts publications.
    pub version: u64,
    /// 64-bit ids of publishing transactions; 0 = empty.
    pub pending: [u64; PENDING],
    /// Publishing transactions that found no empty place.
    pub window: XidWindow,
    /// When the last publication was, in microseconds.
    pub last_change: i64,
}

impl SlotState {
    /// Whether the snapshot sees every change published to the slot. The slot must have been read after the snapshot
    /// was taken.
    #[must_use]
    pub fn seen_whole(&self, snapshot: &SnapshotView<'_>) -> bool {
        snapshot.all_finished(&self.window) && self.publishers().all(|xid| snapshot.finished(xid))
    }

    fn publishers(&self) -> impl Iterator<Item = u64> + '_ {
        self.pending.iter().copied().filter(|&xid| xid != 0)
    }

    /// Forgets the publishers that were found ended. Those that came after that stay: nobody has asked about them.
    fn forget(&mut self, ended: &Ended) {
        for cell in &mut self.pending {
            if ended.pending.contains(cell) {
                *cell = 0;
            }
        }
        if self.window == ended.window {
            self.window = ended.window_left;
        }
    }

    fn add(&mut self, xid: u64) {
        if self.pending.contains(&xid) || self.window.holds(xid) {
            return;
        }
        if let Some(empty) = self.pending.iter_mut().find(|cell| **cell == 0) {
            *empty = xid;
            return;
        }
        // The id that leaves the window narrowest is folded. Of several such ids it is the newest, so that long
        // transactions are remembered one by one and the window holds short ones.
        let preference = |xid: u64| (self.window.growth(xid), std::cmp::Reverse(xid));
        let mut folded = xid;
        for cell in &mut self.pending {
            if preference(*cell) < preference(folded) {
                std::mem::swap(cell, &mut folded);
            }
        }
        self.window.add(folded);
    }
}

/// The publishers of a slot that have ended: see [`Slot::find_ended`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Ended {
    pending: [u64; PENDING],
    window: XidWindow,
    window_left: XidWindow,
}

impl Slot {
    /// The state of the slot, as one consistent whole.
    #[must_use]
    pub fn read(&self) -> SlotState {
        self.sequence.read(|version| self.load(version))
    }

    /// The state of the slot, as one consistent whole; `None` if somebody is changing it.
    pub(crate) fn try_read(&self) -> Option<SlotState> {
        self.sequence.try_read(|version| self.load(version))
    }

    /// The change that somebody is making at this moment: each has a number of its own.
    pub(crate) fn change_under_way(&self) -> Option<u64> {
        self.sequence.change_under_way()
    }

    /// The version alone: enough to find that it moved, but not what a snapshot sees.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.sequence.moves()
    }

    /// Publishes that top-level transaction `xid`, still running, changes what this slot stands for. Must be called
    /// before `xid` can become visible. `oldest_running` is at most every id that runs at the time of the call or
    /// later, `xid` included. `is_running` is asked about other publishers, with no lock held. A wrong `true` makes
    /// readers refuse entries that they could serve; a wrong `false` lets outdated entries be served. `now` is in
    /// microseconds.
    ///
    /// Publishers that have ended are forgotten: a snapshot that sees `xid` sees them too, and one that does not is
    /// refused because of `xid`.
    pub fn publish(&self, xid: u64, oldest_running: u64, is_running: impl FnMut(u64) -> bool, now: i64) {
        let ended = self.find_ended(xid, oldest_running, is_running);
        self.enter(xid, &ended, now);
    }

    /// The first half of [`Slot::publish`]: finds publishers that `xid` can stand for. It stores nothing.
    #[must_use]
    pub fn find_ended(&self, xid: u64, oldest_running: u64, mut is_running: impl FnMut(u64) -> bool) -> Ended {
        let seen = self.read();
        // `xid` itself is entered anew.
        let mut has_ended = |other| other == xid || other < oldest_running || !is_running(other);
        let mut ended = Ended { window: seen.window, ..Ended::default() };
        for (cell, other) in ended.pending.iter_mut().zip(seen.publishers()) {
            if has_ended(other) {
                *cell = other;
            }
        }
        ended.window_left = seen.window.without_ended(oldest_running, has_ended);
        ended
    }

    /// The second half of [`Slot::publish`], at any later time: an id that has ended never runs again.
    pub fn enter(&self, xid: u64, ended: &Ended, now: i64) {
        self.change(now, |state| {
            state.forget(ended);
            state.add(xid);
        });
    }

    /// Publishes `xid` from the one process that replays the WAL of a primary, before it replays the record that ends
    /// `xid`.
    ///
    /// It takes the publisher before for ended. That is so: this process alone publishes on a standby, each time just
    /// before it replays the end of the publisher, and it replays one record after the other. So whatever it published
    /// before has ended by now. After the end of recovery other processes publish transactions that run on: this must
    /// not be called any more then.
    ///
    /// A slot that was published in this way alone has one publisher, in the first place. Others are left as they are,
    /// which could only make readers refuse more.
    pub fn publish_replayed(&self, xid: u64, now: i64) {
        self.change(now, |state| state.pending[0] = xid);
    }

    /// Publishes every transaction whose id is below `next`, the next one to be given: of the past nobody knows who has
    /// changed what this slot stands for. So a snapshot sees the slot whole only if all of them have ended for it.
    ///
    /// That holds for a snapshot from before as well, although some of them have ended since it was taken. Therefore
    /// not only those count that still run.
    pub fn publish_all_below(&self, next: u64, now: i64) {
        self.change(now, |state| state.window.add_all_below(next));
    }

    /// Moves the version and nothing else: results stored under the old one are outdated, and new ones can be stored at
    /// once.
    pub fn bump(&self, now: i64) {
        self.change(now, |_| ());
    }

    /// Runs `edit` on the state with the sequence word odd, and stores the state under the next version.
    fn change(&self, now: i64, edit: impl FnOnce(&mut SlotState)) {
        let version = self.sequence.begin();
        let mut state = self.load(version);
        edit(&mut state);
        state.last_change = now;
        self.store(&state);
        self.sequence.end(version);
    }

    /// The state under a version. The sequence word is even, or this process has made it odd.
    fn load(&self, version: u64) -> SlotState {
        SlotState {
            version,
            pending: std::array::from_fn(|i| self.pending[i].load(Relaxed)),
            window: XidWindow {
                low: self.window_low.load(Relaxed),
                high: self.window_high.load(Relaxed),
                marks: self.window_marks.load(Relaxed),
            },
            last_change: self.last_change.load(Relaxed),
        }
    }

    fn store(&self, state: &SlotState) {
        for (cell, &xid) in self.pending.iter().zip(&state.pending) {
            cell.store(xid, Relaxed);
        }
        self.window_low.store(state.window.low, Relaxed);
        self.window_high.store(state.window.high, Relaxed);
        self.window_marks.store(state.window.marks, Relaxed);
        self.last_change.store(state.last_change, Relaxed);
    }
}

#[cfg(test)]
impl Slot {
    /// Makes it a slot with these publishers.
    pub(crate) fn damage(&self, pending: [u64; PENDING]) {
        self.change(0, |state| state.pending = pending);
    }

    /// Leaves it in the middle of a change.
    pub(crate) fn damage_word(&self) {
        self.sequence.begin();
    }
}

impl From<SlotState> for Slot {
    fn from(state: SlotState) -> Self {
        Self {
            sequence: SequenceWord::moved(state.version),
            pending: state.pending.map(AtomicU64::new),
            window_low: AtomicU64::new(state.window.low),
            window_high: AtomicU64::new(state.window.high),
            window_marks: AtomicU64::new(state.window.marks),
            last_change: AtomicI64::new(state.last_change),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_publisher_takes_the_place_of_those_that_have_ended_and_of_no_others() {
        const OLDEST: u64 = 100;
        let never = |_: u64| unreachable!("nobody has to be asked");
        let state = |pending| SlotState { version: 4, pending, ..SlotState::default() };
        for pending in [[0, 0, 0], [7, 0, 0], [0, 99, 7], [110, 0, 99], [7, 8, 110]] {
            let slot = Slot::from(state(pending));
            slot.publish(110, OLDEST, never, 70);
            let published = SlotState { version: 5, pending: [110, 0, 0], last_change: 70, ..SlotState::default() };
            assert_eq!(slot.read(), published, "{pending:?}");
        }
        let slot = Slot::from(state([7, 105, 0]));
        slot.publish(110, OLDEST, |other| other == 105, 70);
        assert_eq!(slot.read(), SlotState { version: 5, last_change: 70, ..state([110, 105, 0]) });
        // Somebody has published since the slot was looked at.
        let slot = Slot::from(state([7, 105, 0]));
        let ended = slot.find_ended(110, OLDEST, |other| other == 105);
        slot.publish(106, OLDEST, |other| other == 105, 69);
        slot.enter(110, &ended, 70);
        assert_eq!(slot.read(), SlotState { version: 6, last_change: 70, ..state([106, 105, 110]) });
    }
}
