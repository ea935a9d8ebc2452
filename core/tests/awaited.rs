//! Waiting for an answer to change: every interleaving of a process that waits with one that commits, and what the
//! store promises of those who wait.

#[expect(dead_code, reason = "nothing is stored here")]
mod common;

use arrow_cache_core::cache::awaited::SlotBits;
use common::{Block, SEATS};
use std::collections::HashSet;

/// The steps of a process that has the token of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Waiter {
    Begins,
    /// Is among those who wait.
    Entered,
    /// Looks, when it has entered or was woken.
    Looks,
    /// Has looked, and is not among those who wait yet.
    EntersLate,
    Sleeps,
    /// Has returned: true.
    Returned,
}

/// The steps of a transaction that changes the answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Writer {
    Begins,
    /// PRE_COMMIT: has moved the slot.
    Moved,
    /// Has asked who waits.
    Asked,
    /// Has committed: others see the change.
    Visible,
    /// Has woken whom it knows.
    Done,
}

#[derive(Clone, Copy)]
struct Rules {
    enters_before_looking: bool,
    asks_behind_the_move: bool,
    wakes_when_visible: bool,
}

const ALL: Rules = Rules { enters_before_looking: true, asks_behind_the_move: true, wakes_when_visible: true };

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct World {
    waiter: Waiter,
    writer: Writer,
    is_entered: bool,
    has_moved: bool,
    is_visible: bool,
    /// The writer knows of the waiter.
    is_known: bool,
    is_woken: bool,
    /// What others have cut short: a wake-up for something else.
    others: u8,
    /// It was woken by the writer before what that has changed was visible.
    is_early: bool,
}

const START: World = World {
    waiter: Waiter::Begins,
    writer: Writer::Begins,
    is_entered: false,
    has_moved: false,
    is_visible: false,
    is_known: false,
    is_woken: false,
    others: 0,
    is_early: false,
};

impl World {
    fn wait(&mut self, rules: Rules) {
        self.waiter = match self.waiter {
            Waiter::Begins if rules.enters_before_looking => {
                self.is_entered = true;
                Waiter::Entered
            }
            Waiter::Begins => Waiter::Looks,
            Waiter::Entered => Waiter::Looks,
            Waiter::Looks if self.has_moved => {
                self.is_entered = false;
                Waiter::Returned
            }
            Waiter::Looks if self.is_entered => Waiter::Sleeps,
            Waiter::Looks => Waiter::EntersLate,
            Waiter::EntersLate => {
                self.is_entered = true;
                Waiter::Sleeps
            }
            Waiter::Sleeps if self.is_woken => {
                self.is_woken = false;
                Waiter::Looks
            }
            rest => rest,
        };
    }

    fn write(&mut self, rules: Rules) {
        self.writer = match self.writer {
            Writer::Begins => {
                self.has_moved = rules.asks_behind_the_move;
                self.is_known |= !rules.asks_behind_the_move && self.is_entered;
                Writer::Moved
            }
            Writer::Moved => {
                self.is_known |= rules.asks_behind_the_move && self.is_entered;
                self.has_moved = true;
                if !rules.wakes_when_visible {
                    self.wake();
                }
                Writer::Asked
            }
            Writer::Asked => {
                self.is_visible = true;
                Writer::Visible
            }
            Writer::Visible => {
                if rules.wakes_when_visible {
                    self.wake();
                }
                Writer::Done
            }
            Writer::Done => Writer::Done,
        };
    }

    fn wake(&mut self) {
        if self.is_known && self.is_entered {
            self.is_woken = true;
            self.is_early |= !self.is_visible;
        }
    }
}

/// Goes through all interleavings. Returns whether nobody sleeps on whose answer is not current, and whether the writer
/// wakes nobody early.
fn explore(rules: Rules) -> (bool, bool) {
    let (mut seen, mut open) = (HashSet::from([START]), vec![START]);
    let (mut none_sleeps_on, mut none_is_early) = (true, true);
    while let Some(world) = open.pop() {
        none_is_early &= !world.is_early;
        let mut steps = 0;
        for step in 0..3 {
            let mut next = world.clone();
            match step {
                0 => next.wait(rules),
                1 => next.write(rules),
                _ if world.others < 2 && world.waiter == Waiter::Sleeps => {
                    (next.is_woken, next.others) = (true, world.others + 1);
                }
                _ => {}
            }
            steps += usize::from(step < 2 && next != world);
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
        // Neither of the two does anything more.
        none_sleeps_on &= steps > 0 || world.waiter == Waiter::Returned;
    }
    (none_sleeps_on, none_is_early)
}

#[test]
fn nobody_sleeps_on_whose_answer_is_not_current() {
    assert_eq!(explore(ALL), (true, true));
}

#[test]
fn each_rule_is_needed() {
    assert!(!explore(Rules { enters_before_looking: false, ..ALL }).0);
    assert!(!explore(Rules { asks_behind_the_move: false, ..ALL }).0);
    assert!(!explore(Rules { wakes_when_visible: false, ..ALL }).1);
}

#[test]
fn those_are_woken_who_wait_for_a_slot_that_was_moved() {
    let block = Block::new(1, 64 << 10);
    let store = block.attach(0);
    let (awaited, versions) = (store.awaited(), store.versions());
    let slots = [versions.relation(1, 20_000), versions.value(1, 20_000, 1, 5), versions.ddl(1)];
    let bits = |slots: &[_]| {
        let mut bits = SlotBits::NONE;
        slots.iter().for_each(|slot| bits.add(*slot));
        bits
    };
    let woken = |moved: &[_]| {
        let mut noted = SlotBits::NONE;
        let are_some = awaited.add_awaited(moved.iter().copied(), &mut noted);
        assert_eq!(are_some, noted != SlotBits::NONE);
        awaited.waiting_for(&noted).collect::<Vec<_>>()
    };
    assert_eq!(woken(&slots), []);
    assert!(awaited.enter(3, &bits(&slots[..2])) && awaited.enter(7, &bits(&slots[1..])));
    assert_eq!((woken(&slots[..1]), woken(&slots[1..2]), woken(&slots[2..])), (vec![3], vec![3, 7], vec![7]));
    assert_eq!((awaited.all().collect::<Vec<_>>(), awaited.count()), (vec![3, 7], 2));
    awaited.leave(3);
    assert_eq!((woken(&slots[..1]), woken(&slots[1..2])), (vec![], vec![7]));
    awaited.leave(7);
    assert_eq!((woken(&slots), awaited.count(), awaited.all().count()), (vec![], 0, 0));
}

#[test]
fn there_are_as_many_places_as_seats() {
    let block = Block::new(1, 64 << 10);
    let store = block.attach(0);
    let mut slots = SlotBits::NONE;
    slots.add(store.versions().ddl(1));
    assert!((0..SEATS).all(|process| store.awaited().enter(process, &slots)));
    assert!(!store.awaited().enter(SEATS, &slots));
    (0..SEATS).for_each(|process| store.awaited().leave(process));
    assert_eq!(store.awaited().count(), 0);
}
