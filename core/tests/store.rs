//! The store, one rule at a time, in one process.

mod common;

use arrow_cache_core::cache::counters::Counter;
use arrow_cache_core::cache::versions::SnapshotView;
use arrow_cache_core::cache::{CHUNK_OVERHEAD, Dependency, NewEntry, Pin, StoreError, Validity};
use common::{Block, TestStore, described, fill, key};

const KIB: usize = 1024;

/// Fills and publishes.
fn put(store: &TestStore<'_>, n: u64, chunks: &[Vec<u8>], new: NewEntry<'_>, now: i64) -> Result<Pin, StoreError> {
    store.publish(fill(store, chunks, now)?, key(n), new, now)
}

fn small(store: &TestStore<'_>, n: u64, now: i64) {
    let pin = put(store, n, &[vec![n as u8; 100]], described(b"q", &[]), now).unwrap();
    store.unpin(pin);
}

fn present(store: &TestStore<'_>, n: u64) -> bool {
    store.lookup(key(n)).map(|pin| store.unpin(pin)).is_some()
}

fn is_empty(block: &Block, store: &TestStore<'_>) -> bool {
    store.entries() == 0 && store.bytes_used() == block.layout.bookkeeping_bytes() && block.live() == 0
}

#[test]
fn what_was_published_is_found_and_read() {
    let block = Block::new(10, 64 * KIB);
    let store = block.attach(0);
    let versions = store.versions();
    let dependencies = [
        Dependency { slot: versions.relation(1, 42), relation: 42, version: 0 },
        Dependency { slot: versions.ddl(1), relation: 0, version: 0 },
    ];
    let chunks = [vec![1; 100], vec![], vec![2; 1000]];
    let mut new = described(b"select 1", &dependencies);
    new.created_at = 5;
    new.expires_at = 100;
    let pin = put(&store, 1, &chunks, new, 7).unwrap();
    store.unpin(pin);
    assert!(store.lookup(key(2)).is_none());

    let pin = store.lookup(key(1)).unwrap();
    store.touch(&pin, 9);
    store.touch(&pin, 11);
    let view = store.view(&pin);
    assert_eq!(view.text(), b"select 1");
    assert_eq!(view.descriptor(), b"columns");
    assert_eq!(view.dependencies(), dependencies);
    assert_eq!(view.chunks().map(<[u8]>::to_vec).collect::<Vec<_>>(), chunks);
    assert!(view.chunks().all(|chunk| chunk.as_ptr().addr() % 64 == 0));
    assert_eq!(view.chunk_count(), 3);
    assert_eq!((view.rows(), view.columns(), view.execution_micros()), (3, 2, 1500));
    assert_eq!((view.database(), view.role()), (1, 10));
    assert_eq!((view.created_at(), view.expires_at(), view.last_used(), view.hits()), (5, 100, 11, 2));
    let head = 2 * 16 + b"columns".len() + b"select 1".len();
    assert_eq!(view.bytes() as usize, 1100 + 3 * CHUNK_OVERHEAD + head);
    assert_eq!(store.bytes_used(), block.layout.bookkeeping_bytes() + view.bytes() as usize);
    assert_eq!(store.entries(), 1);
    store.unpin(pin);
}

#[test]
fn a_pin_keeps_a_retired_entry_readable() {
    let block = Block::new(4, 64 * KIB);
    let store = block.attach(0);
    let pin = put(&store, 1, &[vec![9; 500]], described(b"q", &[]), 0).unwrap();
    let second = store.lookup(key(1)).unwrap();
    assert!(store.retire(&pin));
    assert!(!store.retire(&second));
    assert!(!present(&store, 1));
    assert_eq!(store.entries(), 0);
    store.unpin(pin);
    store.reclaim();
    assert_eq!(store.view(&second).chunks().next(), Some(&[9; 500][..]));
    store.unpin(second);
    assert_eq!(store.reclaim(), 1);
    assert!(is_empty(&block, &store));
}

#[test]
fn an_equal_key_replaces() {
    let block = Block::new(4, 64 * KIB);
    let store = block.attach(0);
    let old = put(&store, 1, &[vec![1; 10]], described(b"old", &[]), 0).unwrap();
    let new = put(&store, 1, &[vec![2; 10]], described(b"new", &[]), 0).unwrap();
    assert_eq!(store.entries(), 1);
    assert_ne!(store.view(&old).entry_id(), store.view(&new).entry_id());
    assert_eq!(store.view(&old).text(), b"old");
    let found = store.lookup(key(1)).unwrap();
    assert_eq!(found.entry(), new.entry());
    assert_eq!(store.view(&found).text(), b"new");
    assert!(!store.retire(&old));
    for pin in [old, new, found] {
        store.unpin(pin);
    }
    assert_eq!(store.retire_matching(|_| true), 1);
    assert!(is_empty(&block, &store));
}

#[test]
fn identities_are_never_used_again() {
    let block = Block::new(1, 64 * KIB);
    let store = block.attach(0);
    let mut seen = std::collections::HashSet::new();
    for n in 0..20 {
        let pin = put(&store, n, &[], described(b"q", &[]), 0).unwrap();
        assert!(seen.insert(store.view(&pin).entry_id()));
        assert_eq!(store.view(&pin).id(), pin.entry());
        store.unpin(pin);
    }
}

#[test]
fn a_fill_that_an_error_ended_is_reclaimed() {
    let block = Block::new(2, 64 * KIB);
    let store = block.attach(0);
    let left = fill(&store, &[vec![1; 1000], vec![2; 1000]], 0).unwrap();
    assert_eq!(left.bytes(), 2000);
    assert_eq!(store.reclaim(), 0);
    store.abandon_unlocked(&left);
    assert_eq!(block.live(), 2);
    assert_eq!(store.reclaim(), 1);
    assert!(is_empty(&block, &store));
    store.abandon(fill(&store, &[vec![1; 1000]], 0).unwrap());
    assert!(is_empty(&block, &store));
}

#[test]
fn many_abandoned_fills_are_reclaimed_past_pinned_ones() {
    let block = Block::new(200, 640 * KIB);
    let store = block.attach(0);
    let fills: Vec<_> = (0..200).map(|_| fill(&store, &[vec![1; 10]], 0).unwrap()).collect();
    assert!(store.reserve(0).is_err());
    for left in fills.iter().skip(1).step_by(2) {
        store.abandon_unlocked(left);
    }
    assert_eq!(store.reclaim(), 100);
    for left in fills.into_iter().step_by(2) {
        store.abandon(left);
    }
    assert!(is_empty(&block, &store));
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

/// A hit.
fn touch(store: &TestStore<'_>, n: u64, now: i64) {
    let pin = store.lookup(key(n)).unwrap();
    store.touch(&pin, now);
    store.unpin(pin);
}

/// A result of `kib` kilobytes that took so many microseconds, and competes for its room.
fn compete(store: &TestStore<'_>, n: u64, kib: usize, micros: u64, now: i64) -> Result<(), StoreError> {
    let mut made = store.reserve(now)?;
    store.compete(&mut made, key(n), now);
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
fn how_a_key_was_used_survives_its_answers() {
    const SECOND: i64 = 1_000_000;
    let block = Block::new(20, 24 * KIB);
    let store = block.attach(0);
    compete(&store, 1, 8, 10_000, 0).unwrap();
    (1..200).for_each(|second| touch(&store, 1, second * SECOND));
    assert_eq!(store.retire_matching(|_| true), 1);
    // Both are new; the first one was used each second before.
    compete(&store, 1, 8, 10_000, 200 * SECOND).unwrap();
    compete(&store, 2, 8, 10_000, 200 * SECOND).unwrap();
    compete(&store, 3, 8, 10_000, 201 * SECOND).unwrap();
    assert!(present(&store, 1) && !present(&store, 2));
}

#[test]
fn answers_that_are_never_used_are_stored_more_seldom() {
    let block = Block::new(20, 64 * KIB);
    let store = block.attach(0);
    let slot = store.versions().relation(1, 7);
    let mut stored = Vec::new();
    // Something has to go.
    for n in 0..60 {
        compete(&store, n + 130, 1, 1, 1).unwrap();
    }
    assert!(store.counters().sum(Counter::Evictions) > 0);
    for run in 1..=20 {
        if !store.skips_barren(key(1), 1) {
            small(&store, 1, 1);
            stored.push(run);
        }
        store.versions().slot(slot).bump(run);
    }
    assert_eq!(stored, [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 14, 19]);
    assert!(!store.skips_barren(key(2), 1));
    assert!(!store.skips_barren(key(1), 1 << 30), "there has been room for long");
    touch(&store, 1, 0);
    small(&store, 1, 0);
    for _ in 0..6 {
        small(&store, 1, 0);
        assert!(!store.skips_barren(key(1), 1), "one use is enough");
    }
    store.retire_matching(|_| true);
    assert!(!store.skips_barren(key(1), 1), "nor is it held against a key what a flush has done");
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

#[test]
fn a_full_arena_makes_room_for_what_can_fit() {
    let block = Block::new(100, 32 * KIB);
    let store = block.attach(0);
    for n in 0..20 {
        let pin = put(&store, n, &[vec![n as u8; KIB]], described(b"q", &[]), n as i64).unwrap();
        store.unpin(pin);
    }
    let big = put(&store, 50, &[vec![1; 10 * KIB], vec![2; 10 * KIB]], described(b"q", &[]), 100).unwrap();
    assert!(present(&store, 19) && !present(&store, 0));
    let evicted = store.counters().sum(Counter::Evictions);
    assert!((9..=14).contains(&evicted), "{evicted} of 20 went for about 10");
    // The fill and the pinned entry cannot both fit.
    assert_eq!(fill(&store, &[vec![1; 10 * KIB], vec![2; 10 * KIB]], 0).map(|_| ()), Err(StoreError::NoRoom));
    assert!(present(&store, 50));
    store.unpin(big);
    store.retire_matching(|_| true);
    assert!(is_empty(&block, &store));
}

#[test]
fn what_can_never_fit_evicts_nothing() {
    let block = Block::new(10, usize::MAX);
    let store = block.attach(0);
    small(&store, 1, 0);
    let arena = block.layout.arena_len;
    let mut half = fill(&store, &[], 0).unwrap();
    assert_eq!(store.append(&mut half, usize::MAX, 0).map(|_| ()), Err(StoreError::NoRoom));
    assert_eq!(store.append(&mut half, arena, 0).map(|_| ()), Err(StoreError::NoRoom));
    assert!(store.append(&mut half, arena / 2, 0).is_ok());
    assert_eq!(store.append(&mut half, arena / 2, 0).map(|_| ()), Err(StoreError::NoRoom));
    assert!(present(&store, 1));
    store.abandon(half);
}

#[test]
fn no_room_for_the_description_abandons_the_fill() {
    let block = Block::new(10, 8 * KIB);
    let store = block.attach(0);
    let full = fill(&store, &[vec![1; 7 * KIB]], 0).unwrap();
    let text = vec![b'x'; 2 * KIB];
    assert_eq!(store.publish(full, key(1), described(&text, &[]), 0), Err(StoreError::NoRoom));
    assert!(is_empty(&block, &store));
}

#[test]
fn validity_follows_the_slots() {
    let block = Block::new(10, 64 * KIB);
    let store = block.attach(0);
    let versions = store.versions();
    versions.ensure_floor(10);
    let slot = versions.relation(1, 7);
    versions.slot(slot).publish(12, 12, |_| false, 0);
    let on =
        [Dependency { slot, relation: 7, version: 1 }, Dependency { slot: versions.ddl(1), relation: 0, version: 0 }];
    let pin = put(&store, 1, &[], described(b"q", &on), 0).unwrap();
    let sees = SnapshotView { xmin: 13, xmax: 13, in_progress: &[] };
    let sees_not = SnapshotView { xmin: 12, xmax: 14, in_progress: &[12] };
    let before_start = SnapshotView { xmin: 9, xmax: 14, in_progress: &[9] };
    assert!(store.is_current(&pin));
    assert_eq!(store.valid_for(&pin, &sees), Validity::Valid);
    assert_eq!(store.valid_for(&pin, &sees_not), Validity::NotVisible);
    assert_eq!(store.valid_for(&pin, &before_start), Validity::NotVisible);
    versions.slot(versions.ddl(1)).bump(0);
    assert!(!store.is_current(&pin));
    assert_eq!(store.valid_for(&pin, &sees), Validity::Changed);
    assert_eq!(store.valid_for(&pin, &sees_not), Validity::Changed);
    store.unpin(pin);
}

#[test]
fn matching_entries_are_retired_and_the_others_stay() {
    let block = Block::new(100, 640 * KIB);
    let store = block.attach(0);
    for n in 0..50 {
        let mut new = described(b"q", &[]);
        new.database = (n % 2) as u32;
        let pin = put(&store, n, &[vec![0; 10]], new, 0).unwrap();
        store.unpin(pin);
    }
    assert_eq!(store.retire_matching(|view| view.database() == 1), 25);
    assert_eq!(store.entries(), 25);
    let mut databases = Vec::new();
    store.for_each(|view| databases.push(view.database()));
    assert_eq!(databases, [0; 25]);
    assert_eq!(store.retire_matching(|_| true), 25);
    assert!(is_empty(&block, &store));
}

#[test]
fn a_visitor_that_panics_leaves_no_pin() {
    let block = Block::new(10, 64 * KIB);
    let store = block.attach(0);
    small(&store, 1, 0);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| store.for_each(|_| panic!("on purpose"))));
    assert!(outcome.is_err());
    assert_eq!(store.retire_matching(|_| true), 1);
    assert!(is_empty(&block, &store));
}

#[test]
fn runs_are_counted_by_key() {
    let block = Block::new(1, 64 * KIB);
    let store = block.attach(0);
    let first = arrow_cache_core::CacheKey(arrow_cache_core::Hash128 { hi: 0, lo: 5 });
    let same_word = arrow_cache_core::CacheKey(arrow_cache_core::Hash128 { hi: 1 << 16, lo: 5 });
    assert_eq!([store.count_run(first), store.count_run(first), store.count_run(key(3))], [1, 2, 1]);
    assert_eq!(store.count_run(same_word), 1);
    assert_eq!(store.count_run(first), 1);
    for _ in 0..(if cfg!(miri) { 10 } else { 70_000 }) {
        store.count_run(first);
    }
    assert_eq!(store.count_run(first), if cfg!(miri) { 12 } else { 65_535 });
}

#[test]
fn a_store_without_entries_stores_nothing() {
    let block = Block::new(0, 64 * KIB);
    let store = block.attach(0);
    assert_eq!(store.reserve(0).map(|_| ()), Err(StoreError::NoRoom));
    assert!(store.lookup(key(1)).is_none());
    assert_eq!(store.retire_matching(|_| true), 0);
}
