//! Which results go when there is no room, and which stay.

mod common;
#[path = "common/results.rs"]
mod results;

use arrow_cache_core::cache::counters::Counter;
use arrow_cache_core::cache::{Dependency, Pin, StoreError};
use common::{Block, TestStore, described, fill, key};
use results::{KIB, present, put, small};

/// A hit.
fn touch(store: &TestStore<'_>, n: u64, now: i64) {
    let pin = store.lookup(key(n)).unwrap();
    store.touch(&pin, now);
    store.unpin(pin);
}

/// A result of `kib` kilobytes that took so many microseconds, and competes for its room.
fn compete(store: &TestStore<'_>, n: u64, kib: usize, micros: u64, now: i64) -> Result<(), StoreError> {
    let mut made = store.reserve(now)?;
    made.compete();
    made.note_time(micros);
    if let Err(error) = store.append(&mut made, kib * KIB, now).map(|data| data.fill(1)) {
        store.abandon(made);
        return Err(error);
    }
    let mut new = described(b"q", &[]);
    new.execution_micros = micros;
    store.publish(made, key(n), new, now).map(|pin| store.unpin(pin))
}

#[test]
fn what_saves_least_for_its_size_goes_first() {
    let block = Block::new(20, 40 * KIB);
    let store = block.attach(0);
    for (n, kib, micros) in [(1, 8, 1_000), (2, 8, 50_000), (3, 16, 50_000)] {
        compete(&store, n, kib, micros, 0).unwrap();
        touch(&store, n, 10);
    }
    compete(&store, 4, 8, 10_000, 20).unwrap();
    assert!(!present(&store, 1) && present(&store, 2) && present(&store, 3));
    touch(&store, 4, 30);
    compete(&store, 5, 8, 60_000, 40).unwrap();
    assert!(!present(&store, 4) && present(&store, 2) && present(&store, 3), "a fifth of the time, half the bytes");
}

#[test]
fn what_is_worth_more_stays_if_it_was_used() {
    let block = Block::new(20, 40 * KIB);
    let store = block.attach(0);
    for n in 1..=4 {
        compete(&store, n, 8, 100_000, 0).unwrap();
    }
    (1..=3).for_each(|n| touch(&store, n, 10));
    compete(&store, 5, 8, 1_000, 20).unwrap();
    assert!(!present(&store, 4), "nobody knows whether it would have been used");
    touch(&store, 5, 20);
    assert_eq!(compete(&store, 6, 16, 1_000, 30), Err(StoreError::Outweighed));
    assert!((1..=3).all(|n| present(&store, n)));
    assert_eq!(block.live(), 2 * store.entries() as usize, "what was stored of it is free again");
    // The same is stored if it does not compete.
    let pin = put(&store, 7, &[vec![1; 16 * KIB]], described(b"q", &[]), 40).unwrap();
    store.unpin(pin);
    assert!(present(&store, 7));
}

#[test]
fn of_several_that_are_worth_the_same_the_least_recently_used_goes_first() {
    // As many as one step of the eviction examines: then it is exact.
    const ALL: u64 = if cfg!(miri) { 6 } else { 32 };
    let block = Block::new(ALL as u32, 640 * KIB);
    let store = block.attach(3);
    for n in 0..ALL {
        small(&store, n, n as i64);
    }
    for n in (0..ALL).filter(|n| n % 3 == 0) {
        touch(&store, n, 1000 + n as i64);
    }
    let mut order: Vec<u64> = (0..ALL).filter(|n| n % 3 != 0).chain((0..ALL).filter(|n| n % 3 == 0)).collect();
    for n in 100..100 + ALL {
        let victim = order.remove(0);
        assert!(present(&store, victim));
        small(&store, n, 2000 + n as i64);
        touch(&store, n, 2000 + n as i64);
        assert!(!present(&store, victim), "{victim}");
        assert!(order.iter().all(|&n| present(&store, n)));
        assert_eq!(u64::from(store.entries()), ALL);
    }
    assert_eq!(store.counters().sum(Counter::Evictions), ALL);
    assert_eq!(store.counters().sum(Counter::Expirations), 0);
}

#[test]
fn useless_entries_go_before_the_others() {
    let block = Block::new(4, 64 * KIB);
    let store = block.attach(0);
    let slot = store.versions().relation(1, 7);
    let on = [Dependency { slot, relation: 7, version: 0 }];
    small(&store, 1, 0);
    let expired = {
        let mut new = described(b"q", &[]);
        new.expires_at = 50;
        new
    };
    for (n, new) in [(2, described(b"q", &on)), (3, expired), (4, described(b"q", &[]))] {
        let pin = put(&store, n, &[], new, 10).unwrap();
        store.unpin(pin);
    }
    small(&store, 5, 20);
    assert!(!present(&store, 1), "nothing is useless yet, the oldest goes");
    store.versions().slot(slot).bump(30);
    small(&store, 6, 60);
    assert!(!present(&store, 2) && !present(&store, 3) && present(&store, 4) && present(&store, 5));
    assert_eq!(store.counters().sum(Counter::Evictions), 2);
    assert_eq!(store.counters().sum(Counter::Expirations), 1);
}

#[test]
fn an_outdated_entry_that_somebody_takes_competes_by_its_worth() {
    let block = Block::new(4, 64 * KIB);
    let store = block.attach(0);
    let slot = store.versions().relation(1, 7);
    let on = [Dependency { slot, relation: 7, version: 0 }];
    for (n, keeps_outdated) in [(1, true), (2, false)] {
        let mut new = described(b"q", &on);
        new.keeps_outdated = keeps_outdated;
        let pin = put(&store, n, &[], new, 10).unwrap();
        store.unpin(pin);
        touch(&store, n, 11);
    }
    small(&store, 3, 20);
    store.versions().slot(slot).bump(30);
    for n in 4..7 {
        touch(&store, 1, 20 + n as i64);
        small(&store, n, 20 + n as i64);
    }
    assert!(!present(&store, 2), "nobody takes it");
    assert!(present(&store, 1), "it is used");
    store.versions().slot(store.versions().catalogs(1)).bump(40);
    small(&store, 7, 50);
    assert!(!present(&store, 1), "nobody takes it after a change of definitions");
}

#[test]
fn pinned_entries_are_not_evicted() {
    let block = Block::new(3, 64 * KIB);
    let store = block.attach(0);
    small(&store, 1, 0);
    let held = store.lookup(key(1)).unwrap();
    for n in 2..20 {
        small(&store, n, n as i64);
        assert!(present(&store, 1));
        assert!(store.entries() <= 3);
    }
    let others: Vec<Pin> = [18, 19].map(|n| store.lookup(key(n)).unwrap()).into();
    assert_eq!(fill(&store, &[], 0).map(|_| ()), Err(StoreError::NoRoom));
    for pin in others {
        store.unpin(pin);
    }
    store.abandon(fill(&store, &[], 0).unwrap());
    store.unpin(held);
}
