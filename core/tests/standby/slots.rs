//! The few slots that matter to one relation of one database. Their numbers, floors and states come from the real code.

use arrow_cache_core::versions::slot::{Slot, SlotState};
use arrow_cache_core::versions::slots::{LEAST_SLOTS, SlotId, Versions};
use arrow_cache_core::versions::snapshot::SnapshotView;
use arrow_cache_core::versions::value_slot::ValueSlot;
use std::hash::{Hash, Hasher};
use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;

const DATABASE: u32 = 5;
const RELATION: u32 = 16_400;
/// Numbers of files.
const FILES: [u32; 2] = [16_400 + 7, 16_400 + 9];

/// Places of the slots in [`Slots`].
pub const OID: usize = 0;
pub const FILE: [usize; 2] = [1, 2];
pub const DDL: usize = 3;
pub const CATALOGS: usize = 4;
pub const COUNT: usize = 5;

/// The slots and the floor, as a part of the world.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Slots {
    states: [SlotState; COUNT],
    floor: u64,
}

/// States of one version hardly ever differ.
impl Hash for Slots {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.floor.hash(hasher);
        self.states.iter().for_each(|state| state.version.hash(hasher));
    }
}

type Block = (Vec<Slot>, [ValueSlot; 1]);

fn new_block() -> Block {
    // Sixteen places for relations, of two slots each. Replay knows no values.
    ((0..LEAST_SLOTS + 30).map(|_| Slot::from(SlotState::default())).collect(), [ValueSlot::from(0)])
}

fn versions<'a>((slots, values): &'a Block, floor: &'a AtomicU64) -> Versions<'a> {
    Versions::new(slots, values, floor)
}

/// The ids of the slots, all of which differ.
pub fn ids() -> [SlotId; COUNT] {
    let (block, floor) = (new_block(), AtomicU64::new(0));
    let versions = versions(&block, &floor);
    let [first, second] = FILES.map(|file| versions.relation(DATABASE, file));
    let oid = versions.relation(DATABASE, RELATION);
    assert!(oid != first && oid != second && first != second, "slots that are shared hide what is missed");
    [oid, first, second, versions.ddl(DATABASE), versions.catalogs(DATABASE)]
}

/// What beginning anew does to a new block: the floor, and the places of slots that move.
pub fn beginning_anew(next: u64) -> (u64, Vec<usize>) {
    let (block, floor) = (new_block(), AtomicU64::new(0));
    let versions = versions(&block, &floor);
    versions.begin_anew(next, 0);
    let moved = ids().into_iter().enumerate().filter(|(_, id)| versions.slot(*id).version() > 0);
    (versions.base_floor(), moved.map(|(place, _)| place).collect())
}

impl Slots {
    pub fn read(&self, place: usize) -> SlotState {
        Slot::from(self.states[place]).read()
    }

    pub fn change(&mut self, place: usize, change: impl FnOnce(&Slot)) {
        let slot = Slot::from(self.states[place]);
        change(&slot);
        self.states[place] = slot.read();
    }

    pub fn raise_floor(&mut self, floor: u64) {
        self.floor = self.floor.max(floor);
    }

    pub fn forget_floor(&mut self) {
        self.floor = 0;
    }

    pub fn ensure_floor(&mut self, next: u64) {
        self.with_floor(|versions| versions.ensure_floor(next));
    }

    pub fn above_floor(&mut self, snapshot: &SnapshotView<'_>) -> bool {
        self.with_floor(|versions| versions.above_base_floor(snapshot))
    }

    fn with_floor<R>(&mut self, act: impl FnOnce(&Versions<'_>) -> R) -> R {
        let mut floor = AtomicU64::new(self.floor);
        // No slot is asked for.
        static BLOCK: LazyLock<Block> = LazyLock::new(new_block);
        let result = act(&versions(&BLOCK, &floor));
        self.floor = *floor.get_mut();
        result
    }
}
