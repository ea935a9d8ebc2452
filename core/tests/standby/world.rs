//! The world, and the search through every order in which replay and readers can take their steps.

use crate::reader::{Reader, Turn};
use crate::replay::{Action, Program, program};
use crate::slots::Slots;
use crate::wal::{Case, Rules};
use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// Number of notes that the table has room for, beside the one in the line.
const NOTES: usize = 2;

/// What a statement returned.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Answer {
    pub definition: u8,
    pub file: usize,
    pub rows: u32,
}

/// A stored answer and what it rests on: places of slots with their versions.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Entry {
    pub tags: Vec<(usize, u64)>,
    pub answer: Answer,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct World {
    /// Number of steps that replay has taken.
    pub done: usize,
    pub slots: Slots,
    pub readers: Vec<Reader>,
    pub entries: BTreeSet<Entry>,
}

#[derive(Default, Debug)]
pub struct Outcome {
    pub states: usize,
    pub stores: usize,
    pub hits: usize,
    pub violations: usize,
    pub overflows: usize,
    /// Worlds in which nobody can do anything, although replay is not at its end.
    pub stuck: usize,
}

/// Hashing takes most of the time of a search, and nobody chooses worlds so that their hashes are equal.
#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Tries every order, until a violation is found.
pub fn explore(case: &Case, rules: &Rules) -> Outcome {
    let program = program::<NOTES>(case, rules);
    let mut outcome = Outcome { overflows: program.overflows, ..Outcome::default() };
    let readers = case.readers.iter().map(|kind| Reader::new(*kind, &program)).collect();
    let mut seen: HashSet<World, BuildHasherDefault<Mixer>> = HashSet::default();
    let mut open = vec![World { done: 0, slots: Slots::default(), readers, entries: BTreeSet::new() }];
    while let Some(world) = open.pop() {
        if seen.contains(&world) {
            continue;
        }
        let before = open.len();
        open.extend(replay(&program, &world).map(|next| simplified(next, rules)));
        for position in 0..world.readers.len() {
            let turn = Turn { program: &program, rules, world: &world, subs_are_listed: case.subs_are_listed };
            open.extend(turn.next(position, &mut outcome).into_iter().map(|next| simplified(next, rules)));
        }
        outcome.stuck += usize::from(open.len() == before && world.done < program.steps.len());
        seen.insert(world);
        if outcome.violations > 0 {
            break;
        }
    }
    outcome.states = seen.len();
    outcome
}

/// The next step of replay. It waits for readers before the relation is locked against them.
fn replay(program: &Program, world: &World) -> Option<World> {
    let (action, after) = program.steps.get(world.done)?;
    let locks = after.is_locked && !program.server(world.done).is_locked;
    if locks && world.readers.iter().any(Reader::is_inside) {
        return None;
    }
    let mut next = world.clone();
    next.done += 1;
    match *action {
        Action::Nothing => {}
        Action::Publish(place, xid) => next.slots.change(place, |slot| slot.publish_replayed(u64::from(xid), 0)),
        Action::PublishHere(place, xid) => {
            let oldest = u64::from(after.running.trailing_zeros().min(xid));
            let is_running = |other: u64| after.running & (1 << other) != 0;
            next.slots.change(place, |slot| slot.publish(u64::from(xid), oldest, is_running, 0));
        }
        Action::Move(place) => next.slots.change(place, |slot| slot.bump(0)),
        Action::RaiseFloor(floor) => next.slots.raise_floor(floor),
        Action::EnsureFloor(floor) => next.slots.ensure_floor(floor),
        Action::Restart => {
            next.slots.forget_floor();
            let readers = next.readers.into_iter();
            next.readers = readers.map(|reader| reader.in_new_session(after.announced)).collect();
        }
    }
    Some(next)
}

/// Worlds that differ only in which of two equal readers has reached which step are one, and an outdated entry is as
/// good as none: the version of a slot never comes again.
fn simplified(world: World, rules: &Rules) -> World {
    let World { done, slots, readers, mut entries } = world;
    let mut readers: Vec<Reader> = readers.into_iter().map(|reader| reader.without_hope(rules, &slots)).collect();
    readers.sort_unstable();
    entries.retain(|entry| entry.tags.iter().all(|(slot, version)| slots.read(*slot).version == *version));
    World { done, slots, readers, entries }
}
