//! The table of what running transactions have changed: one rule at a time, and random operations against a plain map.

use arrow_cache_core::replay::changes::{Change, ChangeKind, ChangeTable, Full};
use arrow_cache_core::versions::slots::SlotId;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

fn noted<const N: usize, const CHAINS: usize, const PLACES: usize>(
    table: &ChangeTable<N, CHAINS, PLACES>,
    xid: u32,
) -> Vec<u32> {
    let mut changes = Vec::new();
    table.for_each(xid, |change| changes.push(change.0));
    changes.sort_unstable();
    changes
}

#[test]
fn a_change_tells_what_it_was_made_of() {
    for slot in [0, 255, 256, 65_791] {
        assert_eq!(Change::slot(SlotId(slot)).kind(), ChangeKind::Slot(SlotId(slot)));
        assert_eq!(Change::part(SlotId(slot)).kind(), ChangeKind::Slot(SlotId(slot)));
    }
    let mut changes = BTreeSet::new();
    for oid in [0, 1, 1259, 16_383] {
        assert_eq!(Change::catalog(oid).kind(), ChangeKind::Catalog(oid));
        assert_eq!(Change::catalog_in_place(oid).kind(), ChangeKind::CatalogInPlace(oid));
        for change in [Change::catalog(oid), Change::catalog_in_place(oid)] {
            assert!(changes.insert(change.0), "{oid} is taken for another");
        }
    }
}

/// How much is noted of these transactions.
fn count<const N: usize, const CHAINS: usize, const PLACES: usize>(
    table: &ChangeTable<N, CHAINS, PLACES>,
    xids: impl IntoIterator<Item = u32>,
) -> usize {
    xids.into_iter().map(|xid| noted(table, xid).len()).sum()
}

#[test]
fn changes_are_kept_apart_by_transaction_until_they_are_forgotten() {
    let mut table = ChangeTable::<16, 1, 1>::new();
    assert_eq!(count(&table, 0..20), 0);
    for (xid, change) in [(10, 1), (10, 2), (11, 1), (10, 1), (10, 1), (11, 3)] {
        table.note(xid, Change(change)).unwrap();
    }
    assert_eq!((noted(&table, 10), noted(&table, 11), noted(&table, 12)), (vec![1, 2], vec![1, 3], vec![]));
    let mut all = Vec::new();
    table.for_each_of_all(|change| all.push(change.0));
    all.sort_unstable();
    assert_eq!(all, [1, 1, 2, 3]);
    table.forget(12);
    table.forget(10);
    assert_eq!((noted(&table, 10), noted(&table, 11)), (vec![], vec![1, 3]));
    table.forget(11);
    assert_eq!(count(&table, 0..20), 0);
}

#[test]
fn what_a_child_changed_is_passed_on_in_a_full_table() {
    let mut table = ChangeTable::<4, 1, 2>::new();
    for (xid, change) in [(10, 1), (10, 4), (11, 1), (11, 2), (11, 3), (12, 5), (12, 6)] {
        table.note(xid, Change(change)).unwrap();
    }
    assert_eq!(table.note(12, Change(1)), Err(Full));
    table.pass_on(11, 10).unwrap();
    assert_eq!((noted(&table, 10), noted(&table, 11)), (vec![1, 2, 3, 4], vec![]));
    table.note(11, Change(3)).unwrap();
    table.pass_on(11, 11).unwrap();
    table.pass_on(13, 10).unwrap();
    assert_eq!((noted(&table, 10), noted(&table, 11), noted(&table, 12)), (vec![1, 2, 3, 4], vec![3], vec![5, 6]));
    (10..13).for_each(|xid| table.forget(xid));
    assert_eq!(count(&table, 0..20), 0);
}

/// Replay stands still meanwhile. One walk for each note of the first would take some ten thousand times as long.
#[test]
fn forgetting_walks_once_past_the_notes_of_others_in_a_chain() {
    let mut table = Box::new(ChangeTable::<16_000, 1, 1>::new());
    for xid in [10, 11] {
        (0..8_000).for_each(|change| table.note(xid, Change(change)).unwrap());
    }
    let mut time_of = |xid| {
        let start = Instant::now();
        table.forget(xid);
        assert_eq!(noted(&table, xid), []);
        start.elapsed()
    };
    let (beneath, alone) = (time_of(10), time_of(11));
    assert!(beneath < alone * 100 + Duration::from_millis(500), "{beneath:?}, and {alone:?} without others");
}

/// A block remembers whose it was.
#[test]
fn what_was_noted_last_is_noted_again_after_it_was_forgotten() {
    let forgets: [fn(&mut ChangeTable<16, 2, 1>); 3] =
        [|table| table.forget(10), |table| table.forget_older(11), ChangeTable::clear];
    for forget in forgets {
        let mut table = ChangeTable::<16, 2, 1>::new();
        table.note(10, Change(0)).unwrap();
        forget(&mut table);
        assert_eq!(count(&table, 0..20), 0);
        table.note(10, Change(0)).unwrap();
        assert_eq!(noted(&table, 10), [0]);
    }
    // The empty table remembers nothing either.
    let mut table = ChangeTable::<16, 2, 1>::new();
    assert_eq!(noted(&table, 0), []);
    table.note(0, Change(0)).unwrap();
    assert_eq!(noted(&table, 0), [0]);
}

#[test]
fn the_table_is_bounded_and_says_when_it_is_full() {
    let mut table = ChangeTable::<17, 1, 1>::new();
    for change in 0..17 {
        table.note(10 + change % 3, Change(change)).unwrap();
    }
    assert_eq!(table.note(10, Change(17)), Err(Full));
    assert_eq!(table.note(20, Change(0)), Err(Full));
    // What was refused is refused again: it is not remembered as noted.
    assert_eq!(table.note(20, Change(0)), Err(Full));
    // What is noted already needs no place.
    assert_eq!(table.note(10, Change(3)), Ok(()));
    assert_eq!((count(&table, 10..13), noted(&table, 10)), (17, vec![0, 3, 6, 9, 12, 15]));
    table.forget(11);
    assert_eq!(count(&table, 10..13), 11);
    for change in 0..6 {
        table.note(20, Change(change)).unwrap();
    }
    assert_eq!(table.note(20, Change(6)), Err(Full));
    assert_eq!(noted(&table, 20), [0, 1, 2, 3, 4, 5]);
    table.clear();
    assert_eq!(count(&table, 10..21), 0);
    for xid in 0..17 {
        table.note(xid, Change(7)).unwrap();
    }
    assert_eq!(table.note(17, Change(7)), Err(Full));
}

#[test]
fn leftovers_are_dropped_by_age_across_the_wrap_of_ids() {
    let noted_of = |xids: &[u32]| {
        let mut table = ChangeTable::<16, 2, 1>::new();
        for &xid in xids {
            table.note(xid, Change(1)).unwrap();
            table.note(xid, Change(2)).unwrap();
        }
        table
    };
    let left_of = |xids: &[u32], oldest: u32| {
        let mut table = noted_of(xids);
        table.forget_older(oldest);
        let left: Vec<u32> = xids.iter().copied().filter(|xid| noted(&table, *xid) == [1, 2]).collect();
        assert_eq!(count(&table, xids.iter().copied()), 2 * left.len());
        left
    };
    assert_eq!(left_of(&[100, 101, 102, 103], 102), [102, 103]);
    assert_eq!(left_of(&[100, 101], 100), [100, 101]);
    assert_eq!(left_of(&[u32::MAX - 1, u32::MAX, 3, 4], u32::MAX), [u32::MAX, 3, 4]);
    assert_eq!(left_of(&[u32::MAX - 1, u32::MAX, 3, 4], 4), [4]);
    // Half a circle away: the first id that is older, and the last that is not.
    assert_eq!(left_of(&[9, 10], 10 + (1 << 31)), [9]);
    // Permanent ids are older than all others, and nothing is older than no transaction.
    assert_eq!(left_of(&[u32::MAX, 3], 0), [u32::MAX, 3]);
    assert_eq!(left_of(&[1, u32::MAX], 3), [] as [u32; 0]);
}

/// What is noted of a transaction, with the parts of it that are noted beside what they are parts of.
fn kinds<const N: usize>(table: &ChangeTable<N, 1, 2>, xid: u32) -> Vec<String> {
    let mut kinds = Vec::new();
    table.for_each(xid, |change| kinds.push(format!("{:?}", change.kind())));
    kinds.sort_unstable();
    kinds
}

const RELATION: Change = Change::slot(SlotId(1000));

#[test]
fn parts_are_noted_beside_their_relation_until_they_are_too_many() {
    let mut table = ChangeTable::<100, 1, 2>::new();
    table.note(10, RELATION).unwrap();
    table.note(10, Change::catalog(1259)).unwrap();
    // Sixteen blocks of two changes each.
    for part in 0..30 {
        table.note(10, Change::part(SlotId(part))).unwrap();
        table.note(10, Change::part(SlotId(part))).unwrap();
    }
    assert_eq!(table.note(10, Change::part(SlotId(30))), Err(Full));
    assert_eq!(table.note(10, Change::part(SlotId(29))), Ok(()), "it is noted already");
    assert!(kinds(&table, 10).contains(&"Slot(SlotId(1000))".to_owned()));
    table.note(11, RELATION).unwrap();
    table.note(11, Change::part(SlotId(30))).unwrap();
    table.forget_parts(10);
    // Once more, it changes nothing.
    table.note(10, RELATION).unwrap();
    table.forget_parts(10);
    let found = kinds(&table, 10);
    assert_eq!(found.len(), 32);
    assert_eq!(found.iter().filter(|kind| kind.contains("Anywhere")).collect::<Vec<_>>(), ["Anywhere(SlotId(1000))"]);
    assert!(found.contains(&"Catalog(1259)".to_owned()));
    assert_eq!(kinds(&table, 11), ["Slot(SlotId(1000))", "Slot(SlotId(30))"], "others are left alone");
    // What is no part has a place still, and is not changed by what was forgotten before.
    table.note(10, Change::slot(SlotId(2000))).unwrap();
    assert!(kinds(&table, 10).contains(&"Slot(SlotId(2000))".to_owned()));
}

#[test]
fn parts_take_no_more_than_half_of_the_table() {
    let mut table = ChangeTable::<8, 1, 2>::new();
    for xid in 10..14 {
        table.note(xid, RELATION).unwrap();
        table.note(xid, Change::part(SlotId(xid))).unwrap();
    }
    assert_eq!(table.note(10, Change::part(SlotId(1))), Err(Full));
    table.note(14, RELATION).unwrap();
    table.note(14, Change::part(SlotId(1))).expect("there is a place left in its block");
    (11..15).for_each(|xid| table.forget(xid));
    table.note(10, Change::part(SlotId(1))).unwrap();
    table.clear();
    (10..18).for_each(|xid| table.note(xid, RELATION).unwrap());
    assert_eq!(table.note(18, RELATION), Err(Full), "all else may take all of it");
}

#[test]
fn parts_are_passed_on_or_forgotten() {
    let mut table = ChangeTable::<64, 1, 2>::new();
    for child in 11..20 {
        table.note(child, RELATION).unwrap();
        (0..3).for_each(|part| table.note(child, Change::part(SlotId(child * 3 + part))).unwrap());
        table.pass_on(child, 10).unwrap();
        assert_eq!(kinds(&table, child), [] as [&str; 0]);
    }
    assert_eq!(kinds(&table, 10).len(), 1 + 9 * 3);
    assert!(kinds(&table, 10).contains(&"Slot(SlotId(1000))".to_owned()));
    table.note(20, Change::slot(SlotId(2000))).unwrap();
    (0..9).for_each(|part| table.note(20, Change::part(SlotId(part))).unwrap());
    table.pass_on(20, 10).unwrap();
    let found = kinds(&table, 10);
    for relation in ["Anywhere(SlotId(1000))", "Anywhere(SlotId(2000))"] {
        assert!(found.contains(&relation.to_owned()), "{found:?}");
    }
    // A child of which any part may have changed says so of its parent's relation.
    table.note(31, RELATION).unwrap();
    table.note(30, RELATION).unwrap();
    table.forget_parts(30);
    table.pass_on(30, 31).unwrap();
    assert!(kinds(&table, 31).contains(&"Anywhere(SlotId(1000))".to_owned()));
}

/// As large as the real table, which lies in static memory, too.
type RealTable = ChangeTable<8192, 1024, 14>;

static REAL: Mutex<RealTable> = Mutex::new(RealTable::new());

#[test]
fn many_transactions_may_fill_the_real_table() {
    let mut table = REAL.lock().unwrap_or_else(PoisonError::into_inner);
    table.clear();
    let most = if cfg!(miri) { 300 } else { 4096 };
    for _round in 0..2 {
        for change in 0..most {
            table.note(77, Change(change)).unwrap();
        }
    }
    assert_eq!(noted(&table, 77), (0..most).collect::<Vec<_>>());
    table.forget(77);
    let most = if cfg!(miri) { 300 } else { 8192 };
    for xid in 0..most {
        table.note(xid, Change(5)).unwrap();
    }
    if !cfg!(miri) {
        assert_eq!(table.note(77 + most, Change(5)), Err(Full));
    }
    table.forget_older(most / 2 + 3);
    assert_eq!(count(&table, 0..most), (most - most / 2 - 3) as usize);
    table.clear();
}

#[derive(Clone, Debug)]
enum Step {
    Note(u32, u32),
    PassOn(u32, u32),
    Forget(u32),
    ForgetOlder(u32),
    Clear,
}

/// Few transactions around the wrap of ids.
fn xids() -> impl Strategy<Value = u32> {
    (0..12u32).prop_map(|n| if n < 6 { u32::MAX - n } else { n - 3 })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        30 => (xids(), 0..7u32).prop_map(|(xid, change)| Step::Note(xid, change)),
        3 => (xids(), xids()).prop_map(|(child, parent)| Step::PassOn(child, parent)),
        4 => xids().prop_map(Step::Forget),
        1 => xids().prop_map(Step::ForgetOlder),
        1 => Just(Step::Clear),
    ];
    prop::collection::vec(step, 1..if cfg!(miri) { 40 } else { 300 })
}

fn is_older(xid: u32, other: u32) -> bool {
    let steps_back = (u64::from(other) + (1 << 32) - u64::from(xid)) % (1 << 32);
    (1..=1 << 31).contains(&steps_back)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 5 } else { 500 }, ..ProptestConfig::default() })]

    #[test]
    fn the_table_is_a_map_of_sets(steps in steps()) {
        const BLOCKS: usize = 10;
        let mut table = ChangeTable::<BLOCKS, 2, 2>::new();
        let mut model: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Note(xid, change) => {
                    let count: usize = model.values().map(|changes| changes.len().div_ceil(2)).sum();
                    let is_new = !model.get(&xid).is_some_and(|changes| changes.contains(&change));
                    if table.note(xid, Change(change)).is_ok() {
                        model.entry(xid).or_default().insert(change);
                    } else {
                        prop_assert!(is_new && count >= BLOCKS, "{count} blocks are full, and {xid} {change} has no place");
                    }
                }
                Step::PassOn(child, parent) => {
                    if table.pass_on(child, parent).is_err() {
                        // Nobody knows what is left.
                        table.clear();
                        model.clear();
                    } else if let Some(changes) = model.remove(&child) {
                        model.entry(parent).or_default().extend(changes);
                    }
                }
                Step::Forget(xid) => {
                    table.forget(xid);
                    model.remove(&xid);
                }
                Step::ForgetOlder(oldest) => {
                    table.forget_older(oldest);
                    model.retain(|xid, _| !is_older(*xid, oldest));
                }
                Step::Clear => {
                    table.clear();
                    model.clear();
                }
            }
            for n in (0..15).map(|n: u32| n.wrapping_sub(6)) {
                let expected: Vec<u32> = model.get(&n).into_iter().flatten().copied().collect();
                prop_assert_eq!(noted(&table, n), expected);
            }
        }
    }
}
