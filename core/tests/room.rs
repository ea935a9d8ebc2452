//! Making room among entries that cannot be freed: each call examines a few, and together they examine all.

mod common;

use arrow_cache_core::cache::{Pin, StoreError};
use common::{Block, TestStore, described, fill, key};

fn put(store: &TestStore<'_>, n: u64) -> Pin {
    let made = fill(store, &[], 0).unwrap();
    store.publish(made, key(n), described(b"q", &[]), 0).unwrap()
}

#[test]
fn garbage_behind_retired_entries_that_are_read_is_found_in_time() {
    const RETIRED: u64 = 100;
    let block = Block::new(200, 64 * 1024);
    let store = block.attach(0);
    let mut pins: Vec<Pin> = (0..RETIRED).map(|n| put(&store, n)).collect();
    for pin in &pins {
        assert!(store.retire(pin));
    }
    let all = block.live();
    store.unpin(pins.swap_remove(0));
    for _ in 0..RETIRED {
        let made = store.reserve(0).unwrap();
        store.abandon(made);
    }
    assert_eq!(block.live(), all - 1);
    pins.into_iter().for_each(|pin| store.unpin(pin));
    assert_eq!(store.reclaim() as u64, RETIRED - 1);
    assert_eq!(block.live(), 0);
}

#[test]
fn the_one_entry_that_can_be_evicted_is_found_in_time() {
    const ENTRIES: u64 = 5000;
    let block = Block::new(ENTRIES as u32, 1 << 20);
    let store = block.attach(0);
    let mut pins: Vec<Pin> = (0..ENTRIES).map(|n| put(&store, n)).collect();
    assert_eq!(store.reserve(0).map(|_| ()), Err(StoreError::NoRoom));
    let free = pins.swap_remove(ENTRIES as usize / 2);
    store.unpin(free);
    let attempts = (0..ENTRIES).take_while(|_| store.reserve(0).is_err()).count();
    assert!(attempts < 10, "{attempts} attempts found nothing");
    assert_eq!(u64::from(store.entries()), ENTRIES - 1);
    pins.into_iter().for_each(|pin| store.unpin(pin));
}

#[test]
fn entries_few_and_far_between_are_found() {
    const ENTRIES: u64 = 1000;
    let block = Block::new(ENTRIES as u32, 1 << 20);
    let store = block.attach(0);
    (0..ENTRIES).for_each(|n| store.unpin(put(&store, n)));
    let kept = |n: u64| n % 300 == 70;
    let mut n = 0;
    let retired = store.retire_matching(|_| {
        n += 1;
        !kept(n - 1)
    });
    assert_eq!(ENTRIES - retired, (0..ENTRIES).filter(|n| kept(*n)).count() as u64);
    let mut seen = 0;
    store.for_each(|_| seen += 1);
    assert_eq!(seen, ENTRIES - retired);
    let fills: Vec<_> = (0..ENTRIES).map(|_| store.reserve(0).unwrap()).collect();
    assert_eq!(store.entries(), 0);
    assert!(store.reserve(0).is_err());
    fills.into_iter().for_each(|fill| store.abandon(fill));
}
