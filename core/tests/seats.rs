//! Holds by seats: every interleaving of two readers with a process that replaces an entry, frees its record and uses
//! that again; and what the store promises of pins, when they are holds.

mod common;
#[path = "common/results.rs"]
mod results;

use arrow_cache_core::cache::{Pin, StoreError};
use common::{Block, SEATS, described, fill, key};
use results::{KIB, present, small};
use std::collections::HashSet;

/// The steps of a reader, each of them one access of memory that others may interleave. The fences make this order the
/// one that all see.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Reader {
    /// Has met the record in its chain.
    Met,
    /// Has written its hold, or relies on having looked.
    Holds,
    /// Has found the record published under the key.
    Found,
    /// Has found no answer, or has read and let go.
    Done,
}

/// The steps of the process that retires the record and uses it again for another key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Writer {
    Begins,
    Retired,
    /// Has looked through this many seats.
    Looked(usize),
    /// Has freed what the record had.
    Freed,
    /// Has published it under the other key.
    Reused,
}

#[derive(Clone, Copy)]
struct Rules {
    hold_comes_first: bool,
    seats_are_asked: bool,
    retired_comes_first: bool,
    key_is_compared: bool,
}

const ALL: Rules =
    Rules { hold_comes_first: true, seats_are_asked: true, retired_comes_first: true, key_is_compared: true };

/// The record and the two seats.
#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    is_published: bool,
    is_first_key: bool,
    /// The bytes that belong to the first key are there.
    is_whole: bool,
    holds: [bool; 2],
    readers: [Reader; 2],
    writer: Writer,
}

const START: World = World {
    is_published: true,
    is_first_key: true,
    is_whole: true,
    holds: [false; 2],
    readers: [Reader::Met; 2],
    writer: Writer::Begins,
};

impl World {
    /// The next step of a reader; false if it reads what is not its answer.
    fn read(&mut self, who: usize, rules: Rules) -> bool {
        let is_answer = self.is_published && (self.is_first_key || !rules.key_is_compared);
        match self.readers[who] {
            Reader::Met if rules.hold_comes_first => {
                self.holds[who] = true;
                self.readers[who] = Reader::Holds;
            }
            Reader::Met => self.readers[who] = if is_answer { Reader::Holds } else { Reader::Done },
            Reader::Holds if !rules.hold_comes_first => {
                self.holds[who] = true;
                self.readers[who] = Reader::Found;
            }
            Reader::Holds => {
                self.holds[who] = is_answer;
                self.readers[who] = if is_answer { Reader::Found } else { Reader::Done };
            }
            Reader::Found => {
                self.holds[who] = false;
                self.readers[who] = Reader::Done;
                return self.is_whole && self.is_first_key;
            }
            Reader::Done => {}
        }
        true
    }

    fn write(&mut self, rules: Rules) {
        self.writer = match self.writer {
            Writer::Begins if rules.retired_comes_first => {
                self.is_published = false;
                Writer::Retired
            }
            Writer::Begins => Writer::Looked(0),
            Writer::Retired => Writer::Looked(if rules.seats_are_asked { 0 } else { 2 }),
            // A record that is held is left for later; all that was seen before is asked anew then.
            Writer::Looked(seat) if seat < 2 => Writer::Looked(if self.holds[seat] { 0 } else { seat + 1 }),
            Writer::Looked(_) => {
                (self.is_published, self.is_whole) = (false, false);
                Writer::Freed
            }
            Writer::Freed => {
                (self.is_first_key, self.is_published) = (false, true);
                Writer::Reused
            }
            Writer::Reused => Writer::Reused,
        };
    }
}

/// Goes through all interleavings; false if a reader may read what is not its answer. Also whether the record was
/// reused, and read, in some.
fn explore(rules: Rules) -> (bool, bool, bool) {
    let (mut seen, mut open) = (HashSet::from([START]), vec![START]);
    let (mut exact, mut reused, mut read) = (true, false, false);
    while let Some(world) = open.pop() {
        reused |= world.writer == Writer::Reused;
        read |= world.readers.contains(&Reader::Found);
        for step in 0..3 {
            let mut next = world.clone();
            match step {
                2 => next.write(rules),
                reader => exact &= next.read(reader, rules),
            }
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    (exact, reused, read)
}

#[test]
fn no_reader_reads_what_is_freed() {
    assert_eq!(explore(ALL), (true, true, true));
}

#[test]
fn each_rule_is_needed() {
    let broken = [
        ("hold before looking", Rules { hold_comes_first: false, ..ALL }),
        ("seats are asked", Rules { seats_are_asked: false, ..ALL }),
        ("retired before asking", Rules { retired_comes_first: false, ..ALL }),
        ("key is compared again", Rules { key_is_compared: false, ..ALL }),
    ];
    for (name, rules) in broken {
        assert!(!explore(rules).0, "{name}: not caught");
    }
}

#[test]
fn what_a_seat_holds_is_neither_evicted_nor_freed() {
    let block = Block::new(1, 64 * KIB);
    let (reader, other) = (block.seat(3), block.attach(0));
    small(&other, 1, 0);
    let pin = reader.lookup(key(1)).unwrap();
    assert!(matches!(other.reserve(5), Err(StoreError::NoRoom)), "the only record is held");
    assert!(other.retire(&pin));
    assert_eq!((other.reclaim(), block.live()), (0, 2));
    assert_eq!(reader.view(&pin).chunks().next(), Some(&[1; 100][..]));
    reader.unpin(pin);
    assert_eq!((other.reclaim(), block.live()), (1, 0));
}

#[test]
fn whoever_holds_more_than_a_seat_has_words_for_counts_at_the_entry() {
    const ENTRIES: u64 = 20;
    let block = Block::new(ENTRIES as u32, 64 * KIB);
    let (reader, other) = (block.seat(0), block.attach(1));
    (0..ENTRIES).for_each(|n| small(&other, n, 0));
    // Twice as many pins as entries, of a process without a seat as well.
    let unseated = block.seat(SEATS as usize);
    let pins: Vec<Pin> = (0..ENTRIES).map(|n| reader.lookup(key(n)).unwrap()).collect();
    let more: Vec<Pin> = (0..ENTRIES).map(|n| unseated.lookup(key(n)).unwrap()).collect();
    assert_eq!(other.retire_matching(|_| true), ENTRIES);
    assert_eq!(other.reclaim(), 0);
    more.into_iter().for_each(|pin| unseated.unpin(pin));
    assert_eq!(other.reclaim(), 0);
    for (n, pin) in pins.into_iter().enumerate() {
        reader.unpin(pin);
        assert_eq!((n, other.reclaim()), (n, 1));
    }
    assert_eq!(block.live(), 0);
}

#[test]
fn more_holds_than_are_listed_at_once_are_all_respected() {
    const ENTRIES: u64 = 120;
    let block = Block::new(ENTRIES as u32, 256 * KIB);
    let other = block.attach(0);
    (0..ENTRIES).for_each(|n| small(&other, n, 0));
    let readers: Vec<_> = (0..SEATS as usize).map(|number| block.seat(number)).collect();
    let held: Vec<_> = (0..ENTRIES)
        .map(|n| (n as usize % readers.len(), readers[n as usize % readers.len()].lookup(key(n)).unwrap()))
        .collect();
    assert!(matches!(other.reserve(5), Err(StoreError::NoRoom)), "all records are held");
    assert_eq!(other.retire_matching(|_| true), ENTRIES);
    assert_eq!(other.reclaim(), 0);
    held.into_iter().for_each(|(number, pin)| readers[number].unpin(pin));
    assert_eq!((other.reclaim(), block.live()), (ENTRIES as usize, 0));
}

#[test]
fn a_new_process_on_a_seat_holds_nothing() {
    let block = Block::new(1, 64 * KIB);
    let (before, other) = (block.seat(2), block.attach(0));
    small(&other, 1, 0);
    let pin = before.lookup(key(1)).unwrap();
    before.touch(&pin, 10);
    before.touch(&pin, 20);
    // The process ends without giving back what it holds.
    drop((before, pin));
    assert!(matches!(other.reserve(5), Err(StoreError::NoRoom)));
    let _after = block.seat(2);
    let made = other.reserve(5).unwrap();
    other.abandon(made);
}

#[test]
fn uses_are_added_at_once_or_gathered() {
    let block = Block::new(10, 64 * KIB);
    let (reader, other) = (block.seat(1), block.attach(0));
    let made = fill(&other, &[], 0).unwrap();
    let pin = other.publish(made, key(1), described(b"q", &[]), 0).unwrap();
    let seen = || (other.view(&pin).hits(), other.view(&pin).last_used());
    let touch = |now| {
        let pin = reader.lookup(key(1)).unwrap();
        reader.touch(&pin, now);
        reader.unpin(pin);
    };
    touch(1_000_000);
    assert_eq!(seen(), (1, 1_000_000), "the first use is added at once");
    touch(1_000_500);
    touch(1_001_000);
    assert_eq!(seen(), (1, 1_000_000));
    other.for_each(|entry| assert_eq!((entry.hits(), entry.last_used()), (3, 1_001_000)));
    touch(1_002_000);
    touch(1_200_000);
    assert_eq!(seen(), (5, 1_200_000), "what was gathered for long enough is added");
    touch(1_200_001);
    reader.gather_own_uses();
    assert_eq!(seen(), (6, 1_200_001));
    // A clock that goes back.
    touch(500);
    assert_eq!(seen(), (7, 1_200_001));
    other.unpin(pin);
}

#[test]
fn uses_of_an_entry_that_is_gone_are_not_those_of_the_next_in_its_record() {
    let block = Block::new(1, 64 * KIB);
    let (reader, other) = (block.seat(1), block.attach(0));
    small(&other, 1, 0);
    let pin = reader.lookup(key(1)).unwrap();
    (0..5).for_each(|now| reader.touch(&pin, now));
    assert!(reader.retire(&pin));
    reader.unpin(pin);
    assert!(!present(&reader, 1));
    small(&other, 2, 0);
    other.for_each(|entry| assert_eq!(entry.hits(), 0));
    let pin = reader.lookup(key(2)).unwrap();
    reader.touch(&pin, 7);
    reader.unpin(pin);
    other.for_each(|entry| assert_eq!(entry.hits(), 1));
}
