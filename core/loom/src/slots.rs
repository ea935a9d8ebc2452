//! The slots of versions.

use super::search::{both, zeroed};
use crate::atomics::AtomicU64;
use crate::versions::slot::{Slot, SlotState};
use crate::versions::slots::{LEAST_SLOTS, Versions};
use crate::versions::value_slot::ValueSlot;

struct Slots([Slot; LEAST_SLOTS], [ValueSlot; 1]);

fn slot() -> &'static Slot {
    zeroed::<Slot>()
}

/// Publishers and times belong to the version they are read with.
pub fn read_as_a_whole() {
    let slot = slot();
    let read = move || {
        let state = slot.read();
        let is_whole = |state: &SlotState| {
            let SlotState { version, pending: [first, ..], last_change, .. } = *state;
            [(0, 0, 0), (1, 7, 70)].contains(&(version, first, last_change))
        };
        assert!(is_whole(&state), "torn: {state:?}");
        assert!(slot.try_read().is_none_or(|state| is_whole(&state)), "torn");
    };
    both(move || slot.publish_replayed(7, 70), read);
}

/// Neither is lost.
pub fn two_publishers() {
    let slot = slot();
    both(move || slot.publish(8, 1, |_| true, 80), move || slot.publish(7, 1, |_| true, 70));
    let state = slot.read();
    assert!(state.version == 2 && state.pending.contains(&7) && state.pending.contains(&8), "lost: {state:?}");
}

/// Nor are they beside a third, which still runs, so that nobody takes its place.
pub fn two_beside_a_third() {
    let slot = slot();
    slot.publish(5, 1, |_| true, 50);
    both(move || slot.publish(8, 1, |_| true, 80), move || slot.publish(7, 1, |_| true, 70));
    let state = slot.read();
    assert!(state.version == 3 && [5, 7, 8].iter().all(|xid| state.pending.contains(xid)), "lost: {state:?}");
}

/// Whoever sees that one slot has moved sees what was written before: here, that another one has.
pub fn before_visible() {
    let slots = zeroed::<Slots>();
    let write = move || {
        slots.0[0].bump(5);
        slots.0[1].bump(5);
    };
    let read = move || {
        if slots.0[1].version() == 1 {
            assert_eq!(slots.0[0].version(), 1, "it moves too late");
        }
    };
    both(write, read);
}

/// Neither is lost on the slot of a value, and none of its versions comes twice.
pub fn two_publishers_of_a_value() {
    let value = zeroed::<ValueSlot>();
    value.publish(5, 1, |_| true);
    let first = value.version();
    both(move || value.publish(8, 1, |_| true), move || value.publish(7, 1, |_| true));
    let state = value.read();
    assert!(state.version != first && [5, 7, 8].iter().all(|xid| state.window.holds(*xid)), "lost: {state:?}");
}

/// Whoever sees that the slot of a value has moved sees what was written before, by any who have published to it.
pub fn before_a_value() {
    let slots = zeroed::<Slots>();
    let write = |place: usize, xid| {
        slots.0[place].bump(5);
        slots.1[0].publish(xid, 1, |_| true);
    };
    let read = move || {
        let state = slots.1[0].read();
        for (place, xid) in [(0, 7), (1, 8)] {
            let holds = state.window.holds(xid) || state.pending.contains(&xid);
            assert!(!holds || slots.0[place].version() == 1, "it moves too late");
        }
    };
    write(0, 7);
    both(move || write(1, 8), read);
}

/// Whoever reads a slot that has moved reads the higher floor.
pub fn floor() {
    let slots = zeroed::<Slots>();
    let floor = zeroed::<AtomicU64>();
    let versions = Versions::new(&slots.0, &slots.1, floor);
    let read = move || {
        if versions.slot(versions.ddl(1)).version() == 1 {
            assert_eq!(versions.base_floor(), 99, "it rises too late");
        }
    };
    both(move || versions.begin_anew(100, 1), read);
    assert_eq!(versions.base_floor(), 99);
}
