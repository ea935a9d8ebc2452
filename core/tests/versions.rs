//! Slots, snapshots and the base floor, one rule at a time; torn reads.

use arrow_cache_core::versions::slot::{Slot, SlotState};
use arrow_cache_core::versions::slots::{DATABASE_SLOTS, FIXED_SLOTS, SlotId, Versions, slot_count, value_count};
use arrow_cache_core::versions::snapshot::SnapshotView;
use arrow_cache_core::versions::value_slot::ValueSlot;
use arrow_cache_core::versions::xid_window::XidWindow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

const NO_WINDOW: XidWindow = XidWindow { low: 0, high: 0, marks: 0 };

fn slot() -> Slot {
    Slot::from(SlotState::default())
}

fn snapshot(xmin: u64, xmax: u64, in_progress: &[u32]) -> SnapshotView<'_> {
    SnapshotView { xmin, xmax, in_progress }
}

#[test]
fn snapshots_are_widened_around_the_next_id() {
    let wide = |next, xmin, xmax| {
        let view = SnapshotView::new(next, xmin, xmax, &[]);
        (view.xmin, view.xmax)
    };
    assert_eq!(wide(1000, 990, 1000), (990, 1000));
    let epoch = 5u64 << 32;
    assert_eq!(wide(epoch + 10, 0xFFFF_FFF0, 10), (epoch - 16, epoch + 10));
    assert_eq!(wide(epoch + 10, 3, 12), (epoch + 3, epoch + 12));
    // The next id may be older than the snapshot.
    assert_eq!(wide(epoch - 5, 0xFFFF_FFF0, 7), (epoch - 16, epoch + 7));
}

#[test]
fn finished_is_what_the_snapshot_sees() {
    let running = [105, 107];
    let view = snapshot(105, 110, &running);
    for (xid, finished) in
        [(104, true), (105, false), (106, true), (107, false), (109, true), (110, false), (111, false)]
    {
        assert_eq!(view.finished(xid), finished, "{xid}");
    }
    let high = 7u64 << 32;
    let running = [5];
    let view = snapshot(high + 5, high + 9, &running);
    assert!(!view.finished(high + 5));
    assert!(view.finished(high + 6));
    assert!(view.finished(5));
}

#[test]
fn a_publisher_stands_for_those_that_have_ended() {
    let slot = slot();
    slot.publish(10, 10, |_| panic!("nobody to ask about"), 1);
    slot.publish(11, 10, |other| other != 10, 2);
    assert_eq!(slot.read(), SlotState { version: 2, pending: [11, 0, 0], window: NO_WINDOW, last_change: 2 });
    // Still running: both are remembered.
    slot.publish(12, 11, |_| true, 3);
    assert_eq!(slot.read().pending, [11, 12, 0]);
    assert_eq!(slot.read().version, 3);
    // One of two has ended.
    slot.publish(13, 11, |other| other == 12, 4);
    assert_eq!(slot.read().pending, [13, 12, 0]);
    // An id older than all running transactions needs no question.
    slot.publish(20, 20, |other| panic!("asked about {other}"), 5);
    assert_eq!(slot.read().pending, [20, 0, 0]);
}

#[test]
fn publishing_twice_is_remembered_once() {
    let slot = slot();
    slot.publish(10, 10, |_| true, 1);
    slot.publish(11, 10, |_| true, 1);
    slot.publish(11, 10, |_| true, 1);
    assert_eq!(slot.read().pending, [10, 11, 0]);
    assert_eq!(slot.read().version, 3);
}

fn window_of(xids: &[u64]) -> XidWindow {
    let marks = xids.iter().fold(0, |marks, xid| marks | 1 << (xid % 64));
    XidWindow { low: *xids.iter().min().unwrap(), high: *xids.iter().max().unwrap(), marks }
}

fn crowd(xids: &[u64]) -> Slot {
    let slot = slot();
    for &xid in xids {
        slot.publish(xid, 1, |_| true, 0);
    }
    slot
}

#[test]
fn whoever_finds_no_empty_place_is_folded_into_the_window() {
    let state = crowd(&[14, 11, 13, 12, 15]).read();
    assert_eq!((state.pending, state.window), ([12, 11, 13], window_of(&[14, 15])));
    // Folded ids are checked like the others: one by one.
    assert!(state.seen_whole(&snapshot(16, 20, &[])));
    assert!(state.seen_whole(&snapshot(10, 20, &[10, 16])));
    for xid in 11..=15 {
        assert!(!state.seen_whole(&snapshot(10, 20, &[10, xid])), "{xid}");
        assert!(!state.seen_whole(&snapshot(10, u64::from(xid), &[10])), "{xid}");
    }
}

#[test]
fn the_window_stays_narrow_beside_old_publishers() {
    let state = crowd(&[100, 1000, 10_000, 1_000_001, 1_000_002, 1_000_003]).read();
    assert_eq!((state.pending, state.window), ([100, 1000, 10_000], window_of(&[1_000_001, 1_000_002, 1_000_003])));
}

#[test]
fn ids_in_the_middle_of_the_window_do_not_belong_to_it() {
    // 105 runs for long and never publishes here.
    let slot = crowd(&[101, 102, 103, 104, 106, 107, 108, 109]);
    let state = slot.read();
    assert!(state.window.low < 105 && 105 < state.window.high);
    assert!(state.seen_whole(&snapshot(105, 110, &[105])));
    assert!(!state.seen_whole(&snapshot(104, 110, &[105, 104])));
    slot.publish(110, 105, |xid| xid == 105, 0);
    assert_eq!((slot.read().pending, slot.read().window), ([110, 0, 0], NO_WINDOW));
}

#[test]
fn a_window_that_is_too_wide_holds_more_but_never_less() {
    let window = XidWindow { low: 100, high: 1000, marks: window_of(&[100, 1000]).marks };
    assert!(window.holds(100) && window.holds(1000) && window.holds(164));
    assert!(!window.holds(99) && !window.holds(1001) && !window.holds(101) && !window.holds(36));
    let state = SlotState { version: 5, pending: [0; 3], window, last_change: 0 };
    assert!(!state.seen_whole(&snapshot(50, 2000, &[50, 164])));
    assert!(state.seen_whole(&snapshot(50, 2000, &[50, 101, 1064])));
}

#[test]
fn folded_ids_are_widened_across_an_epoch() {
    let epoch = 7u64 << 32;
    let state = SlotState { version: 5, pending: [0; 3], window: window_of(&[epoch - 2, epoch + 5]), last_change: 0 };
    assert!(!state.seen_whole(&snapshot(epoch - 3, epoch + 9, &[u32::MAX - 2, u32::MAX - 1])));
    assert!(!state.seen_whole(&snapshot(epoch - 3, epoch + 9, &[u32::MAX - 2, 5])));
    assert!(state.seen_whole(&snapshot(epoch - 3, epoch + 9, &[u32::MAX - 2, 6])));
    // The same low halves one epoch on.
    let next = 8u64 << 32;
    assert!(state.seen_whole(&snapshot(next - 3, next + 9, &[u32::MAX - 1, 5])));
}

#[test]
fn a_window_is_cut_down_to_those_that_still_run() {
    let window = window_of(&[100, 103, 108, 120]);
    let after = |oldest, running: &'static [u64]| {
        let slot = Slot::from(SlotState { version: 5, pending: [0; 3], window, last_change: 0 });
        let mut asked = Vec::new();
        let ask = |xid| {
            asked.push(xid);
            running.contains(&xid)
        };
        slot.publish(130, oldest, ask, 0);
        assert_eq!(slot.read().pending, [130, 0, 0]);
        (asked, slot.read().window)
    };
    assert_eq!(after(100, &[]), (vec![100, 103, 108, 120], NO_WINDOW));
    assert_eq!(after(1, &[103, 108]), (vec![100, 103, 108, 120], window_of(&[103, 108])));
    assert_eq!(after(104, &[120]), (vec![108, 120], window_of(&[120])));
    assert_eq!(after(121, &[]), (vec![], NO_WINDOW));
}

#[test]
fn a_wide_window_is_asked_about_a_part_at_a_time() {
    let window = XidWindow { low: 1000, high: 2000, marks: u64::MAX };
    let slot = Slot::from(SlotState { version: 5, pending: [0; 3], window, last_change: 0 });
    let mut publications = 0;
    while slot.read().window != NO_WINDOW {
        let mut asked = 0;
        slot.publish(
            3000,
            1,
            |xid| {
                asked += 1;
                xid == 3000
            },
            0,
        );
        assert!((1..=64).contains(&asked), "{asked}");
        let left = slot.read().window;
        assert!(left == NO_WINDOW || left == XidWindow { low: 1000 + 64 * (publications + 1), ..window });
        publications += 1;
    }
    // A transaction in the first part still runs: it stays the low end.
    let slot = Slot::from(SlotState { version: 5, pending: [0; 3], window, last_change: 0 });
    slot.publish(3000, 1, |xid| xid == 1010, 0);
    assert_eq!(slot.read().window, XidWindow { low: 1010, ..window });
}

#[test]
fn a_publisher_in_the_window_does_not_keep_it() {
    let window = window_of(&[100, 101]);
    let slot = Slot::from(SlotState { version: 5, pending: [0; 3], window, last_change: 0 });
    slot.publish(101, 1, |xid| xid == 101, 0);
    assert_eq!((slot.read().pending, slot.read().window), ([101, 0, 0], NO_WINDOW));
}

#[test]
fn a_publisher_that_comes_after_the_search_is_kept() {
    let slot = crowd(&[10]);
    let ended = slot.find_ended(12, 10, |_| false);
    slot.publish(11, 10, |_| true, 0);
    slot.enter(12, &ended, 0);
    assert_eq!(slot.read().pending, [12, 11, 0]);
    assert_eq!(slot.read().version, 3);
}

#[test]
fn a_window_that_moves_after_the_search_is_kept() {
    let slot = crowd(&[10, 11, 12, 13]);
    assert_eq!(slot.read().window, window_of(&[13]));
    let ended = slot.find_ended(15, 10, |_| false);
    slot.publish(14, 10, |_| true, 0);
    slot.enter(15, &ended, 0);
    assert_eq!((slot.read().pending, slot.read().window), ([15, 0, 0], window_of(&[13, 14])));
}

/// A snapshot from before sees the slot whole only if nothing runs for it any more that had an id by then.
#[test]
fn all_below_are_published() {
    let slot = crowd(&[40]);
    slot.publish_all_below(50, 7);
    let state = slot.read();
    assert_eq!((state.version, state.pending, state.last_change), (2, [40, 0, 0], 7));
    for (xmin, xmax, running, sees) in [
        (50, 50, &[][..], true),
        (49, 50, &[49], false),
        (3, 60, &[3], false),
        (49, 49, &[], false),
        (20, 20, &[], false),
        (55, 60, &[55], true),
        (50, 60, &[50], true),
    ] {
        assert_eq!(state.seen_whole(&snapshot(xmin, xmax, running)), sees, "{xmin} {xmax} {running:?}");
    }
    // Whoever publishes next stands for those that have ended.
    slot.publish(60, 45, |other| other == 47, 8);
    assert_eq!((slot.read().pending, slot.read().window), ([60, 0, 0], window_of(&[47])));
}

#[test]
fn bump_moves_the_version_alone() {
    let slot = slot();
    slot.publish(10, 10, |_| true, 1);
    slot.bump(7);
    assert_eq!(slot.read(), SlotState { version: 2, pending: [10, 0, 0], window: NO_WINDOW, last_change: 7 });
}

fn all_slots() -> (Vec<Slot>, Vec<ValueSlot>) {
    ((0..slot_count(0)).map(|_| slot()).collect(), (0..value_count(0)).map(|_| ValueSlot::from(0)).collect())
}

#[test]
fn the_base_floor_is_set_once_and_hides_the_past() {
    let (slots, values) = all_slots();
    let floor = AtomicU64::new(0);
    let versions = Versions::new(&slots, &values, &floor);
    let id = versions.relation(1, 2);
    assert_eq!(versions.seen_whole(id, &snapshot(1000, 1000, &[])), None);
    versions.ensure_floor(100);
    versions.ensure_floor(500);
    assert_eq!(versions.seen_whole(id, &snapshot(99, 1000, &[])), None);
    assert_eq!(versions.seen_whole(id, &snapshot(100, 1000, &[])), Some(0));
    versions.slot(id).publish(100, 100, |_| false, 0);
    assert_eq!(versions.seen_whole(id, &snapshot(100, 101, &[100])), None);
    assert_eq!(versions.seen_whole(id, &snapshot(101, 101, &[])), Some(1));
}

#[test]
fn beginning_anew_outdates_what_was_and_hides_the_past() {
    let (slots, values) = all_slots();
    let floor = AtomicU64::new(0);
    let versions = Versions::new(&slots, &values, &floor);
    let before = versions.relation(1, 2);
    versions.slot(before).publish_replayed(90, 1);
    versions.ensure_floor(50);
    assert_eq!(versions.seen_whole(before, &snapshot(91, 91, &[])), Some(1));
    versions.begin_anew(100, 7);
    assert_eq!(versions.base_floor(), 99);
    assert_eq!(versions.seen_whole(before, &snapshot(99, 120, &[99])), None);
    assert_eq!(versions.seen_whole(before, &snapshot(100, 120, &[])), Some(1));
    let moved = |slot: &Slot| slot.read() == SlotState { version: 1, last_change: 7, ..SlotState::default() };
    for database in 0..200 {
        let kinds = [versions.ddl(database), versions.enums(database), versions.catalogs(database)];
        assert!(kinds.into_iter().all(|kind| moved(versions.slot(kind))));
    }
    assert!(slots[..FIXED_SLOTS].iter().all(moved));
    assert_eq!(slots[FIXED_SLOTS..].iter().filter(|slot| slot.version() > 0).count(), 1);
}

#[test]
fn the_floor_never_sinks() {
    let (slots, values) = all_slots();
    let floor = AtomicU64::new(0);
    let versions = Versions::new(&slots, &values, &floor);
    // Before any reader came. It is set then, and stays.
    versions.begin_anew(0, 0);
    assert_eq!(versions.base_floor(), 1);
    versions.begin_anew(100, 0);
    versions.begin_anew(60, 0);
    versions.ensure_floor(500);
    assert_eq!(versions.base_floor(), 99);
    assert_eq!(versions.slot(SlotId(0)).version(), 3);
}

#[test]
fn what_is_replayed_stands_for_all_that_was_replayed_before() {
    let slot = slot();
    for (version, xid) in [(1, 10), (2, 14), (3, 12), (4, 12)] {
        slot.publish_replayed(xid, 5);
        assert_eq!(slot.read(), SlotState { version, pending: [xid, 0, 0], window: NO_WINDOW, last_change: 5 });
    }
    // What others have published stays.
    let slot = crowd(&[100, 101, 102, 103, 104]);
    let before = slot.read();
    slot.publish_replayed(105, 5);
    assert_eq!(slot.read().pending, [105, before.pending[1], before.pending[2]]);
    assert_eq!(slot.read().window, before.window);
}

/// Readers with a snapshot from before must not be served by what was read after, whichever part of beginning anew they
/// meet.
#[test]
fn whoever_reads_a_version_after_beginning_anew_finds_the_higher_floor() {
    let (slots, values) = all_slots();
    for round in 0..if cfg!(miri) { 3 } else { 2000 } {
        let floor = AtomicU64::new(1);
        let versions = Versions::new(&slots, &values, &floor);
        let before = versions.slot(SlotId(0)).version();
        std::thread::scope(|scope| {
            scope.spawn(|| versions.begin_anew(100, round));
            while let Some(version) = versions.seen_whole(SlotId(0), &snapshot(50, 100, &[])) {
                assert_eq!(version, before, "round {round}");
            }
        });
    }
}

#[test]
fn kinds_of_slots_do_not_overlap() {
    let (slots, values) = all_slots();
    let floor = AtomicU64::new(0);
    let versions = Versions::new(&slots, &values, &floor);
    for n in 0..200 {
        assert!((FIXED_SLOTS..slots.len()).contains(&(versions.relation(n, n * 7).0 as usize)));
        let kinds = [versions.ddl(n), versions.enums(n), versions.catalogs(n)];
        for (kind, slot) in kinds.into_iter().enumerate() {
            assert_eq!((slot.0 as usize - 1) / DATABASE_SLOTS, kind);
        }
    }
    assert_ne!(versions.relation(1, 2), versions.relation(2, 1));
    for n in 0..2000 {
        let [whole, coarse] = versions.of_relation(5, n).map(|slot| slot.0 as usize);
        let unknown = versions.unknown(5, n, 3).0 as usize;
        assert!((FIXED_SLOTS..slots.len()).contains(&whole) && whole % 2 == FIXED_SLOTS % 2);
        for beside in [coarse, unknown] {
            assert!((FIXED_SLOTS..slots.len()).contains(&beside) && beside % 2 != FIXED_SLOTS % 2);
        }
        let value = versions.value(5, n, 3, u64::from(n)).0 as usize;
        assert!((slots.len()..slots.len() + values.len()).contains(&value));
    }
    let value = versions.value(1, 2, 3, 4);
    let others = [versions.value(2, 2, 3, 4), versions.value(1, 3, 3, 4), versions.value(1, 2, 4, 4)];
    assert!(!others.contains(&value) && value != versions.value(1, 2, 3, 5));
}

/// A change of one table outdates what rests on another one only if a database has more relations than there are slots.
#[test]
fn relations_of_a_database_share_no_slot() {
    let (slots, values) = all_slots();
    let floor = AtomicU64::new(0);
    let versions = Versions::new(&slots, &values, &floor);
    let relations = versions.relation_slots() as u32 / 2;
    for (database, first) in [(5, 16_384), (16_400, 1), (u32::MAX, u32::MAX - relations + 1)] {
        let distinct: std::collections::HashSet<SlotId> =
            (0..relations).flat_map(|n| versions.of_relation(database, first + n)).collect();
        assert_eq!(distinct.len(), versions.relation_slots(), "in database {database}");
    }
}

#[test]
fn slots_grow_with_the_block_within_bounds() {
    let counts = |memory: usize| (slot_count(memory) - FIXED_SLOTS, value_count(memory));
    assert_eq!(counts(0), (8192, 65_536));
    assert_eq!(counts(16 << 20), (8192, 131_072));
    assert_eq!(counts(64 << 20), (32_768, 524_288));
    assert_eq!(counts(256 << 20), (131_072, 2_097_152));
    assert_eq!(counts(1 << 30), (131_072, 8_388_608));
    assert_eq!(counts(64 << 30), (131_072, 8_388_608));
}

/// Writers store states whose parts belong together; a reader that ever sees parts of two states has read a torn slot.
fn race(writers: u64, rounds: u64, whole: impl Fn(&SlotState) -> bool + Sync) {
    let slot = slot();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..writers)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        let xid = 1000 + slot.read().version + 1;
                        slot.publish(xid, u64::MAX, |_| false, xid as i64);
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while !done.load(Relaxed) {
                    let state = slot.read();
                    assert!(state.version >= last);
                    last = state.version;
                    assert!(last == 0 || whole(&state), "torn: {state:?}");
                }
            });
        }
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Relaxed);
    });
    assert_eq!(slot.read().version, writers * rounds);
}

const ROUNDS: u64 = if cfg!(miri) { 30 } else { 20_000 };

#[test]
fn reads_are_never_torn_by_one_writer() {
    race(1, ROUNDS, |state| {
        let xid = 1000 + state.version;
        state.pending == [xid, 0, 0] && state.last_change == xid as i64 && state.window == NO_WINDOW
    });
}

#[test]
fn reads_are_never_torn_by_two_writers() {
    race(2, ROUNDS, |state| {
        let xid = state.last_change as u64;
        state.pending.contains(&xid) || state.window.holds(xid)
    });
}
