//! The store, one rule at a time, in one process.

mod common;
#[path = "common/results.rs"]
mod results;

use arrow_cache_core::cache::counters::Counter;
use arrow_cache_core::cache::{CHUNK_OVERHEAD, Dependency, StoreError, Validity};
use arrow_cache_core::versions::snapshot::SnapshotView;
use common::{Block, TestStore, described, fill, key};
use results::{KIB, present, put, small};

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
    let head = size_of::<i64>() + size_of::<f64>() + 2 * 16 + b"columns".len() + b"select 1".len();
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
fn a_full_arena_makes_room_for_what_can_fit() {
    // Beside twenty small entries there is room for one of the two chunks below.
    let block = Block::new(100, 33 * KIB);
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
fn a_store_without_entries_stores_nothing() {
    let block = Block::new(0, 64 * KIB);
    let store = block.attach(0);
    assert_eq!(store.reserve(0).map(|_| ()), Err(StoreError::NoRoom));
    assert!(store.lookup(key(1)).is_none());
    assert_eq!(store.retire_matching(|_| true), 0);
}

#[test]
fn an_outdated_entry_tells_what_has_changed_since() {
    let block = Block::new(10, 64 * KIB);
    let store = block.attach(0);
    let versions = store.versions();
    let on = |slot, relation| Dependency { slot, relation, version: versions.slot(slot).version() };
    let (rows, ddl, catalogs) = (versions.relation(1, 42), versions.ddl(1), versions.catalogs(1));
    versions.slot(catalogs).bump(1);
    let store_anew = |known_good| {
        let dependencies = [on(ddl, 0), on(rows, 42)];
        let mut new = described(b"select 1", &dependencies);
        new.catalogs = versions.slot(catalogs).version();
        new.known_good = known_good;
        let pin = put(&store, 1, &[vec![1; 10]], new, 7).unwrap();
        store.unpin(pin);
        store.lookup(key(1)).unwrap()
    };
    let pin = store_anew(1000);
    assert!(store.is_current(&pin) && store.only_rows_changed(&pin, 1));
    versions.slot(rows).bump(2);
    assert!(!store.is_current(&pin) && store.only_rows_changed(&pin, 1));
    versions.slot(ddl).bump(3);
    assert!(!store.only_rows_changed(&pin, 1), "a function, or a right");
    store.unpin(pin);
    let pin = store_anew(1000);
    versions.slot(catalogs).bump(4);
    assert!(store.is_current(&pin) && !store.only_rows_changed(&pin, 1), "any definition");
    store.unpin(pin);
}

#[test]
fn what_is_known_to_be_good_is_renewed_now_and_then() {
    let block = Block::new(10, 64 * KIB);
    let store = block.attach(0);
    let mut new = described(b"select 1", &[]);
    new.known_good = 1_000_000;
    new.catalogs = u64::MAX >> 1;
    let pin = put(&store, 1, &[vec![1; 10]], new, 7).unwrap();
    let known_good = || store.view(&pin).known_good();
    assert_eq!(known_good(), 1_000_000);
    store.renew(&pin, 1_050_000);
    assert_eq!(known_good(), 1_000_000, "not at every hit");
    store.renew(&pin, 1_500_000);
    assert_eq!(known_good(), 1_500_000);
    store.renew(&pin, 900_000);
    assert_eq!(known_good(), 1_500_000, "an earlier time tells nothing new");
    assert!(!store.keeps_outdated(&pin));
    store.keep_outdated(&pin);
    store.keep_outdated(&pin);
    assert!(store.keeps_outdated(&pin));
    store.unpin(pin);
}
