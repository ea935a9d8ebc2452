//! Relations that are taken in and out.

use super::search::{both, zeroed};
use crate::atomics::AtomicU64;
use crate::versions::columns::Wish;
use crate::versions::places::LINES;
use crate::versions::slot::Slot;
use crate::versions::slots::{LEAST_SLOTS, Versions};
use crate::versions::tracked::{Line, Registry};
use crate::versions::value_slot::ValueSlot;

const WISH: Wish = Wish { database: 1, relation: 5, column: 3, set: 0 };

struct Slots([Slot; LEAST_SLOTS], [ValueSlot; 1]);
struct Lines([Line; LINES]);

fn block() -> (Registry<'static>, Versions<'static>) {
    let slots = zeroed::<Slots>();
    (Registry::new(&zeroed::<Lines>().0), Versions::new(&slots.0, &slots.1, zeroed::<AtomicU64>()))
}

fn coarse_version(versions: Versions<'_>) -> u64 {
    versions.slot(versions.coarse(1, 5)).version()
}

/// Whoever may rest on values reads a version from after the past was published.
pub fn taken_in() {
    let (registry, versions) = block();
    let read = move || {
        if let Some(tracked) = registry.settled_columns_of(1, 5) {
            assert_eq!(tracked.columns, [3, 0, 0, 0], "torn");
            assert_eq!(coarse_version(versions), 1, "the past is published too late");
        }
    };
    both(move || registry.take_in(&WISH, &versions, 0, || 100), read);
}

/// Whoever reads the version from after the end may not rest on values any more.
pub fn taken_out() {
    let (registry, versions) = block();
    registry.take_in(&WISH, &versions, 0, || 100);
    let write = move || {
        let closing = registry.close(1, 5, 1).unwrap();
        versions.slot(versions.coarse(1, 5)).bump(0);
        registry.free(closing);
    };
    let read = move || {
        if coarse_version(versions) == 2 {
            assert!(registry.settled_columns_of(1, 5).is_none(), "it is hidden too late");
        }
    };
    both(write, read);
}
