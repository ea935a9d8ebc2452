//! Waiting for slots to move.

use super::search::{both, zeroed};
use crate::atomics::AtomicU64;
use crate::cache::awaited::{Awaited, Head, SlotBits, Waiter};
use crate::versions::slot::Slot;
use crate::versions::slots::{LEAST_SLOTS, Versions};
use crate::versions::value_slot::ValueSlot;

struct Slots([Slot; LEAST_SLOTS], [ValueSlot; 1]);
struct Waiters([Waiter; 2]);

fn parts() -> (Awaited<'static>, Versions<'static>) {
    let slots = zeroed::<Slots>();
    let versions = Versions::new(&slots.0, &slots.1, zeroed::<AtomicU64>());
    (Awaited::new(zeroed::<Head>(), &zeroed::<Waiters>().0), versions)
}

/// Whoever has not seen a slot moved when it begins to sleep is woken by the one who moves it.
pub fn woken() {
    let (awaited, versions) = parts();
    for slot in [versions.ddl(1), versions.value(1, 2, 3, 4)] {
        let before = versions.version(slot);
        let sleep = move || {
            let mut slots = SlotBits::NONE;
            slots.add(slot);
            assert!(awaited.enter(1, &slots), "there is a place");
            versions.version(slot) == before
        };
        let write = move || {
            versions.publish(slot, 9, 9, |_| false, 1);
            let mut moved = SlotBits::NONE;
            awaited.add_awaited([slot], &mut moved) && awaited.waiting_for(&moved).eq([1])
        };
        let (sleeps, is_woken) = both(sleep, write);
        assert!(!sleeps || is_woken, "it sleeps on");
        awaited.leave(1);
        assert_eq!(awaited.count(), 0);
    }
}

/// The same of one who wakes all.
pub fn woken_with_all() {
    let (awaited, versions) = parts();
    let slot = versions.ddl(1);
    let sleep = move || {
        let mut slots = SlotBits::NONE;
        slots.add(slot);
        assert!(awaited.enter(0, &slots), "there is a place");
        versions.version(slot) == 0
    };
    let write = move || {
        versions.slot(slot).bump(1);
        awaited.all().eq([0])
    };
    let (sleeps, is_woken) = both(sleep, write);
    assert!(!sleeps || is_woken, "it sleeps on");
}
