//! Long random histories of many overlapping publishers of one slot, compared with a list of all that ever published.

use arrow_cache_core::versions::slot::{Ended, Slot, SlotState};
use arrow_cache_core::versions::snapshot::SnapshotView;

const STEPS: u64 = if cfg!(miri) { 300 } else { 30_000 };

/// xorshift: reproducible and enough.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

struct Snapshot {
    xmin: u64,
    xmax: u64,
    in_progress: Vec<u32>,
}

struct History {
    slot: Slot,
    dice: Dice,
    next: u64,
    latest_ended: u64,
    running: Vec<u64>,
    published: Vec<u64>,
    /// Publications between their two halves.
    halfway: Vec<(u64, Ended)>,
    snapshots: Vec<Snapshot>,
    seen: u64,
    refused: u64,
    refused_needlessly: u64,
    folded: u64,
}

impl History {
    fn new(seed: u64, first: u64) -> Self {
        Self {
            slot: Slot::from(SlotState::default()),
            dice: Dice(seed),
            next: first,
            latest_ended: first - 1,
            running: Vec::new(),
            published: Vec::new(),
            halfway: Vec::new(),
            snapshots: Vec::new(),
            seen: 0,
            refused: 0,
            refused_needlessly: 0,
            folded: 0,
        }
    }

    fn begin(&mut self, gap: u64) {
        self.next += 1 + self.dice.roll(gap);
        self.running.push(self.next);
    }

    fn end(&mut self, position: usize) {
        let xid = self.running[position];
        if self.halfway.iter().all(|(other, _)| *other != xid) {
            self.running.remove(position);
            self.latest_ended = self.latest_ended.max(xid);
        }
    }

    fn any_running(&mut self) -> Option<usize> {
        let count = self.running.len() as u64;
        (count > 0).then(|| self.dice.roll(count) as usize)
    }

    fn find_ended(&mut self) {
        let Some(position) = self.any_running() else { return };
        let xid = self.running[position];
        let oldest = self.running.iter().copied().fold(xid, u64::min);
        let ended = self.slot.find_ended(xid, oldest, |other| self.running.contains(&other));
        self.halfway.push((xid, ended));
    }

    fn enter(&mut self) {
        if !self.halfway.is_empty() {
            let choice = self.dice.roll(self.halfway.len() as u64) as usize;
            let (xid, ended) = self.halfway.swap_remove(choice);
            self.slot.enter(xid, &ended, 0);
            self.published.push(xid);
        }
    }

    fn take_snapshot(&mut self) {
        let xmax = self.latest_ended + 1;
        let xmin = self.running.iter().copied().fold(xmax, u64::min);
        let in_progress = self.running.iter().filter(|xid| **xid < xmax).map(|xid| *xid as u32).collect();
        self.snapshots.push(Snapshot { xmin, xmax, in_progress });
        if self.snapshots.len() > 4 {
            self.snapshots.remove(0);
        }
    }

    fn judge(&mut self) {
        let state = self.slot.read();
        self.folded += u64::from(state.window.marks != 0);
        for snapshot in &self.snapshots {
            let view = SnapshotView { xmin: snapshot.xmin, xmax: snapshot.xmax, in_progress: &snapshot.in_progress };
            let expected = self.published.iter().rev().take(500).all(|xid| view.finished(*xid));
            match (state.seen_whole(&view), expected) {
                (true, true) => self.seen += 1,
                (true, false) => panic!("{view:?} sees not all, and {state:?} says it does"),
                (false, false) => self.refused += 1,
                (false, true) => self.refused_needlessly += 1,
            }
        }
    }

    /// Random steps. Now and then every transaction ends, so that snapshots see changes.
    fn run(&mut self, gap: u64, crowd: usize, spread: u64, delayed: bool) {
        for _ in 0..STEPS {
            match self.dice.roll(10) {
                0 | 1 if self.running.len() < crowd => self.begin(gap),
                2 | 7 => {
                    if let Some(position) = self.any_running() {
                        self.end(position);
                    }
                }
                3 | 4 => self.find_ended(),
                5 | 6 => self.enter(),
                8 if self.dice.roll(20) == 0 => (0..self.running.len()).rev().for_each(|position| self.end(position)),
                _ => self.take_snapshot(),
            }
            if !delayed {
                self.enter();
            }
            while self.running.first().is_some_and(|oldest| self.next - oldest > spread) {
                while !self.halfway.is_empty() {
                    self.enter();
                }
                self.end(0);
            }
            self.judge();
        }
    }
}

const EPOCH: u64 = 3 << 32;

#[test]
fn ids_close_together_are_judged_exactly() {
    for seed in 1..=4 {
        let mut history = History::new(seed, EPOCH - STEPS / 32);
        history.run(3, 20, 50, false);
        assert!(history.next > EPOCH, "the ids never came to the next epoch");
        assert!(history.seen > 0 && history.refused > 0 && history.folded > 0);
        assert_eq!(history.refused_needlessly, 0);
    }
}

#[test]
fn ids_far_apart_are_never_taken_for_seen() {
    for (seed, crowd) in [(5, 8), (6, 8), (7, 20), (8, 40)] {
        let mut history = History::new(seed, EPOCH - STEPS);
        history.run(100, crowd, u64::MAX, true);
        assert!(history.seen > 0 && history.refused > 0 && history.folded > 0);
    }
}

/// A transaction that never publishes here runs all the time.
#[test]
fn a_bystander_does_not_keep_a_crowd_of_writers_unseen() {
    let slot = Slot::from(SlotState::default());
    let bystander = 1000;
    let crowd: Vec<u64> = (980..1030).filter(|xid| *xid != bystander).collect();
    for &xid in &crowd {
        slot.publish(xid, 980, |_| true, 0);
    }
    let sees = |xmax| slot.read().seen_whole(&SnapshotView { xmin: bystander, xmax, in_progress: &[1000] });
    assert!(!sees(1029));
    assert!(sees(1030));
    slot.publish(2000, bystander, |xid| xid == bystander, 0);
    assert!(!sees(2000));
    assert!(sees(2001));
    assert_eq!(slot.read().pending, [2000, 0, 0]);
}
