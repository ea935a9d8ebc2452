//! The registry of tracked relations, one rule at a time; torn reads.

use arrow_cache_core::versions::columns::{
    EACH_ROW, MOST_COLUMNS, QUIET, QuietColumns, TrackedColumns, Wish, bit_of, bits_of, members, pair, together,
};
use arrow_cache_core::versions::places::LINES;
use arrow_cache_core::versions::slot::{Slot, SlotState};
use arrow_cache_core::versions::slots::{Versions, slot_count, value_count};
use arrow_cache_core::versions::snapshot::SnapshotView;
use arrow_cache_core::versions::tracked::{Line, LineState, Registry, TrackedRelation};
use arrow_cache_core::versions::value_slot::ValueSlot;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

const MINUTE: i64 = 60_000_000;

struct Block {
    lines: Box<[Line; LINES]>,
    slots: Vec<Slot>,
    values: Vec<ValueSlot>,
    floor: AtomicU64,
}

impl Block {
    fn new() -> Self {
        let lines: Vec<Line> = (0..LINES).map(|_| Line::from(LineState::default())).collect();
        let slots = (0..slot_count(0)).map(|_| Slot::from(SlotState::default())).collect();
        Self {
            lines: lines.try_into().unwrap_or_else(|_| unreachable!("as many as there are")),
            slots,
            values: (0..value_count(0)).map(|_| ValueSlot::from(0)).collect(),
            floor: AtomicU64::new(1),
        }
    }

    fn registry(&self) -> Registry<'_> {
        Registry::new(&self.lines)
    }

    fn versions(&self) -> Versions<'_> {
        Versions::new(&self.slots, &self.values, &self.floor)
    }

    fn take_in(&self, relation: u32, column: i16, now: i64) {
        self.take_in_for(&wish(relation, column), now);
    }

    fn take_in_for(&self, wish: &Wish, now: i64) {
        self.registry().take_in(wish, &self.versions(), now, || 100);
    }

    fn columns(&self, relation: u32) -> Option<Vec<i16>> {
        self.registry().settled_columns_of(5, relation).map(|tracked| tracked.iter().collect())
    }

    fn coarse(&self, relation: u32) -> SlotState {
        self.versions().slot(self.versions().coarse(5, relation)).read()
    }
}

fn wish(relation: u32, column: i16) -> Wish {
    Wish { database: 5, relation, column, set: 0 }
}

fn quiet(set: u64) -> Wish {
    Wish { set, ..wish(7, QUIET) }
}

/// Another relation with the same line.
fn neighbour(relation: u32) -> u32 {
    relation + LINES as u32
}

#[test]
fn a_relation_is_tracked_by_its_columns() {
    let block = Block::new();
    assert_eq!((block.columns(7), block.registry().columns_of(5, 7)), (None, None));
    block.take_in(7, 3, 9);
    assert_eq!(block.columns(7), Some(vec![3]));
    assert_eq!(block.registry().columns_of(5, 7), block.registry().settled_columns_of(5, 7));
    assert_eq!((block.columns(8), block.registry().columns_of(6, 7)), (None, None));
    assert!(!block.registry().may_track(5, 8) && !block.registry().may_track(6, 7));
    let all: Vec<_> = block.registry().all().collect();
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].database, all[0].relation, all[0].since), (5, 7, 9));
}

/// Whoever writes asks first whether any relation is tracked.
#[test]
fn tracked_relations_are_counted() {
    let block = Block::new();
    let usage = || block.registry().usage();
    let at_first = usage();
    assert!(at_first.is_none());
    block.take_in(7, 3, 9);
    let with_one = usage();
    assert!(!with_one.is_none());
    // Another column, and one that cannot be taken in.
    block.take_in(7, 4, 9);
    block.take_in(7, 4, 9);
    assert!(with_one != usage() && !usage().is_none());
    block.take_in(8, 1, 9);
    for relation in [7, 8] {
        assert!(!usage().is_none());
        let generation = block.registry().columns_of(5, relation).unwrap().generation;
        block.registry().take_out((5, relation, generation), &block.versions(), 10);
        // Nobody is counted twice.
        block.registry().take_out((5, relation, generation), &block.versions(), 10);
    }
    assert!(usage().is_none());
    assert_ne!(usage(), at_first);
}

/// Nobody knows who has changed it before.
#[test]
fn the_past_is_published_for_each_column() {
    let block = Block::new();
    let sees =
        |state: SlotState, xmin| state.seen_whole(&SnapshotView { xmin, xmax: 200, in_progress: &[xmin as u32] });
    let unknown = |column| block.versions().slot(block.versions().unknown(5, 7, column)).read();
    block.take_in(7, 3, 0);
    assert_eq!((block.coarse(7).version, sees(block.coarse(7), 99), sees(block.coarse(7), 100)), (1, false, true));
    block.take_in(7, 3, 0);
    assert_eq!(block.coarse(7).version, 1, "it was tracked");
    let before = block.registry().columns_of(5, 7).unwrap();
    block.take_in(7, -4, 0);
    assert_eq!((block.coarse(7).version, block.columns(7)), (1, Some(vec![3, -4])), "answers over the first one stay");
    assert_eq!((sees(unknown(-4), 99), sees(unknown(-4), 100)), (false, true));
    assert_ne!(block.registry().columns_of(5, 7).unwrap().generation, before.generation);
    // Nothing is left that was stored when less was quiet, and writers of before publish more.
    let before = block.coarse(7);
    block.take_in_for(&quiet(0b11_0000), 0);
    assert_ne!(block.coarse(7).version, before.version);
    assert!(sees(block.coarse(7), 100));
}

/// As a transaction compares what it has noted by with what is tracked when it ends.
#[test]
fn columns_are_added_as_long_as_the_relation_is_tracked() {
    let block = Block::new();
    let tracked = || block.registry().columns_of(5, 7).unwrap();
    let added = |before: &TrackedColumns| tracked().added_since(before).map(|added| added.collect::<Vec<_>>());
    block.take_in(7, 3, 0);
    let first = tracked();
    block.take_in(7, 4, 0);
    let second = tracked();
    assert_eq!((added(&first), added(&second)), (Some(vec![4]), Some(vec![])));
    block.take_in(7, 5, 0);
    assert_eq!((added(&first), added(&second)), (Some(vec![4, 5]), Some(vec![5])));
    block.registry().take_out((5, 7, tracked().generation), &block.versions(), 0);
    for column in 3..7 {
        block.take_in(7, column, 0);
        assert_eq!((added(&first), added(&second)), (None, None), "it was taken out meanwhile");
    }
}

#[test]
fn there_is_room_for_some_columns() {
    let block = Block::new();
    for column in 1..=MOST_COLUMNS as i16 + 1 {
        block.take_in(7, column, 0);
    }
    assert_eq!(block.columns(7), Some((1..=MOST_COLUMNS as i16).collect()));
    assert_eq!(block.coarse(7).version, 1);
}

#[test]
fn the_last_place_is_for_a_column_alone() {
    let block = Block::new();
    let pairs = [pair(1, 2).unwrap(), pair(1, 3).unwrap(), pair(1, 4).unwrap()];
    block.take_in(7, 1, 0);
    pairs.iter().for_each(|both| block.take_in(7, *both, 0));
    assert_eq!(block.columns(7), Some(vec![1, pairs[0], pairs[1]]));
    block.take_in(7, 5, 0);
    assert_eq!(block.columns(7), Some(vec![1, pairs[0], pairs[1], 5]));
    let tracked = block.registry().columns_of(5, 7).unwrap();
    assert_eq!([1, pairs[1], 5, 6].map(|column| tracked.place_of(column)), [Some(0), Some(2), Some(3), None]);
}

#[test]
fn writers_know_of_it_from_the_first_step_to_the_last() {
    let block = Block::new();
    let registry = block.registry();
    let known = || {
        assert_eq!(registry.may_track(5, 7), registry.columns_of(5, 7).is_some());
        registry.may_track(5, 7)
    };
    let opening = registry.open(&wish(7, 3), 0).unwrap();
    assert!(known() && block.columns(7).is_none());
    assert!(registry.open(&wish(7, 4), 0).is_none(), "somebody else is taking it in");
    registry.settle(opening);
    let generation = registry.columns_of(5, 7).unwrap().generation;
    assert!(registry.close(5, 7, generation + 1).is_none());
    let closing = registry.close(5, 7, generation).unwrap();
    assert!(known() && block.columns(7).is_none());
    assert!(registry.open(&wish(7, 4), 0).is_none());
    registry.settle(opening);
    assert!(block.columns(7).is_none(), "it was settled before");
    registry.free(closing);
    assert!(!known());
    let _ = registry.open(&wish(7, 4), 0).unwrap();
    assert_eq!(registry.columns_of(5, 7).unwrap().iter().collect::<Vec<_>>(), [4]);
    assert!(registry.columns_of(5, 7).unwrap().generation > generation, "a generation comes once");
}

#[test]
fn a_relation_that_is_of_no_use_gives_way() {
    let block = Block::new();
    let other = neighbour(7);
    block.take_in(7, 3, 0);
    block.take_in(other, 3, 9 * MINUTE);
    assert_eq!((block.columns(7), block.columns(other)), (Some(vec![3]), None));
    block.registry().note_use(5, 7, 5 * MINUTE);
    block.take_in(other, 3, 14 * MINUTE);
    assert_eq!((block.columns(7), block.columns(other)), (Some(vec![3]), None));
    let before = block.coarse(7).version;
    block.take_in(other, 4, 15 * MINUTE);
    assert_eq!((block.columns(7), block.columns(other)), (None, Some(vec![4])));
    // They share that slot: it moves once for the one that goes, and once for the one that comes.
    assert_eq!(block.coarse(7).version, before + 2);
}

#[test]
fn a_relation_is_taken_out_as_it_was_seen() {
    let block = Block::new();
    let other = neighbour(7);
    block.take_in(7, 3, 0);
    assert!(block.registry().beside(5, 7).is_none());
    let take_out = |seen: &TrackedRelation| {
        block.registry().take_out((seen.database, seen.relation, seen.tracked.generation), &block.versions(), 0);
    };
    let (seen, last_use) = block.registry().beside(5, other).unwrap();
    assert_eq!((seen.database, seen.relation, last_use), (5, 7, 0));
    block.take_in(7, 4, 0);
    take_out(&seen);
    assert_eq!(block.columns(7), Some(vec![3, 4]), "it has another column now");
    let (seen, _) = block.registry().beside(5, other).unwrap();
    let before = block.coarse(7).version;
    take_out(&seen);
    assert_eq!((block.columns(7), block.coarse(7).version), (None, before + 1));
}

#[test]
fn wishes_are_counted_until_there_are_enough() {
    let block = Block::new();
    let registry = block.registry();
    let wish = |relation, column| registry.wish(&wish(relation, column)).is_some();
    assert!((0..7).all(|_| !wish(7, 3)));
    assert!(wish(7, 3));
    assert!((0..7).all(|_| !wish(7, 3)), "it begins anew");
    // Others weigh against it.
    let other = neighbour(7);
    assert!((0..3).all(|_| !wish(other, 3)) && (0..3).all(|_| !wish(7, 3)));
    assert!(wish(7, 3));
    assert!((0..20).all(|_| !wish(7, 3) && !wish(other, 3)));
    // A wish for any column counts more than those for each row.
    assert!((0..7).all(|_| !wish(7, 5)) && (0..9).all(|_| !wish(7, EACH_ROW)) && wish(7, 5));
    assert!((0..7).all(|_| !wish(7, EACH_ROW)) && (0..7).all(|_| !wish(7, 5)) && wish(7, 5));
}

/// A page asks the same statements in turn: neither takes from the other.
#[test]
fn wishes_for_several_columns_are_counted_side_by_side() {
    let block = Block::new();
    let registry = block.registry();
    let wish = |column| registry.wish(&wish(7, column)).is_some();
    assert!((0..7).all(|_| !wish(3) && !wish(4) && !wish(5)));
    assert!(wish(3) && wish(4) && wish(5));
    // A fourth one weighs against those, and comes in their place when they are no more.
    assert!((0..6).all(|_| !wish(3) && !wish(4) && !wish(5)));
    assert!((0..6).all(|_| !wish(6)) && (0..7).all(|_| !wish(6)) && wish(6));
    assert!((0..7).all(|_| !wish(3)) && wish(3));
}

#[test]
fn two_columns_are_tracked_as_one() {
    let both = pair(9, 4).unwrap();
    assert_eq!((pair(4, 9), members(both)), (Some(both), (4, Some(9))));
    for (one, other) in [(4, 4), (0, 4), (-1, 4), (4, 64), (EACH_ROW, 4), (both, 4)] {
        assert_eq!(pair(one, other), None, "{one} and {other}");
    }
    assert!(
        (1..64).flat_map(|b| (1..b).map(move |a| (a, b))).all(|(a, b)| members(pair(a, b).unwrap()) == (a, Some(b)))
    );
    assert!([1, 63, 64, 1600, EACH_ROW, -3, 0].iter().all(|column| members(*column) == (*column, None)));
    assert_eq!((bits_of(both), bits_of(4)), (bit_of(4) | bit_of(9), bit_of(4)));
    // The order in which they are named is of no account, that of the values is.
    assert_eq!(together((4, 1), (9, 2)), together((9, 2), (4, 1)));
    assert_ne!(together((4, 1), (9, 2)), together((4, 2), (9, 1)));
    assert_eq!(together((4, 1), (9, 2)).unwrap().0, both);
    assert_eq!(together((4, 1), (4, 2)), None);
    // A change of either changes the pair.
    let block = Block::new();
    block.take_in(7, both, 0);
    let tracked = block.registry().columns_of(5, 7).unwrap();
    assert!(tracked.keeps(bit_of(5)) && !tracked.keeps(bit_of(4)) && !tracked.keeps(bit_of(9)));
}

#[test]
fn lines_are_read_as_a_whole() {
    let block = Block::new();
    let rounds = if cfg!(miri) { 20 } else { 5000 };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let write = || {
            for round in 0..rounds {
                let number = (round % 4 + 1) as i16;
                let opening = block.registry().open(&wish(7, number), round).unwrap();
                block.registry().settle(opening);
                let TrackedColumns { generation, .. } = block.registry().columns_of(5, 7).unwrap();
                let closing = block.registry().close(5, 7, generation).unwrap();
                block.registry().free(closing);
            }
            done.store(true, Relaxed);
        };
        scope.spawn(write);
        scope.spawn(|| {
            while !done.load(Relaxed) {
                if let Some(tracked) = block.registry().columns_of(5, 7) {
                    let number = ((tracked.generation - 1) % 4 + 1) as i16;
                    assert_eq!(tracked.columns, [number, 0, 0, 0]);
                }
            }
        });
    });
}

#[test]
fn quiet_columns_become_more() {
    let block = Block::new();
    let tracked = || block.registry().columns_of(5, 7).unwrap();
    let all = || tracked().quiet.iter().collect::<Vec<_>>();
    block.take_in_for(&quiet(1 << 6), 0);
    assert_eq!(block.columns(7), None, "it is not tracked");
    block.take_in(7, 3, 0);
    let before = (tracked(), block.coarse(7).version);
    block.take_in_for(&quiet(1 << 6 | 1 << 3), 0);
    assert_eq!((all(), block.columns(7)), (vec![(0, 3), (1, 6)], Some(vec![3])));
    assert_eq!(block.coarse(7).version, before.1 + 1);
    assert!(tracked().added_since(&before.0).is_none(), "what was noted before says nothing now");
    // The same, one behind the 63rd, and too many at once.
    let before = tracked();
    for set in [0, 1 << 6, 1 | 1 << 8, 0b1_1111 << 20, u64::MAX] {
        block.take_in_for(&quiet(set), 0);
        assert_eq!(tracked(), before, "{set:x}");
    }
    block.take_in_for(&quiet(0b1111 << 20), 0);
    // There is room for one of two, or for the other.
    block.take_in_for(&quiet(1 << 40), 0);
    block.take_in_for(&quiet(0b11 << 30), 0);
    assert_eq!(tracked().quiet.bits(), 1 << 3 | 1 << 6 | 0b1111 << 20 | 1 << 40);
    block.take_in_for(&quiet(1 << 63), 0);
    assert_eq!(all().last(), Some(&(7, 63)));
    block.take_in_for(&quiet(1 << 8), 0);
    assert_eq!(tracked().quiet.bits().count_ones(), 8);
    // Another column leaves them, and the next relation begins with none.
    let before = tracked();
    block.take_in(7, 6, 0);
    assert_eq!(tracked().added_since(&before).unwrap().collect::<Vec<_>>(), [6]);
    block.registry().take_out((5, 7, tracked().generation), &block.versions(), 0);
    block.take_in(7, 3, 0);
    assert_eq!(tracked().quiet, QuietColumns::default());
}

#[test]
fn an_update_of_quiet_columns_sets_no_others() {
    let columns = QuietColumns::default().with(0b1_0110_0000).unwrap();
    assert!([1 << 5, 1 << 6 | 1 << 8, 0b1_0110_0000].iter().all(|set| columns.are_all(*set)));
    assert!([0, 1 << 7, 1 << 5 | 1 << 7, 1, u64::MAX].iter().all(|set| !columns.are_all(*set)));
    assert_eq!(columns.among(1 << 8 | 1 << 5 | 1 << 2).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(columns.among(u64::MAX).count(), 3);
    let many = columns.with(0b110 << 20).unwrap();
    assert!(many.are_all(0b110 << 20 | 0b110_0000) && !many.are_all(0b110 << 20 | 0b1_0110_0000), "too many");
}

#[test]
fn wishes_have_in_common_what_they_set() {
    let block = Block::new();
    let wish = |set| block.registry().wish(&quiet(set));
    let all: Vec<_> = [0b1100, 0b1010, 0b1000, 0b11_0000, 0b1000, 0b1100, 0b1100, 0b1100].map(wish).into();
    assert_eq!(all.last().unwrap().unwrap().set, 0b1000);
    assert!((0..7).all(|_| wish(0b11_0000).is_none()));
    assert_eq!(wish(0b11_0000).unwrap().set, 0b11_0000, "those of before do not count");
    // They are of no account for those of columns, nor these for them.
    let each_row = || block.registry().wish(&for_each_row());
    assert!((0..7).all(|_| wish(0b1100).is_none() && each_row().is_none()));
    assert!(each_row().is_some() && wish(0b1100).is_some());
}

fn for_each_row() -> Wish {
    wish(7, EACH_ROW)
}

#[test]
fn what_is_tracked_in_vain_is_given_back() {
    let block = Block::new();
    let publish = |is_quiet, times| {
        for _ in 0..times {
            let generation = block.registry().columns_of(5, 7).unwrap().generation;
            block.registry().note_publication((5, 7, generation), is_quiet, &block.versions(), MINUTE);
        }
    };
    block.take_in(7, EACH_ROW, 0);
    publish(false, 999);
    publish(true, 1);
    publish(false, 999);
    assert_eq!(block.columns(7), Some(vec![EACH_ROW]));
    let before = block.coarse(7).version;
    publish(false, 1);
    assert_eq!((block.columns(7), block.coarse(7).version), (None, before + 1));
    block.take_in(7, EACH_ROW, 10 * MINUTE);
    assert_eq!(block.columns(7), None);
    block.take_in(neighbour(7), EACH_ROW, 10 * MINUTE);
    assert_eq!(block.columns(neighbour(7)), Some(vec![EACH_ROW]), "another one may");
}

#[test]
fn it_may_be_taken_in_again() {
    let block = Block::new();
    block.take_in(7, EACH_ROW, 0);
    for _ in 0..1000 {
        let generation = block.registry().columns_of(5, 7).unwrap().generation;
        block.registry().note_publication((5, 7, generation), false, &block.versions(), MINUTE);
    }
    block.take_in(7, EACH_ROW, 11 * MINUTE);
    assert_eq!(block.columns(7), Some(vec![EACH_ROW]));
    block.take_in(7, 3, 11 * MINUTE);
    assert_eq!(block.columns(7), Some(vec![EACH_ROW, 3]));
}
