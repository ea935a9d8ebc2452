//! Images: the next store begins with what is current, and with nothing that differs, whatever befalls the file.

mod common;

use arrow_cache_core::cache::{Dependency, EntryKind, NewEntry, NewKind};
use arrow_cache_core::versions::snapshot::SnapshotView;
use arrow_cache_core::{Hash128, Loaded, Origin, Unusable, WalPlace, Wish};
use common::{Block, TestStore, described, fill, key};
use proptest::prelude::*;

const ORIGIN: Origin = Origin { data: Hash128 { hi: 1, lo: 2 }, software: Hash128 { hi: 3, lo: 4 } };
const RELATION: u32 = 42;
const KIB: usize = 1024;

fn put(store: &TestStore<'_>, n: u64, chunks: &[Vec<u8>], new: NewEntry<'_>, now: i64) {
    let fill = fill(store, chunks, now).unwrap();
    store.unpin(store.publish(fill, key(n), new, now).unwrap());
}

/// A store in which two transactions have published, and which has an outdated answer and two current ones.
fn filled(block: &Block) -> TestStore<'_> {
    let store = block.attach(0);
    let versions = store.versions();
    store.set_seed(77);
    versions.ensure_floor(100);
    let (relation, value) = (versions.relation(1, RELATION), versions.value(1, RELATION, 2, 5));
    let old = [Dependency { slot: relation, relation: RELATION, version: versions.version(relation) }];
    put(&store, 1, &[vec![1; 10]], described(b"outdated", &old), 5);
    versions.publish(relation, 200, 200, |_| true, 6);
    versions.publish(value, 201, 200, |_| true, 7);
    let on = [relation, value].map(|slot| Dependency { slot, relation: RELATION, version: versions.version(slot) });
    let mut new = described(b"select 1", &on);
    (new.created_at, new.expires_at, new.known_good) = (5, 1000, 6);
    (new.needs_plan, new.plan_cost, new.catalogs) = (true, 12.5, 9);
    put(&store, 2, &[vec![2; 100], vec![], vec![3; 70_000]], new, 7);
    let part = NewKind::Fragment { most_bytes: 1 << 20 };
    let new = NewEntry { kind: part, keeps_outdated: true, ..described(b"part", &on[1..]) };
    put(&store, 3, &[vec![4; 300]], new, 8);
    put(&store, 4, &[vec![5; 10]], described(b"not kept", &[]), 9);
    store.replay().await_place(WalPlace { end: 1 << 40, timeline: 3 });
    let wish = Wish { database: 1, relation: RELATION, column: 2, set: 0 };
    store.registry().take_in(&wish, &versions, 9, || 300);
    store
}

fn image_of(store: &TestStore<'_>, now: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    store.save(&mut bytes, &ORIGIN, |entry| entry.text() != b"not kept", now).unwrap();
    bytes
}

/// What can be read of all entries.
fn all(store: &TestStore<'_>) -> Vec<String> {
    let mut all = Vec::new();
    store.for_each(|entry| {
        let chunks: Vec<_> = entry.chunks().map(<[u8]>::to_vec).collect();
        let times = (entry.created_at(), entry.expires_at(), entry.known_good(), entry.execution_micros());
        let shape = (entry.rows(), entry.columns(), entry.database(), entry.role(), entry.bytes(), entry.kind());
        let plan = (entry.needs_plan(), entry.plan_cost());
        let rest = (entry.text(), entry.descriptor(), entry.dependencies());
        all.push(format!("{times:?} {shape:?} {plan:?} {rest:?} {chunks:?}"));
    });
    all.sort();
    all
}

#[test]
fn the_next_store_begins_with_what_is_current() {
    let (block, next) = (Block::new(10, 256 * KIB), Block::new(10, 256 * KIB));
    let (store, loaded) = (filled(&block), next.attach(0));
    let image = image_of(&store, 10);
    let outcome = loaded.load(&mut image.as_slice(), &ORIGIN, 10).unwrap();
    assert_eq!((outcome.entries, outcome.lost, outcome.is_cut), (2, 0, false));

    let pin = store.lookup(key(1)).unwrap();
    assert!(store.retire(&pin), "the outdated one is not in the image");
    store.unpin(pin);
    assert_eq!(store.retire_matching(|entry| entry.text() == b"not kept"), 1);
    assert_eq!(all(&loaded), all(&store));
    assert_eq!((loaded.seed(), loaded.past_is_unknown(), loaded.versions().base_floor()), (77, true, 0));
    assert_eq!(loaded.replay().awaited(), Some(WalPlace { end: 1 << 40, timeline: 3 }));
    assert_eq!(loaded.registry().all().collect::<Vec<_>>(), store.registry().all().collect::<Vec<_>>());
    assert_eq!(loaded.registry().usage(), store.registry().usage());
    let pin = loaded.lookup(key(3)).unwrap();
    assert_eq!((loaded.view(&pin).kind(), loaded.keeps_outdated(&pin)), (EntryKind::Fragment, true));
    assert_eq!(loaded.fragment_bytes(), loaded.view(&pin).bytes());
    loaded.unpin(pin);
}

#[test]
fn who_has_published_is_known_to_the_next_store() {
    let (block, next) = (Block::new(10, 256 * KIB), Block::new(10, 256 * KIB));
    let (store, loaded) = (filled(&block), next.attach(0));
    loaded.load(&mut image_of(&store, 10).as_slice(), &ORIGIN, 10).unwrap();
    let versions = loaded.versions();
    versions.ensure_floor(150);
    let (slot, value) = (versions.relation(1, RELATION), versions.value(1, RELATION, 2, 5));
    for (slot, xid) in [(slot, 200), (value, 201)] {
        let running = [xid];
        let prepared = SnapshotView::new(400, xid, 400, &running);
        assert_eq!(versions.seen_whole(slot, &prepared), None, "a prepared transaction still runs");
        let ended = SnapshotView::new(400, 400, 400, &[]);
        assert_eq!(versions.seen_whole(slot, &ended), Some(store.versions().version(slot)));
    }
    let pin = loaded.lookup(key(2)).unwrap();
    versions.publish(slot, 500, 500, |_| true, 11);
    assert!(!loaded.is_current(&pin), "a writer of the next server outdates what was loaded");
    loaded.unpin(pin);
}

#[test]
fn another_origin_tells_nothing() {
    let block = Block::new(10, 256 * KIB);
    let image = image_of(&filled(&block), 10);
    let outcome = |origin: &Origin, now| Block::new(10, 256 * KIB).attach(0).load(&mut image.as_slice(), origin, now);
    let other = Hash128 { hi: 9, lo: 9 };
    assert_eq!(outcome(&Origin { data: other, ..ORIGIN }, 10), Err(Unusable::OtherData));
    assert_eq!(outcome(&Origin { software: other, ..ORIGIN }, 10), Err(Unusable::OtherSoftware));
    assert_eq!(outcome(&ORIGIN, 9), Err(Unusable::ClockWentBack));
    assert!(outcome(&ORIGIN, 11).is_ok());
}

#[test]
fn a_smaller_store_takes_what_has_room() {
    let block = Block::new(10, 256 * KIB);
    let image = image_of(&filled(&block), 10);
    let small = Block::new(10, 16 * KIB);
    let outcome = small.attach(0).load(&mut image.as_slice(), &ORIGIN, 10).unwrap();
    assert_eq!((outcome.entries, outcome.lost), (1, 1));
    // The last one is worth more than what it needs the room of.
    let mut crowd = Vec::new();
    {
        let block = Block::new(4, 256 * KIB);
        let store = block.attach(0);
        for n in 0..4 {
            let new = NewEntry { execution_micros: 10 + 100_000 * n, ..described(b"select 1", &[]) };
            put(&store, n, &[vec![2; 6 * KIB]], new, 5);
        }
        store.save(&mut crowd, &ORIGIN, |_| true, 10).unwrap();
    }
    let small = Block::new(10, 16 * KIB);
    let loaded = small.attach(0);
    let outcome = loaded.load(&mut crowd.as_slice(), &ORIGIN, 10).unwrap();
    assert_eq!((outcome.entries, outcome.lost), (u64::from(loaded.entries()), 4 - u64::from(loaded.entries())));
    assert!((1..4).contains(&outcome.entries));
    let mut bytes = 0;
    loaded.for_each(|entry| bytes += entry.bytes());
    assert_eq!(outcome.bytes, bytes);
    let other_table = Block::new(1, 256 * KIB);
    let outcome = other_table.attach(0).load(&mut image.as_slice(), &ORIGIN, 10).unwrap();
    assert_eq!((outcome.entries, outcome.lost, other_table.attach(0).entries()), (1, 1, 1));
}

/// Loads a damaged image, and looks whether all that is there was in the store.
fn is_harmless(store: &TestStore<'_>, image: &[u8]) -> Result<Loaded, Unusable> {
    let next = Block::new(10, 256 * KIB);
    let loaded = next.attach(0);
    let outcome = loaded.load(&mut &*image, &ORIGIN, 10);
    match outcome {
        Ok(_) => {
            let right = all(store);
            assert!(all(&loaded).iter().all(|entry| right.contains(entry)));
            assert_eq!(loaded.seed(), store.seed());
            assert_eq!(loaded.registry().usage(), store.registry().usage());
            assert_eq!(loaded.replay().awaited(), store.replay().awaited());
            let slots = store.versions().relation_slots() as u32;
            let version = |store: &TestStore<'_>, slot| store.versions().version(arrow_cache_core::SlotId(slot));
            assert!((0..slots).all(|slot| version(&loaded, slot) == version(store, slot)));
        }
        // The caller lays it out anew.
        Err(_) => next.note_damage(),
    }
    outcome
}

#[test]
fn an_image_that_is_cut_costs_what_is_missing() {
    let block = Block::new(10, 256 * KIB);
    let store = filled(&block);
    let image = image_of(&store, 10);
    let mut entries = Vec::new();
    let places = (0..image.len()).step_by(if cfg!(miri) { 40_000 } else { 1999 });
    for len in places.chain([image.len() - 1]) {
        entries.push(is_harmless(&store, &image[..len]).map_or(0, |loaded| {
            assert!(loaded.is_cut);
            loaded.entries
        }));
    }
    assert!(entries.is_sorted(), "{entries:?}");
    assert_eq!((entries.first(), entries.last()), (Some(&0), Some(&2)));
}

#[test]
fn a_damaged_chunk_costs_its_entry() {
    let block = Block::new(10, 256 * KIB);
    let store = filled(&block);
    let mut image = image_of(&store, 10);
    let at = image.windows(5000).position(|bytes| bytes.iter().all(|byte| *byte == 3)).unwrap();
    image[at + 2000] ^= 1;
    let loaded = is_harmless(&store, &image).unwrap();
    assert_eq!((loaded.entries, loaded.lost, loaded.is_cut), (1, 1, false));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 50 }, ..ProptestConfig::default() })]

    #[test]
    fn damage_makes_no_other_answer(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 1..4),
        from in any::<prop::sample::Index>(),
        len in 0..200_usize,
        kind in 0..3,
    ) {
        let block = Block::new(10, 256 * KIB);
        let store = filled(&block);
        let mut image = image_of(&store, 10);
        match kind {
            0 => changes.iter().for_each(|(at, by)| {
                let at = at.index(image.len());
                image[at] ^= by;
            }),
            1 => {
                let from = from.index(image.len());
                image.drain(from..(from + len).min(image.len()));
            }
            _ => {
                let from = from.index(image.len());
                let again = image[from..(from + len).min(image.len())].to_vec();
                image.splice(from..from, again);
            }
        }
        let _ = is_harmless(&store, &image);
    }
}
