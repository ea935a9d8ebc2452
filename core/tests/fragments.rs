//! What the store does for fragments: it tells them from answers, bounds what they take together, and remembers how
//! long queries of a form run.

mod common;

use arrow_cache_core::cache::{CHUNK_OVERHEAD, Dependency, EntryKind, NewEntry, NewKind, Pin, Speed, StoreError};
use common::{Block, TestStore, described, fill, key};

const KIB: usize = 1024;

/// Bytes of each fragment: its data, and what describes it, which begins with a time and a cost.
const FRAGMENT: u64 =
    (1000 + CHUNK_OVERHEAD + size_of::<i64>() + size_of::<f64>() + "columns".len() + "q".len()) as u64;

/// Fills and publishes.
fn put(store: &TestStore<'_>, n: u64, bytes: usize, new: NewEntry<'_>, now: i64) -> Result<Pin, StoreError> {
    store.publish(fill(store, &[vec![1; bytes]], now)?, key(n), new, now)
}

fn answer(store: &TestStore<'_>, n: u64) {
    let pin = put(store, n, 100, described(b"q", &[]), 0).unwrap();
    store.unpin(pin);
}

fn present(store: &TestStore<'_>, n: u64) -> bool {
    store.lookup(key(n)).map(|pin| store.unpin(pin)).is_some()
}

fn is_empty(block: &Block, store: &TestStore<'_>) -> bool {
    store.entries() == 0 && store.bytes_used() == block.layout.bookkeeping_bytes() && block.live() == 0
}

fn fragment(dependencies: &[Dependency], most_bytes: u64) -> NewEntry<'_> {
    NewEntry { kind: NewKind::Fragment { most_bytes }, ..described(b"q", dependencies) }
}

/// Publishes a fragment; `room` is how many of them may be there at once.
fn part(store: &TestStore<'_>, n: u64, room: u64, now: i64) -> Result<(), StoreError> {
    let new = fragment(&[], room * FRAGMENT);
    put(store, n, 1000, new, now).map(|pin| store.unpin(pin))
}

fn in_minutes(minutes: i64) -> i64 {
    minutes * 60_000_000
}

#[test]
fn an_entry_tells_its_kind_and_the_cost_of_its_plan() {
    let block = Block::new(8, 256 * 1024);
    let store = block.attach(0);
    let costs = [0.0, 12.5, 1e10, f64::MAX];
    for (n, plan_cost) in (1..).zip(costs) {
        for (new, kind) in
            [(described(b"q", &[]), EntryKind::Answer), (fragment(&[], 64 * FRAGMENT), EntryKind::Fragment)]
        {
            let pin = put(&store, n, 100, NewEntry { plan_cost, ..new }, 0).unwrap();
            let view = store.view(&pin);
            assert_eq!((view.plan_cost(), view.kind()), (plan_cost, kind));
            store.unpin(pin);
        }
    }
    block.check();
}

#[test]
fn fragments_are_told_from_answers_and_counted() {
    let block = Block::new(10, 64 * KIB);
    let store = block.attach(0);
    answer(&store, 1);
    assert_eq!(store.fragment_bytes(), 0);
    part(&store, 2, 2, 0).unwrap();
    part(&store, 3, 2, 0).unwrap();
    assert_eq!(store.fragment_bytes(), 2 * FRAGMENT);
    let mut kinds = Vec::new();
    store.for_each(|view| kinds.push(view.kind()));
    assert_eq!(kinds, [EntryKind::Answer, EntryKind::Fragment, EntryKind::Fragment]);

    // One that was retired counts no more, whoever reads it; nor does one that was replaced.
    let pin = store.lookup(key(2)).unwrap();
    assert!(store.retire(&pin));
    assert_eq!(store.fragment_bytes(), FRAGMENT);
    store.unpin(pin);
    answer(&store, 3);
    assert_eq!(store.fragment_bytes(), 0);
    // The record of a fragment holds an answer next.
    store.reclaim();
    for n in 4..8 {
        answer(&store, n);
    }
    store.for_each(|view| assert_eq!(view.kind(), EntryKind::Answer));
    store.retire_matching(|_| true);
    assert!(is_empty(&block, &store));
}

#[test]
fn fragments_in_use_are_not_spared_for_another() {
    let block = Block::new(10, 64 * KIB);
    let store = block.attach(0);
    assert_eq!(part(&store, 1, 0, 0), Err(StoreError::NoRoom));
    part(&store, 1, 2, 0).unwrap();
    part(&store, 2, 2, 0).unwrap();
    let live = block.live();
    assert_eq!(part(&store, 3, 2, in_minutes(1)), Err(StoreError::NoRoom));
    assert!(present(&store, 1) && present(&store, 2) && !present(&store, 3));
    assert_eq!((store.fragment_bytes(), block.live()), (2 * FRAGMENT, live));
    // What is smaller than the room that is left has room.
    part(&store, 3, 3, 0).unwrap();
    assert_eq!(store.fragment_bytes(), 3 * FRAGMENT);
}

#[test]
fn fragments_out_of_use_make_room_for_another_and_answers_do_not() {
    let block = Block::new(10, 64 * KIB);
    let store = block.attach(0);
    answer(&store, 9);
    part(&store, 1, 2, 1).unwrap();
    part(&store, 2, 2, 2).unwrap();
    let pin = store.lookup(key(1)).unwrap();
    store.touch(&pin, in_minutes(1));
    part(&store, 3, 2, in_minutes(1) + 3).unwrap();
    assert!(present(&store, 1) && !present(&store, 2) && present(&store, 3));
    // Pinned by us, so it would free nothing.
    assert_eq!(part(&store, 4, 1, in_minutes(9)), Err(StoreError::NoRoom));
    store.unpin(pin);
    // A share that was made smaller.
    part(&store, 4, 1, in_minutes(9)).unwrap();
    assert!(!present(&store, 1) && !present(&store, 3) && present(&store, 4));
    assert_eq!(store.fragment_bytes(), FRAGMENT);
    assert!(present(&store, 9));
}

#[test]
fn outdated_fragments_make_room_at_once() {
    let block = Block::new(10, 64 * KIB);
    let store = block.attach(0);
    let slot = store.versions().relation(1, 42);
    let on = [Dependency { slot, relation: 42, version: store.versions().slot(slot).version() }];
    let bytes = FRAGMENT + size_of::<Dependency>() as u64;
    let pin = put(&store, 1, 1000, fragment(&on, bytes), 0).unwrap();
    store.unpin(pin);
    assert_eq!(part(&store, 2, 1, 0), Err(StoreError::NoRoom));
    store.versions().slot(slot).bump(1);
    part(&store, 2, 1, 0).unwrap();
    assert!(!present(&store, 1));
    assert_eq!(store.fragment_bytes(), FRAGMENT);
}

fn times(executions: u32, combined_runs: u32, plain_micros: u64, combined_micros: u64) -> Speed {
    Speed { executions, combined_runs, plain_micros, combined_micros }
}

/// A form in the same place as another.
const SAME_PLACE: u64 = 1 << 60;

#[test]
fn times_of_forms_are_known_by_kind_of_run() {
    let block = Block::new(1, 64 * KIB);
    let store = block.attach(0);
    let known = |form| store.speed(form);
    assert_eq!(known(5), Speed::default());
    store.note_run(5, 8000, false);
    assert_eq!(known(5), times(1, 0, 8000, 0));
    assert_eq!([known(6), known(5 + SAME_PLACE)], [Speed::default(); 2]);
    store.note_run(5, 4000, false);
    store.note_run(5, 100, true);
    assert_eq!(known(5), times(3, 1, 7000, 100));
    // The form that nobody's memory looks like, and a time below one microsecond.
    store.note_run(0, 0, true);
    assert_eq!(known(0), times(1, 1, 0, 1));
    assert_eq!(block.attach(1).speed(5), known(5));
}

#[test]
fn a_form_takes_the_place_of_another() {
    let block = Block::new(1, 64 * KIB);
    let store = block.attach(0);
    let (first, second) = (5, 5 + SAME_PLACE);
    store.note_run(first, 8000, false);
    store.note_run(first, 90, true);
    store.note_run(second, 20, false);
    assert_eq!(store.speed(second), times(1, 0, 20, 0));
    assert_eq!(store.speed(first), times(1, 1, 0, 90));
    store.note_run(first, 6000, false);
    assert_eq!(store.speed(first), times(2, 1, 6000, 90));
}

#[test]
fn counts_and_times_of_forms_have_an_upper_end() {
    let block = Block::new(1, 64 * KIB);
    let store = block.attach(0);
    let form = u64::MAX;
    let mut last = 0;
    let mut fell = 0;
    for _ in 0..(if cfg!(miri) { 10 } else { 140_000 }) {
        store.note_run(form, u64::MAX, false);
        let Speed { executions, plain_micros, combined_micros, .. } = store.speed(form);
        assert_eq!((plain_micros, combined_micros), (u64::from(u32::MAX), 0));
        // It never stands still, since every so many executions something is tried.
        if executions == last + 1 {
            last = executions;
        } else {
            assert_eq!((last, executions), (65_535, 32_767));
            (last, fell) = (executions, fell + 1);
        }
    }
    assert_eq!(fell, if cfg!(miri) { 0 } else { 3 });
}
