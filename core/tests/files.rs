//! Answers that have to leave the arena move to files, and are found there.

mod common;
#[path = "common/results.rs"]
mod results;

use arrow_cache_core::cache::counters::Counter;
use arrow_cache_core::cache::memory::FileLimits;
use arrow_cache_core::cache::{Dependency, EntryView, Pin};
use common::{Block, SEATS, TestStore, described, key};
use proptest::prelude::*;
use results::{KIB, present, put, small};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

const LEAST: u64 = 32 * KIB as u64;

/// A block whose files may take so many kilobytes.
fn block(entries: u32, kib: usize, files_kib: usize) -> Block {
    let block = Block::new(entries, kib * KIB);
    block.files().limits = Some(FileLimits { least: LEAST, most: (files_kib * KIB) as u64 });
    block
}

/// The chunks of a large answer.
fn chunks(n: u64) -> Vec<Vec<u8>> {
    (0..2).map(|chunk| vec![n as u8 + chunk; 20 * KIB]).collect()
}

fn large(store: &TestStore<'_>, n: u64, now: i64) -> bool {
    let published = put(store, n, &chunks(n), described(&n.to_le_bytes(), &[]), now);
    published.map(|pin| store.unpin(pin)).is_ok()
}

/// What a reader gets of an entry, wherever it lies.
fn content(block: &Block, view: &EntryView<'_>) -> Vec<Vec<u8>> {
    match view.file() {
        Some(number) => {
            assert_eq!(view.chunks().count(), 0);
            block.files().written.get(&number).expect("the file is there while the entry is pinned").clone()
        }
        None => view.chunks().map(<[u8]>::to_vec).collect(),
    }
}

fn is_in_file(store: &TestStore<'_>, n: u64) -> bool {
    let pin = store.lookup(key(n)).expect("it is there");
    let is_in_file = store.view(&pin).file().is_some();
    store.unpin(pin);
    is_in_file
}

#[test]
fn a_large_answer_moves_to_a_file_and_is_found_there() {
    let block = block(20, 100, 1000);
    let store = block.seat(0);
    for n in 0..6 {
        assert!(large(&store, n, n as i64));
    }
    for n in 0..6 {
        let pin = store.lookup(key(n)).expect("none was lost");
        assert_eq!(content(&block, &store.view(&pin)), chunks(n));
        assert_eq!(store.view(&pin).chunk_count(), 2);
        store.unpin(pin);
        assert_eq!(is_in_file(&store, n), n < 4);
    }
    assert_eq!(store.counters().sum(Counter::FileMoves), 4);
    assert_eq!(store.counters().sum(Counter::Evictions), 0);
    let mut bytes = 0;
    store.for_each(|view| bytes += view.file_bytes());
    assert_eq!(store.file_bytes(), bytes);
    block.check();
    assert_eq!(store.retire_matching(|_| true), 6);
    assert!(block.files().written.is_empty() && store.file_bytes() == 0 && block.live() == 0);
}

#[test]
fn a_small_one_does_not() {
    let block = block(100, 60, 1000);
    let store = block.attach(0);
    for n in 0..20 {
        let pin = put(&store, n, &[vec![1; 8 * KIB]], described(b"q", &[]), 0).unwrap();
        store.unpin(pin);
    }
    assert!(block.files().written.is_empty() && store.counters().sum(Counter::Evictions) > 0);
}

#[test]
fn one_that_is_read_stays_where_it_is() {
    let block = block(20, 100, 1000);
    let store = block.seat(0);
    (0..2).for_each(|n| assert!(large(&store, n, 0)));
    let first = store.lookup(key(0)).unwrap();
    (2..5).for_each(|n| assert!(large(&store, n, 0)));
    assert!(store.view(&first).file().is_none());
    assert_eq!(content(&block, &store.view(&first)), chunks(0));
    store.unpin(first);
    assert!(is_in_file(&store, 1));
}

#[test]
fn a_full_disk_costs_the_answers_alone() {
    let block = block(20, 100, 1000);
    let store = block.attach(0);
    block.files().is_full = true;
    (0..5).for_each(|n| assert!(large(&store, n, n as i64)));
    assert_eq!(store.entries(), 2);
    assert_eq!(store.counters().sum(Counter::FileFailures), 3);
    assert_eq!((store.counters().sum(Counter::FileMoves), store.file_bytes()), (0, 0));
    block.files().is_full = false;
    (5..8).for_each(|n| assert!(large(&store, n, n as i64)));
    assert_eq!(store.entries(), 5);
}

#[test]
fn files_are_bounded_and_what_is_worth_least_goes() {
    // Three answers have room in files, two in memory.
    let block = block(20, 100, 125);
    let store = block.attach(0);
    for n in 0..5 {
        assert!(large(&store, n, 0));
    }
    for n in [0, 2] {
        let pin = store.lookup(key(n)).unwrap();
        store.touch(&pin, 10);
        store.unpin(pin);
    }
    assert!(large(&store, 5, 20) && large(&store, 6, 30));
    assert!(store.file_bytes() <= 125 * KIB as u64);
    assert!(present(&store, 0) && present(&store, 2), "they are used");
    assert_eq!(store.entries(), 5);
    assert_eq!(block.files().written.len(), 3);
}

#[test]
fn a_file_that_is_too_large_for_all_is_not_written() {
    let block = block(20, 100, 33);
    let store = block.attach(0);
    (0..4).for_each(|n| assert!(large(&store, n, 0)));
    assert!(block.files().written.is_empty());
    assert_eq!((store.entries(), store.counters().sum(Counter::FileFailures)), (2, 0));
}

#[test]
fn what_is_outdated_goes_wherever_it_lies() {
    let block = block(20, 100, 1000);
    let store = block.attach(0);
    let slot = store.versions().relation(1, 7);
    let on = [Dependency { slot, relation: 7, version: 0 }];
    let pin = put(&store, 1, &chunks(1), described(b"q", &on), 0).unwrap();
    store.unpin(pin);
    (2..4).for_each(|n| assert!(large(&store, n, 1)));
    assert!(is_in_file(&store, 1));
    let reader = store.lookup(key(1)).unwrap();
    store.versions().slot(slot).bump(2);
    assert!(!store.is_current(&reader) && store.retire(&reader));
    assert_eq!(content(&block, &store.view(&reader)), chunks(1), "the file stays as long as it is read");
    store.reclaim();
    assert_eq!(block.files().written.len(), 1);
    store.unpin(reader);
    store.reclaim();
    assert!(block.files().written.is_empty());
}

#[test]
fn another_answer_takes_the_place_of_one_in_a_file() {
    let block = block(20, 100, 1000);
    let store = block.attach(0);
    (0..3).for_each(|n| assert!(large(&store, n, n as i64)));
    assert!(is_in_file(&store, 0));
    small(&store, 0, 9);
    assert!(!is_in_file(&store, 0));
    store.reclaim();
    assert!(block.files().written.keys().all(|number| *number as u32 != 0));
}

#[derive(Clone, Debug)]
enum Step {
    Fill { n: u64, chunks: Vec<usize>, slot: u32 },
    Lookup { n: u64, keep: bool },
    Unpin { which: usize },
    Retire { which: usize },
    Change { slot: u32 },
    Full { is_full: bool },
    Flush,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        10 => (0..8u64, prop::collection::vec(0..30_000usize, 0..4), 0..3u32)
            .prop_map(|(n, chunks, slot)| Step::Fill { n, chunks, slot }),
        4 => (0..8u64, any::<bool>()).prop_map(|(n, keep)| Step::Lookup { n, keep }),
        4 => any::<prop::sample::Index>().prop_map(|which| Step::Unpin { which: which.index(1000) }),
        1 => any::<prop::sample::Index>().prop_map(|which| Step::Retire { which: which.index(1000) }),
        1 => (0..3u32).prop_map(|slot| Step::Change { slot }),
        1 => any::<bool>().prop_map(|is_full| Step::Full { is_full }),
        1 => Just(Step::Flush),
    ];
    prop::collection::vec(step, 1..if cfg!(miri) { 20 } else { 100 })
}

type Chunks = Vec<Vec<u8>>;

struct Run<'a> {
    block: &'a Block,
    store: TestStore<'a>,
    /// What was published last under each key, and not retired.
    model: HashMap<u64, Chunks>,
    held: Vec<(Pin, u64, Chunks)>,
    serial: u64,
}

impl Run<'_> {
    fn step(&mut self, step: &Step) {
        self.serial += 1;
        let (store, now) = (self.store, self.serial as i64 * 1000);
        match step {
            Step::Fill { n, chunks, slot } => {
                let chunks: Chunks = chunks.iter().map(|len| vec![self.serial as u8; *len]).collect();
                let relation = store.versions().relation(1, *slot);
                let version = store.versions().version(relation);
                let on = [Dependency { slot: relation, relation: *slot, version }];
                if let Ok(pin) = put(&store, *n, &chunks, described(&n.to_le_bytes(), &on), now) {
                    self.model.insert(*n, chunks.clone());
                    self.held.push((pin, *n, chunks));
                    if self.serial.is_multiple_of(4) {
                        return;
                    }
                    self.unpin(self.held.len() - 1);
                }
            }
            Step::Lookup { n, keep } => {
                if let Some(pin) = store.lookup(key(*n)) {
                    let expected = self.model.get(n).expect("nobody has published it").clone();
                    self.held.push((pin, *n, expected));
                    if !keep {
                        self.unpin(self.held.len() - 1);
                    }
                }
            }
            Step::Unpin { which } if !self.held.is_empty() => self.unpin(which % self.held.len()),
            Step::Retire { which } if !self.held.is_empty() => {
                let (pin, n, content) = &self.held[which % self.held.len()];
                if store.retire(pin) {
                    assert_eq!(self.model.remove(n).as_ref(), Some(content));
                }
            }
            Step::Unpin { .. } | Step::Retire { .. } => {}
            Step::Change { slot } => {
                store.versions().slot(store.versions().relation(1, *slot)).bump(now);
            }
            Step::Full { is_full } => self.block.files().is_full = *is_full,
            Step::Flush => {
                store.retire_matching(|_| true);
                self.model.clear();
            }
        }
    }

    fn unpin(&mut self, which: usize) {
        let (pin, _, expected) = self.held.swap_remove(which);
        assert_eq!(content(self.block, &self.store.view(&pin)), expected);
        self.store.unpin(pin);
    }

    fn check(&self) {
        let mut bytes = 0;
        for (pin, _, expected) in &self.held {
            assert_eq!(&content(self.block, &self.store.view(pin)), expected);
        }
        self.store.for_each(|view| {
            bytes += view.file_bytes();
            let n = u64::from_le_bytes(view.text().try_into().unwrap());
            assert_eq!(self.model.get(&n), Some(&content(self.block, view)));
        });
        let limits = self.block.files().limits.unwrap();
        assert!(bytes <= self.store.file_bytes() && self.store.file_bytes() <= limits.most);
        self.block.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 300 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_found_is_what_was_stored(steps in steps(), entries in 2..9u32, files in 0..300usize) {
        let block = block(entries, 120, files);
        let store = if files.is_multiple_of(2) { block.seat(0) } else { block.attach(0) };
        let mut run = Run { block: &block, store, model: HashMap::new(), held: Vec::new(), serial: 0 };
        for step in &steps {
            run.step(step);
            run.check();
        }
        while !run.held.is_empty() {
            run.unpin(0);
        }
        store.retire_matching(|_| true);
        prop_assert!(block.files().written.is_empty());
        prop_assert_eq!((store.file_bytes(), block.live()), (0, 0));
    }
}

#[test]
fn readers_beside_those_who_move() {
    const KEYS: u64 = 6;
    let rounds = if cfg!(miri) { 20 } else { 3000 };
    let block = block(12, 130, 150);
    let (has_ended, found_in_files) = (AtomicBool::new(false), AtomicU64::new(0));
    let whole = |block: &Block, view: &EntryView<'_>| {
        let n = u64::from_le_bytes(view.text().try_into().unwrap());
        assert!(content(block, view) == chunks(n), "{n}");
        found_in_files.fetch_add(u64::from(view.file().is_some()), Relaxed);
    };
    std::thread::scope(|scope| {
        for number in 0..2 {
            let (block, has_ended) = (&block, &has_ended);
            scope.spawn(move || {
                let store = block.seat(number);
                for round in 0..rounds {
                    let n = (round * 7 + number as u64 * 3) % KEYS;
                    match store.lookup(key(n)) {
                        Some(pin) => store.unpin(pin),
                        None => drop(large(&store, n, round as i64)),
                    }
                    if round % 5 == 0 {
                        large(&store, (n + 1) % KEYS, round as i64);
                    }
                }
                has_ended.store(true, Relaxed);
            });
        }
        for number in 2..4 {
            let (block, has_ended, whole) = (&block, &has_ended, &whole);
            scope.spawn(move || {
                // One has a seat, the other counts its pins at the entries.
                let store = if number == 2 { block.seat(number) } else { block.attach(SEATS as usize + 1) };
                let mut n = 0;
                while !has_ended.load(Relaxed) {
                    n = (n + 1) % KEYS;
                    if let Some(pin) = store.lookup(key(n)) {
                        whole(block, &store.view(&pin));
                        std::thread::yield_now();
                        whole(block, &store.view(&pin));
                        store.unpin(pin);
                    }
                }
            });
        }
    });
    let store = block.attach(0);
    assert!(store.counters().sum(Counter::FileMoves) > 0 && (found_in_files.load(Relaxed) > 0 || cfg!(miri)));
    store.retire_matching(|_| true);
    store.reclaim();
    assert!(block.files().written.is_empty() && store.file_bytes() == 0);
}
