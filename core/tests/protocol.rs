//! Every interleaving of a few writers and readers of one slot, through the real code: no reader is ever served a
//! result that its own snapshot would not give. The search must find a violation as soon as one rule of the protocol is
//! taken away.

use arrow_cache_core::versions::slot::{Ended, Slot, SlotState};
use arrow_cache_core::versions::snapshot::SnapshotView;
use arrow_cache_core::versions::value_slot::ValueSlot;
use arrow_cache_core::versions::xid_window::XidWindow;
use std::collections::{BTreeSet, HashSet};

/// The step that a writer has reached. It has an id from `Begun` until it is `Gone`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd)]
enum Step {
    Waiting,
    Begun,
    /// Has read which id is the oldest running.
    Measured,
    /// Has found which publishers have ended.
    Looked,
    Published,
    MeasuredAgain,
    LookedAgain,
    PublishedAgain,
    Gone,
}
use Step::{Begun, Gone, Looked, LookedAgain, Measured, MeasuredAgain, Published, PublishedAgain, Waiting};

#[derive(Clone, Copy)]
struct Writer {
    xid: u64,
    aborts: bool,
    from: Step,
    publishes_twice: bool,
}

fn writer(xid: u64, aborts: bool) -> Writer {
    Writer { xid, aborts, from: Begun, publishes_twice: false }
}

/// Has published and still runs.
fn published(xid: u64) -> Writer {
    Writer { from: Published, ..writer(xid, false) }
}

#[derive(Clone, Copy)]
struct Rules {
    window_is_checked: bool,
    window_is_checked_for_the_future: bool,
    pending_is_checked: bool,
    publishers_are_asked: bool,
    folded_are_asked: bool,
    oldest_is_measured: bool,
    publish_before_end: bool,
    versions_are_compared: bool,
}

const ALL_RULES: Rules = Rules {
    window_is_checked: true,
    window_is_checked_for_the_future: true,
    pending_is_checked: true,
    publishers_are_asked: true,
    folded_are_asked: true,
    oldest_is_measured: true,
    publish_before_end: true,
    versions_are_compared: true,
};

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Snapshot {
    committed: u32,
    xmin: u64,
    xmax: u64,
    in_progress: Vec<u32>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Reader {
    Before,
    Took(Snapshot),
    Done,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    steps: Vec<Step>,
    /// What each writer found to be the oldest running id.
    oldest: Vec<u64>,
    /// Which publishers each writer found to have ended.
    ended: Vec<Ended>,
    /// What each writer found in the slot of a value, and what it is to become.
    found: Vec<(u64, u64)>,
    readers: Vec<Reader>,
    slot: SlotState,
    /// Stored results: version and the committed writers they show, by bit.
    entries: BTreeSet<(u64, u32)>,
}

#[derive(Default)]
struct Outcome {
    states: usize,
    hits: usize,
    violations: usize,
}

struct Model<'a> {
    writers: &'a [Writer],
    rules: Rules,
    /// The slot is that of a value.
    is_value: bool,
}

impl Model<'_> {
    fn start(&self, readers: usize) -> World {
        let (slot, value) = (Slot::from(SlotState::default()), ValueSlot::from(0));
        for early in self.writers.iter().filter(|writer| writer.from == Published) {
            slot.publish(early.xid, 1, |_| true, 0);
            value.publish(early.xid, 1, |_| true);
        }
        World {
            steps: self.writers.iter().map(|writer| writer.from).collect(),
            oldest: vec![0; self.writers.len()],
            ended: vec![Ended::default(); self.writers.len()],
            found: vec![(0, 0); self.writers.len()],
            readers: vec![Reader::Before; readers],
            slot: if self.is_value { value.read() } else { slot.read() },
            entries: BTreeSet::new(),
        }
    }

    fn running(&self, world: &World) -> Vec<u64> {
        let with_id = self.writers.iter().zip(&world.steps);
        with_id.filter(|(_, step)| **step > Waiting && !self.has_ended(**step)).map(|(writer, _)| writer.xid).collect()
    }

    /// Without the order of publication and end, a writer ends with its first step and publishes with its last.
    fn has_ended(&self, step: Step) -> bool {
        if self.rules.publish_before_end { step == Gone } else { step > Looked }
    }

    fn snapshot(&self, world: &World) -> Snapshot {
        let mut ended = self.writers.iter().zip(&world.steps).filter(|(_, step)| self.has_ended(**step));
        let committed = self.writers.iter().zip(&world.steps).enumerate();
        let committed = committed.filter(|(_, (writer, step))| self.has_ended(**step) && !writer.aborts);
        let committed = committed.fold(0, |bits, (position, _)| bits | 1 << position);
        // As in the server: ids from the last that ended on count as running, whether they are listed or not.
        let xmax = ended.by_ref().map(|(writer, _)| writer.xid + 1).max().unwrap_or(1);
        let running = self.running(world);
        let xmin = running.iter().copied().fold(xmax, u64::min);
        let in_progress = running.into_iter().filter(|&xid| xid < xmax).map(|xid| xid as u32).collect();
        Snapshot { committed, xmin, xmax, in_progress }
    }

    fn measure(&self, world: &mut World, position: usize) {
        let own = self.writers[position].xid;
        let oldest = self.running(world).into_iter().fold(own, u64::min);
        world.oldest[position] = if self.rules.oldest_is_measured { oldest } else { u64::MAX };
    }

    fn find_ended(&self, world: &mut World, position: usize) {
        let running = self.running(world);
        let pending = world.slot.pending;
        let ask = |xid| {
            let asked = self.rules.publishers_are_asked && (self.rules.folded_are_asked || pending.contains(&xid));
            asked && running.contains(&xid)
        };
        let (xid, oldest) = (self.writers[position].xid, world.oldest[position]);
        if self.is_value {
            let value = ValueSlot::from(world.slot.version);
            value.publish(xid, oldest, ask);
            world.found[position] = (world.slot.version, value.version());
        } else {
            world.ended[position] = Slot::from(world.slot).find_ended(xid, oldest, ask);
            world.oldest[position] = 0;
        }
    }

    /// Returns true if it is done: the slot of a value must be as it was found.
    fn publish(&self, world: &mut World, position: usize) -> bool {
        if self.is_value {
            let (before, after) = std::mem::take(&mut world.found[position]);
            if world.slot.version != before {
                return false;
            }
            world.slot = ValueSlot::from(after).read();
            world.oldest[position] = 0;
            return true;
        }
        let slot = Slot::from(world.slot);
        slot.enter(self.writers[position].xid, &world.ended[position], 0);
        world.slot = slot.read();
        world.ended[position] = Ended::default();
        true
    }

    fn write(&self, world: &World, position: usize) -> Option<World> {
        let writer = self.writers[position];
        let mut next = world.clone();
        let step = world.steps[position];
        next.steps[position] = match step {
            Waiting => {
                // Ids are handed out in order.
                let earlier = self.writers.iter().zip(&world.steps);
                if earlier.clone().any(|(other, step)| other.xid < writer.xid && *step == Waiting) {
                    return None;
                }
                Begun
            }
            Begun => {
                self.measure(&mut next, position);
                Measured
            }
            Measured => {
                self.find_ended(&mut next, position);
                Looked
            }
            Looked if self.rules.publish_before_end => {
                [Measured, Published][usize::from(self.publish(&mut next, position))]
            }
            Looked => Published,
            Published if !self.rules.publish_before_end => {
                let _ = self.publish(&mut next, position);
                Gone
            }
            Published if writer.publishes_twice => {
                self.measure(&mut next, position);
                MeasuredAgain
            }
            MeasuredAgain => {
                self.find_ended(&mut next, position);
                LookedAgain
            }
            LookedAgain => [MeasuredAgain, PublishedAgain][usize::from(self.publish(&mut next, position))],
            Published | PublishedAgain => Gone,
            Gone => return None,
        };
        Some(next)
    }

    fn read(&self, world: &World, position: usize, outcome: &mut Outcome) -> Option<World> {
        let mut next = world.clone();
        match &world.readers[position] {
            Reader::Before => next.readers[position] = Reader::Took(self.snapshot(world)),
            Reader::Took(snapshot) => {
                next.readers[position] = Reader::Done;
                let mut state = world.slot;
                if !self.rules.window_is_checked {
                    state.window = XidWindow::default();
                }
                if !self.rules.window_is_checked_for_the_future {
                    state.window.high = state.window.high.min(snapshot.xmax - 1);
                }
                if !self.rules.pending_is_checked {
                    state.pending = Default::default();
                }
                let view =
                    SnapshotView { xmin: snapshot.xmin, xmax: snapshot.xmax, in_progress: &snapshot.in_progress };
                if state.seen_whole(&view) {
                    let compared = self.rules.versions_are_compared;
                    for (_, shown) in world.entries.iter().filter(|(version, _)| !compared || *version == state.version)
                    {
                        outcome.hits += 1;
                        outcome.violations += usize::from(*shown != snapshot.committed);
                    }
                    next.entries.insert((state.version, snapshot.committed));
                }
            }
            Reader::Done => return None,
        }
        Some(next)
    }

    fn explore(&self, readers: usize) -> Outcome {
        let mut outcome = Outcome::default();
        let mut seen = HashSet::new();
        let mut open = vec![self.start(readers)];
        while let Some(world) = open.pop() {
            if seen.contains(&world) {
                continue;
            }
            for position in 0..self.writers.len() {
                open.extend(self.write(&world, position));
            }
            for position in 0..readers {
                open.extend(self.read(&world, position, &mut outcome).map(in_order));
            }
            seen.insert(world);
        }
        outcome.states = seen.len();
        outcome
    }
}

/// Readers are interchangeable, so worlds that differ only in which reader has reached which step are one.
fn in_order(mut world: World) -> World {
    world.readers.sort_unstable();
    world
}

fn explore(writers: &[Writer], readers: usize, rules: Rules, is_value: bool) -> Outcome {
    Model { writers, rules, is_value }.explore(readers)
}

/// On the slot of a relation, and on that of a value.
fn holds(writers: &[Writer], readers: usize) {
    for is_value in [false, true] {
        let outcome = explore(writers, readers, ALL_RULES, is_value);
        let xids: Vec<u64> = writers.iter().map(|writer| writer.xid).collect();
        assert_eq!(outcome.violations, 0, "{xids:?}");
        assert!(outcome.hits > 0, "{xids:?}: nobody was ever served, {} states prove nothing", outcome.states);
    }
}

const READERS: usize = if cfg!(miri) { 2 } else { 3 };

/// Miri would take minutes for the larger searches, and they have no unsafe code that it could check.
const QUICK: bool = cfg!(miri);

#[test]
fn two_writers_every_end() {
    for aborts in [(false, false), (true, false), (false, true), (true, true)] {
        holds(&[writer(1, aborts.0), writer(2, aborts.1)], READERS);
        if QUICK {
            return;
        }
    }
}

#[test]
fn two_writers_from_their_beginning() {
    if QUICK {
        return;
    }
    for aborts in [(false, false), (true, false), (false, true)] {
        let late = |xid, aborts| Writer { from: Waiting, ..writer(xid, aborts) };
        holds(&[late(1, aborts.0), late(2, aborts.1)], 2);
        holds(&[writer(1, aborts.0), late(2, aborts.1)], READERS);
    }
}

#[test]
fn writers_that_publish_twice() {
    if QUICK {
        return;
    }
    let twice = |xid| Writer { publishes_twice: true, ..writer(xid, false) };
    holds(&[twice(1), twice(2)], 2);
    holds(&[twice(1), writer(2, true)], 2);
    holds(&[twice(2), writer(1, false), published(3)], 2);
}

#[test]
fn three_writers() {
    if QUICK {
        return;
    }
    for aborted in [None, Some(1), Some(2), Some(3)] {
        let all: Vec<Writer> = (1..=3).map(|xid| writer(xid, aborted == Some(xid))).collect();
        holds(&all, 2);
    }
}

/// More publishers at once than places, in any order, and with a few of them still to come.
#[test]
fn more_publishers_than_a_slot_remembers() {
    if QUICK {
        return;
    }
    for new in [[1, 2], [4, 5], [1, 5], [2, 4]] {
        let early = (1..=5).filter(|xid| !new.contains(xid)).map(published);
        let all: Vec<Writer> = early.chain(new.map(|xid| writer(xid, false))).collect();
        holds(&all, 2);
    }
    let twice = |xid| Writer { publishes_twice: true, ..writer(xid, false) };
    holds(&[published(1), published(2), published(3), published(5), twice(4)], 2);
    holds(&[published(1), twice(2), published(3), published(4), published(5)], 2);
}

/// The window is wider than its marks, and 69 has the mark of 5.
#[test]
fn publishers_far_apart() {
    if QUICK {
        return;
    }
    let early = [5, 70, 200].map(published);
    for new in [69, 150, 300] {
        let all: Vec<Writer> = early.into_iter().chain([writer(new, false), writer(new + 2, true)]).collect();
        holds(&all, 2);
    }
}

/// Three have a place of their own, one is folded, one is yet to publish.
fn overflowing() -> Vec<Writer> {
    (1..=4).map(published).chain([writer(5, false)]).collect()
}

#[test]
fn the_search_finds_what_each_missing_rule_breaks() {
    if QUICK {
        return;
    }
    let two = [writer(1, false), writer(2, false)];
    let cases: [(&str, Rules, Vec<Writer>); 8] = [
        ("window", Rules { window_is_checked: false, ..ALL_RULES }, overflowing()),
        ("future", Rules { window_is_checked_for_the_future: false, ..ALL_RULES }, overflowing()),
        ("pending", Rules { pending_is_checked: false, ..ALL_RULES }, two.to_vec()),
        ("asking", Rules { publishers_are_asked: false, ..ALL_RULES }, two.to_vec()),
        ("asking about the folded", Rules { folded_are_asked: false, ..ALL_RULES }, overflowing()),
        ("oldest", Rules { oldest_is_measured: false, ..ALL_RULES }, two.to_vec()),
        ("order", Rules { publish_before_end: false, ..ALL_RULES }, two.to_vec()),
        ("version", Rules { versions_are_compared: false, ..ALL_RULES }, two.to_vec()),
    ];
    for (name, rules, writers) in cases {
        assert!(explore(&writers, 2, rules, false).violations > 0, "{name}: not caught");
        assert_eq!(explore(&writers, 2, ALL_RULES, false).violations, 0, "{name}");
        assert!(explore(&writers, 2, rules, true).violations > 0, "{name}: not caught on the slot of a value");
    }
}
