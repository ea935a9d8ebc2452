//! Random operations on the store against a plain map.

mod common;

use arrow_cache_core::cache::counters::Counter;
use arrow_cache_core::cache::{Dependency, EntryKind, Fill, NewKind, Pin};
use arrow_cache_core::versions::slots::SlotId;
use common::{Block, SEATS, TestStore, described, key};
use proptest::prelude::*;
use std::collections::HashMap;

#[derive(Clone, Debug)]
enum Step {
    Lookup { n: u64, keep: bool },
    Fill { n: u64, chunks: Vec<usize>, lives: i64, slot: u32, is_part: bool, ending: Ending },
    Unpin { which: usize },
    Retire { which: usize },
    Change { slot: u32 },
    Flush { odd: bool },
    Reclaim,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    Publish,
    PublishAndKeep,
    Abandon,
    AbandonUnlocked,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ending = prop::sample::select(vec![
        Ending::Publish,
        Ending::Publish,
        Ending::PublishAndKeep,
        Ending::Abandon,
        Ending::AbandonUnlocked,
    ]);
    let filling = (0..12u64, prop::collection::vec(0..3000usize, 0..4), 1..40i64, 0..3u32, any::<bool>(), ending);
    let step = prop_oneof![
        4 => (0..12u64, any::<bool>()).prop_map(|(n, keep)| Step::Lookup { n, keep }),
        8 => filling.prop_map(|(n, chunks, lives, slot, is_part, ending)| {
            Step::Fill { n, chunks, lives, slot, is_part, ending }
        }),
        4 => any::<prop::sample::Index>().prop_map(|which| Step::Unpin { which: which.index(1000) }),
        1 => any::<prop::sample::Index>().prop_map(|which| Step::Retire { which: which.index(1000) }),
        1 => (0..3u32).prop_map(|slot| Step::Change { slot }),
        1 => any::<bool>().prop_map(|odd| Step::Flush { odd }),
        1 => Just(Step::Reclaim),
    ];
    prop::collection::vec(step, 1..if cfg!(miri) { 25 } else { 120 })
}

#[derive(Clone, PartialEq, Debug)]
struct Content {
    serial: u64,
    chunks: Vec<Vec<u8>>,
    current: bool,
    slot: u32,
    is_part: bool,
}

struct Run<'a> {
    block: &'a Block,
    store: TestStore<'a>,
    /// What should be published, apart from evictions.
    model: HashMap<u64, Content>,
    held: Vec<(Pin, Content)>,
    now: i64,
    serial: u64,
    /// Evictions and expirations accounted for.
    removed: u64,
}

impl Run<'_> {
    fn check_held(&self) {
        for (pin, content) in &self.held {
            let view = self.store.view(pin);
            assert_eq!(view.text(), content.serial.to_le_bytes());
            assert_eq!(view.kind() == EntryKind::Fragment, content.is_part);
            assert!(view.chunks().eq(content.chunks.iter().map(Vec::as_slice)));
            assert_eq!(self.store.is_current(pin), content.current);
        }
    }

    /// Compares what is published with the model. Entries that only the model has must have been evicted, and are
    /// forgotten.
    fn check_published(&mut self) {
        let mut published = HashMap::new();
        let mut in_parts = 0;
        self.store.for_each(|view| {
            in_parts += if view.kind() == EntryKind::Fragment { view.bytes() } else { 0 };
            let serial = u64::from_le_bytes(view.text().try_into().unwrap());
            let chunks: Vec<Vec<u8>> = view.chunks().map(<[u8]>::to_vec).collect();
            assert!(published.insert(serial, chunks).is_none(), "published twice");
        });
        assert_eq!(self.store.fragment_bytes(), in_parts);
        assert!(in_parts <= SHARE);
        let before = self.model.len() as u64;
        self.model
            .retain(|_, content| published.remove(&content.serial).is_some_and(|chunks| chunks == content.chunks));
        assert!(published.is_empty(), "published, but replaced or retired");
        assert_eq!(self.store.entries() as usize, self.model.len());
        let removed = self.removals();
        assert_eq!(before - self.model.len() as u64, removed - self.removed);
        self.removed = removed;
    }

    fn removals(&self) -> u64 {
        let counters = self.store.counters();
        counters.sum(Counter::Evictions) + counters.sum(Counter::Expirations)
    }

    fn filled(&mut self, chunks: &[Vec<u8>]) -> Option<Fill> {
        common::fill(&self.store, chunks, self.now).ok()
    }

    fn step(&mut self, step: &Step) {
        self.now += STEP;
        match step {
            Step::Lookup { n, keep } => {
                let found = self.store.lookup(key(*n));
                assert_eq!(found.is_some(), self.model.contains_key(n));
                if let Some(pin) = found {
                    self.store.touch(&pin, self.now);
                    self.held.push((pin, self.model[n].clone()));
                    self.check_held();
                    if !keep {
                        let (pin, _) = self.held.pop().unwrap();
                        self.store.unpin(pin);
                    }
                }
            }
            Step::Fill { n, chunks, lives, slot, is_part, ending } => {
                self.fill(*n, chunks, *lives, *slot, *is_part, *ending);
            }
            Step::Unpin { which } => {
                if !self.held.is_empty() {
                    let (pin, _) = self.held.swap_remove(which % self.held.len());
                    self.store.unpin(pin);
                }
            }
            Step::Retire { which } => {
                if !self.held.is_empty() {
                    let (pin, content) = &self.held[which % self.held.len()];
                    let published = self.model.values().any(|other| other.serial == content.serial);
                    assert_eq!(self.store.retire(pin), published);
                    self.model.retain(|_, other| other.serial != content.serial);
                }
            }
            Step::Change { slot } => {
                self.store.versions().slot(SlotId(*slot)).bump(self.now);
                let held = self.held.iter_mut().map(|(_, content)| content);
                for content in self.model.values_mut().chain(held).filter(|content| content.slot == *slot) {
                    content.current = false;
                }
            }
            Step::Flush { odd } => {
                let wanted = |serial: u64| serial.is_multiple_of(2) != *odd;
                let expected = self.model.values().filter(|content| wanted(content.serial)).count();
                let retired =
                    self.store.retire_matching(|view| wanted(u64::from_le_bytes(view.text().try_into().unwrap())));
                assert_eq!(retired as usize, expected);
                self.model.retain(|_, content| !wanted(content.serial));
            }
            Step::Reclaim => {
                self.store.reclaim();
                assert_eq!(self.store.reclaim(), 0);
            }
        }
        self.check_published();
        self.check_held();
        if (self.now / STEP) % 16 == 0 {
            self.block.check();
        }
        let arena = self.store.bytes_used() - self.block.layout.bookkeeping_bytes();
        assert!(arena <= CAPACITY);
    }

    fn fill(&mut self, n: u64, lens: &[usize], lives: i64, slot: u32, is_part: bool, ending: Ending) {
        self.serial += 1;
        let chunks: Vec<Vec<u8>> = lens.iter().map(|&len| vec![self.serial as u8; len]).collect();
        let Some(fill) = self.filled(&chunks) else {
            return;
        };
        match ending {
            Ending::Abandon => self.store.abandon(fill),
            Ending::AbandonUnlocked => self.store.abandon_unlocked(&fill),
            Ending::Publish | Ending::PublishAndKeep => {
                let version = self.store.versions().slot(SlotId(slot)).version();
                let on = [Dependency { slot: SlotId(slot), relation: slot, version }];
                let text = self.serial.to_le_bytes();
                let mut new = described(&text, &on);
                if is_part {
                    new.kind = NewKind::Fragment { most_bytes: SHARE };
                }
                new.expires_at = self.now + lives * STEP;
                let published = self.store.publish(fill, key(n), new, self.now);
                if let Ok(pin) = published {
                    if self.model.remove(&n).is_some() {
                        // The old entry of this key was replaced, or evicted to make room for the new description. The
                        // counters decide.
                        let mut others = 0;
                        self.store.for_each(|view| others += u64::from(view.text() != text));
                        let evicted_others = self.model.len() as u64 - others;
                        let evicted_old = self.removals() - self.removed - evicted_others;
                        assert!(evicted_old <= 1);
                        self.removed += evicted_old;
                    }
                    let content = Content { serial: self.serial, chunks, current: true, slot, is_part };
                    self.model.insert(n, content.clone());
                    if ending == Ending::PublishAndKeep {
                        self.held.push((pin, content));
                    } else {
                        self.store.unpin(pin);
                    }
                }
            }
        }
    }

    fn finish(mut self) {
        for (pin, _) in self.held.drain(..) {
            self.store.unpin(pin);
        }
        self.block.check_alone(SEATS as usize - 1);
        assert_eq!(self.store.retire_matching(|_| true) as usize, self.model.len());
        assert_eq!((self.store.entries(), self.store.fragment_bytes()), (0, 0));
        assert_eq!(self.store.bytes_used(), self.block.layout.bookkeeping_bytes());
        assert_eq!(self.block.live(), 0);
    }
}

const CAPACITY: usize = 24 * 1024;
/// Most bytes of fragments.
const SHARE: u64 = 8 * 1024;
/// Microseconds that pass between two steps: fragments are spared for others after some of them.
const STEP: i64 = 10_000_000;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 300 },
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_store_is_a_map_that_forgets(steps in steps(), max_entries in 1..10u32) {
        let block = Block::new(max_entries, CAPACITY);
        let mut run = Run { block: &block, store: if max_entries % 2 == 0 { block.seat(0) } else { block.attach(0) }, model: HashMap::new(), held: Vec::new(), now: 0, serial: 0, removed: 0 };
        for step in &steps {
            run.step(step);
        }
        run.finish();
    }
}
