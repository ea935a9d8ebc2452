//! Slots, snapshots and the base floor, one rule at a time; torn reads.

use arrow_cache_core::versions::{
    DATABASE_SLOTS, FIXED_SLOTS, PENDING, Slot, SlotId, SlotState, SnapshotView, Versions, slot_count,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

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
fn a_lone_publisher_stands_for_all() {
    let slot = slot();
    slot.publish(10, 10, |_| panic!("nobody to ask about"), 1);
    slot.publish(
        11,
        11,
        |other| {
            assert_eq!(other, 10);
            false
        },
        2,
    );
    assert_eq!(slot.read(), SlotState { version: 2, floor: 0, pending: [11, 0, 0, 0], last_change: 2 });
    // Still running: both are remembered.
    slot.publish(12, 11, |_| true, 3);
    assert_eq!(slot.read().pending, [11, 12, 0, 0]);
    assert_eq!(slot.read().version, 3);
}

#[test]
fn publishing_twice_is_remembered_once() {
    let slot = slot();
    slot.publish(10, 10, |_| true, 1);
    slot.publish(11, 10, |_| true, 1);
    slot.publish(11, 10, |_| true, 1);
    assert_eq!(slot.read().pending, [10, 11, 0, 0]);
    assert_eq!(slot.read().version, 3);
}

#[test]
fn the_smallest_goes_into_the_floor() {
    let slot = slot();
    for xid in [14, 11, 13, 12] {
        slot.publish(xid, 11, |_| true, 0);
    }
    slot.publish(15, 11, |_| true, 0);
    assert_eq!(slot.read().floor, 11);
    slot.publish(10, 10, |_| true, 0);
    // The floor only rises.
    assert_eq!(slot.read().floor, 11);
    slot.publish(16, 10, |_| true, 0);
    let state = slot.read();
    let mut pending = state.pending;
    pending.sort_unstable();
    assert_eq!((state.floor, pending), (12, [13, 14, 15, 16]));
    assert!(!state.seen_whole(&snapshot(12, 20, &[])));
    assert!(state.seen_whole(&snapshot(13, 20, &[])));
    assert!(!state.seen_whole(&snapshot(13, 20, &[14])));
}

#[test]
fn a_floor_that_somebody_may_not_see_is_kept() {
    let state = SlotState { version: 5, floor: 20, pending: [0; PENDING], last_change: 0 };
    let slot = Slot::from(state);
    slot.publish(30, 20, |_| false, 0);
    assert_eq!(slot.read().floor, 20);
    assert_eq!(slot.read().pending, [30, 0, 0, 0]);
    slot.publish(31, 21, |_| false, 0);
    assert_eq!(slot.read().floor, 0);
    assert_eq!(slot.read().pending, [31, 0, 0, 0]);
}

#[test]
fn a_slot_that_moves_while_asking_is_looked_at_again() {
    let slot = slot();
    slot.publish(10, 10, |_| true, 0);
    let mut asked = Vec::new();
    slot.publish(
        12,
        11,
        |other| {
            if asked.is_empty() {
                // Somebody publishes between the look and the lock, and keeps running.
                slot.publish(11, 11, |_| false, 0);
            }
            asked.push(other);
            other == 11
        },
        0,
    );
    assert_eq!(asked, [10, 11]);
    assert_eq!(slot.read().pending, [11, 12, 0, 0]);
    assert_eq!(slot.read().version, 3);
}

#[test]
fn a_slot_that_never_rests_still_gets_the_publication() {
    let slot = slot();
    slot.publish(10, 10, |_| true, 0);
    let mut bumps = 0;
    slot.publish(
        11,
        11,
        |_| {
            slot.bump(0);
            bumps += 1;
            false
        },
        0,
    );
    assert!(bumps < 100);
    assert_eq!(slot.read().pending, [10, 11, 0, 0]);
    assert_eq!(slot.read().version, 2 + bumps);
}

#[test]
fn bump_moves_the_version_alone() {
    let slot = slot();
    slot.publish(10, 10, |_| true, 1);
    slot.bump(7);
    assert_eq!(slot.read(), SlotState { version: 2, floor: 0, pending: [10, 0, 0, 0], last_change: 7 });
}

fn all_slots() -> Vec<Slot> {
    (0..slot_count(0)).map(|_| slot()).collect()
}

#[test]
fn the_base_floor_is_set_once_and_hides_the_past() {
    let slots = all_slots();
    let floor = AtomicU64::new(0);
    let versions = Versions::new(&slots, &floor);
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
fn kinds_of_slots_do_not_overlap() {
    let slots = all_slots();
    let floor = AtomicU64::new(0);
    let versions = Versions::new(&slots, &floor);
    for n in 0..200 {
        assert!((FIXED_SLOTS..slots.len()).contains(&(versions.relation(n, n * 7).0 as usize)));
        let kinds = [versions.ddl(n), versions.wildcard(n), versions.enums(n), versions.catalogs(n)];
        for (kind, slot) in kinds.into_iter().enumerate() {
            assert_eq!(slot.0 as usize / DATABASE_SLOTS, kind);
        }
    }
    let distinct: std::collections::HashSet<SlotId> = (0..1000).map(|oid| versions.relation(5, 16_384 + oid)).collect();
    assert!(distinct.len() > 900, "neighbouring ids share slots: {}", distinct.len());
    assert_ne!(versions.relation(1, 2), versions.relation(2, 1));
}

#[test]
fn slots_grow_with_the_block_within_bounds() {
    let relations = |memory: usize| slot_count(memory) - FIXED_SLOTS;
    assert_eq!(relations(0), 8192);
    assert_eq!(relations(64 << 20), 16_384);
    assert_eq!(relations(256 << 20), 65_536);
    assert_eq!(relations(64 << 30), 65_536);
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
        state.pending == [xid, 0, 0, 0] && state.last_change == xid as i64 && state.floor == 0
    });
}

#[test]
fn reads_are_never_torn_by_two_writers() {
    // A writer that lost the race too often publishes beside the others, so the last one is among them or below the floor.
    race(2, ROUNDS, |state| {
        let xid = state.last_change as u64;
        state.pending.contains(&xid) || state.floor >= xid
    });
}
