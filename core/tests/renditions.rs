//! Renditions: who reads one, when it is freed, what becomes of one that is given up.

mod common;
#[path = "common/results.rs"]
mod results;

use arrow_cache_core::cache::{Dependency, Draft, Pin, StoreError};
use arrow_cache_core::hash::Hash128;
use common::{Block, TestStore, described, fill, key};
use results::{KIB, present, put, small};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

fn kind(n: u64) -> Hash128 {
    Hash128 { hi: n, lo: !n }
}

/// Makes a rendition of these blocks. False if there was none to make, or no room.
fn render(store: &TestStore<'_>, pin: &Pin, n: u64, blocks: &[Vec<u8>]) -> bool {
    let Some(draft) = store.begin_rendition(pin, kind(n)) else { return false };
    if blocks.iter().all(|block| store.append_block(&draft, &[block])) {
        store.publish_rendition(draft);
        return true;
    }
    store.refuse_rendition(draft);
    false
}

fn read(store: &TestStore<'_>, pin: &Pin, n: u64) -> Option<Vec<Vec<u8>>> {
    let (mut blocks, mut next) = (Vec::new(), Some(store.rendition(pin, kind(n))?));
    while let Some(place) = next {
        let (block, after) = store.block(pin, place);
        blocks.push(block.to_vec());
        next = after;
    }
    Some(blocks)
}

fn stored<'b>(block: &'b Block, n: u64) -> (TestStore<'b>, Pin) {
    let store = block.seat(1);
    small(&store, n, 0);
    let pin = store.lookup(key(n)).unwrap();
    (store, pin)
}

#[test]
fn a_rendition_is_found_by_its_key_when_it_is_ready() {
    let block = Block::new(4, 64 * KIB);
    let (store, pin) = stored(&block, 1);
    assert!(store.view(&pin).rendition_bytes() == 0 && read(&store, &pin, 1).is_none());
    let draft: Draft = store.begin_rendition(&pin, kind(1)).unwrap();
    assert!(store.append_block(&draft, &[b"one"]) && store.append_block(&draft, &[b"t", b"", b"wo"]));
    assert!(store.view(&pin).rendition_bytes() > 0 && read(&store, &pin, 1).is_none(), "not ready yet");
    assert!(store.begin_rendition(&pin, kind(1)).is_none(), "another is being made");
    store.publish_rendition(draft);
    assert_eq!(read(&store, &pin, 1), Some(vec![b"one".to_vec(), b"two".to_vec()]));
    assert!(read(&store, &pin, 2).is_none());
    assert!(render(&store, &pin, 2, &[vec![2; 100]]) && render(&store, &pin, 3, &[]));
    assert_eq!(
        (read(&store, &pin, 2), read(&store, &pin, 3)),
        (Some(vec![vec![2; 100]]), None),
        "one without blocks is none"
    );
    assert!(!render(&store, &pin, 4, &[]), "too many");
    store.unpin(pin);
    assert_eq!(store.retire_matching(|_| true), 1);
    assert_eq!((block.live(), store.bytes_used()), (0, block.layout.bookkeeping_bytes()));
}

#[test]
fn what_is_given_up_is_made_anew() {
    let block = Block::new(4, 64 * KIB);
    let (store, pin) = stored(&block, 1);
    let live = block.live();
    for n in 0..10 {
        let draft = store.begin_rendition(&pin, kind(n)).unwrap();
        assert!(store.append_block(&draft, &[&[n as u8; 500]]));
        store.give_up_rendition(draft);
        assert_eq!(block.live(), live + 2, "the head and the block");
        assert!(read(&store, &pin, n).is_none());
    }
    assert!(render(&store, &pin, 3, &[vec![7; 10]]));
    assert_eq!(read(&store, &pin, 3), Some(vec![vec![7; 10]]));
    let mut bytes = 0;
    store.for_each(|entry| bytes = entry.rendition_bytes());
    assert!((10..500).contains(&bytes), "{bytes}");
    store.unpin(pin);
}

#[test]
fn renditions_go_before_entries_when_memory_is_needed() {
    let block = Block::new(20, 12 * KIB);
    let (store, pin) = stored(&block, 1);
    assert!(render(&store, &pin, 1, &vec![vec![1; 500]; 8]));
    store.unpin(pin);
    put(&store, 2, &[vec![0; 9 * KIB]], described(b"q", &[]), 10).map(|pin| store.unpin(pin)).unwrap();
    assert!(present(&store, 1) && present(&store, 2));
    let pin = store.lookup(key(1)).unwrap();
    assert!(store.view(&pin).rendition_bytes() == 0);
    store.unpin(pin);
}

#[test]
fn what_somebody_reads_is_not_dropped() {
    for counted in [false, true] {
        let block = Block::new(20, 12 * KIB);
        let (store, pin) = stored(&block, 1);
        assert!(render(&store, &pin, 1, &vec![vec![1; 500]; 8]));
        store.unpin(pin);
        let reader = if counted { block.attach(5) } else { block.seat(5) };
        let pin = reader.lookup(key(1)).unwrap();
        let large = put(&store, 2, &[vec![0; 9 * KIB]], described(b"q", &[]), 10);
        assert_eq!(large, Err(StoreError::NoRoom));
        assert_eq!(read(&reader, &pin, 1), Some(vec![vec![1; 500]; 8]));
        reader.unpin(pin);
    }
}

#[test]
fn a_record_is_not_made_free_by_its_renditions() {
    let block = Block::new(1, 64 * KIB);
    let (store, pin) = stored(&block, 1);
    assert!(render(&store, &pin, 1, &[vec![1; 500]]));
    store.unpin(pin);
    small(&store, 2, 10);
    assert!(!present(&store, 1) && present(&store, 2));
}

#[test]
fn nothing_is_evicted_for_a_rendition() {
    let block = Block::new(20, 12 * KIB);
    let (store, pin) = stored(&block, 1);
    small(&store, 2, 0);
    assert!(!render(&store, &pin, 1, &[vec![1; 4 * KIB], vec![2; 4 * KIB], vec![3; 4 * KIB]]));
    assert!(present(&store, 2));
    assert_eq!(block.live(), 5, "two entries, and the head of the refused one");
    assert!(store.begin_rendition(&pin, kind(1)).is_none(), "nobody tries again");
    assert!(store.view(&pin).rendition_bytes() > 0 && read(&store, &pin, 1).is_none());
    store.unpin(pin);
    store.retire_matching(|_| true);
    assert_eq!(block.live(), 0);
}

/// Threads make, read and lose renditions while entries come and go.
#[test]
fn readers_see_whole_renditions() {
    const ROUNDS: u64 = if cfg!(miri) { 20 } else { 20_000 };
    let block = Block::new(6, 10 * KIB);
    let over = AtomicBool::new(false);
    let byte = |n: u64, kind: u64| vec![(n * 16 + kind) as u8; 300];
    std::thread::scope(|scope| {
        for number in 0..3 {
            let (block, over) = (&block, &over);
            scope.spawn(move || {
                let store = if number == 2 { block.attach(9) } else { block.seat(number) };
                let (mut found, mut round) = (0, 0);
                while !over.load(Relaxed) || round == 0 {
                    round += 1;
                    let (n, kind) = (round % 5, round % 3);
                    let Some(pin) = store.lookup(key(n)) else { continue };
                    if let Some(blocks) = read(&store, &pin, kind) {
                        found += 1;
                        assert_eq!(blocks, vec![byte(n, kind); 3]);
                    } else if round % 7 == 0 {
                        if let Some(draft) = store.begin_rendition(&pin, kind_given_up(kind)) {
                            let _ = store.append_block(&draft, &[&[0; 300]]);
                            store.give_up_rendition(draft);
                        }
                    } else {
                        render(&store, &pin, kind, &vec![byte(n, kind); 3]);
                    }
                    store.unpin(pin);
                }
                assert!(found > 0 || cfg!(miri));
            });
        }
        let store = block.seat(8);
        for round in 0..ROUNDS {
            let Ok(made) = fill(&store, &[vec![0; 1500]], round as i64) else { continue };
            if let Ok(pin) = store.publish(made, key(round % 5), described(b"q", &[]), round as i64) {
                store.unpin(pin);
            }
        }
        over.store(true, Relaxed);
    });
    let store = block.attach(0);
    store.retire_matching(|_| true);
    assert_eq!((block.live(), store.bytes_used()), (0, block.layout.bookkeeping_bytes()));
}

fn kind_given_up(n: u64) -> Hash128 {
    kind(n + 100)
}

#[test]
fn an_outdated_entry_gets_no_rendition() {
    let block = Block::new(4, 64 * KIB);
    let store = block.seat(1);
    let slot = store.versions().relation(1, 7);
    let on = [Dependency { slot, relation: 7, version: store.versions().slot(slot).version() }];
    let pin = put(&store, 1, &[vec![1; 100]], described(b"q", &on), 0).unwrap();
    assert!(render(&store, &pin, 1, &[vec![1; 10]]));
    let draft = store.begin_rendition(&pin, kind(2)).unwrap();
    assert!(store.append_block(&draft, &[b"before, and after"]));
    store.versions().slot(slot).bump(1);
    store.publish_rendition(draft);
    assert!(read(&store, &pin, 2).is_none(), "it may tell of the change");
    assert!(read(&store, &pin, 1).is_some(), "it was ready before");
    assert!(!render(&store, &pin, 3, &[vec![3; 10]]));
    store.unpin(pin);
}
