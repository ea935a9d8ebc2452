//! Tests that plant each kind of damage, and see it found. They stand here because nothing outside of the cache can do
//! such damage.

#[path = "../../../tests/common/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod common;

#[cfg(test)]
mod tests {
    use super::common::{Block, EverybodyRuns, TestStore, described, fill, key};
    use crate::atomics::Ordering::Relaxed;
    use crate::cache::check::{Processes, Report};
    use crate::cache::entry::State;
    use crate::cache::memory::{Arena, ArenaPtr};
    use crate::cache::payload::chunk_header;
    use crate::cache::rendition::{RenditionHead, head_at};
    use crate::cache::seat::Seat;
    use crate::cache::{Dependency, NewKind, Pin};
    use crate::hash::Hash128;
    use crate::{SlotId, Taking};
    use std::cell::Cell;

    const MINE: usize = 3;

    /// Stores an answer of two chunks, and lets it go.
    fn stored(store: &TestStore<'_>, n: u64) -> u32 {
        stored_as(store, n, NewKind::Answer)
    }

    fn stored_as(store: &TestStore<'_>, n: u64, kind: NewKind) -> u32 {
        let dependencies = [Dependency { slot: SlotId(300), relation: 1, version: 0 }];
        let filled = fill(store, &[vec![1; 100], vec![2; 1000]], 1).unwrap();
        let new = crate::cache::NewEntry { kind, ..described(b"text", &dependencies) };
        let pin = store.publish(filled, key(n), new, 1).unwrap();
        let index = pin.entry().0;
        store.unpin(pin);
        index
    }

    fn with_rendition(store: &TestStore<'_>, n: u64) -> u32 {
        let index = stored(store, n);
        let pin = store.lookup(key(n)).unwrap();
        let draft = store.begin_rendition(&pin, Hash128 { hi: 1, lo: 2 }).unwrap();
        assert!(store.append_block(&draft, &[&[7; 300]]) && store.append_block(&draft, &[&[8; 10], &[], &[8; 20]]));
        store.publish_rendition(draft);
        store.unpin(pin);
        index
    }

    fn report(store: &TestStore<'_>, processes: &impl Processes) -> Vec<String> {
        let Report { findings, is_undecided, .. } = store.check(processes).unwrap();
        assert!(!is_undecided);
        findings.into_iter().map(|finding| format!("{}: {}", finding.part, finding.finding)).collect()
    }

    /// A world of five entries, of limbo with a retired and a half-filled record, and of free records, in which
    /// `damage` is done; what is found.
    fn found(damage: impl FnOnce(&Block, &TestStore<'_>, [u32; 5])) -> Vec<String> {
        let block = Block::new(64, 1 << 20);
        let store = block.seat(MINE);
        let entries = [
            stored(&store, 1),
            stored(&store, 6),
            stored_as(&store, 2, NewKind::Fragment { most_bytes: 1 << 20 }),
            with_rendition(&store, 3),
            stored(&store, 4),
        ];
        for n in 10..14 {
            stored(&store, n);
        }
        let kept = store.lookup(key(10)).unwrap();
        store.retire(&kept);
        let half = fill(&store, &[vec![3; 50]], 1).unwrap();
        store.retire_matching(|view| view.id().0 > 6);
        let everybody = EverybodyRuns { are_others: false };
        assert_eq!(report(&store, &everybody), Vec::<String>::new());
        block.note_damage();
        damage(&block, &store, entries);
        // What is kept and half filled stays so: handles give nothing back by themselves.
        let _ = (kept, half);
        report(&store, &everybody)
    }

    fn expect(damage: impl FnOnce(&Block, &TestStore<'_>, [u32; 5]), expected: &[&str]) {
        let findings = found(damage);
        for finding in expected {
            assert!(findings.iter().any(|found| found == finding), "{finding}: {findings:?}");
        }
    }

    #[test]
    fn the_index() {
        expect(
            |_, store, [one, ..]| store.entry(one).next_in_bucket.store(one + 1, Relaxed),
            &["index: a chain has no end"],
        );
        expect(
            |_, store, [one, ..]| store.entry(one).next_in_bucket.store(5000, Relaxed),
            &["index: a chain leads to a record that does not exist"],
        );
        expect(
            |_, store, [one, ..]| store.entry(one).set_state(State::Limbo),
            &["index: a chain holds an entry that is not published"],
        );
        expect(
            |_, store, [one, ..]| store.entry(one).set_key(key(3)),
            &["index: an entry lies in the chain of another key"],
        );
        expect(|_, store, [one, ..]| store.note_retired(one), &["index: a published entry has no bit"]);
        expect(
            |_, store, [one, two, ..]| store.entry(two).set_key(store.entry(one).key()),
            &["index: a key has two entries"],
        );
        expect(
            |_, store, [one, ..]| store.bucket(store.entry(one).key().0.hi as usize).store(0, Relaxed),
            &["index: a published entry is in no chain"],
        );
        expect(
            |_, store, [_, two, ..]| store.bucket(9).store(two + 1, Relaxed),
            &["index: an entry is in two chains", "index: an entry lies in the chain of another key"],
        );
    }

    #[test]
    fn lists_and_counts() {
        expect(
            |_, store, _| store.header().free_head.store(0, Relaxed),
            &["free list: a free record is not in the list"],
        );
        expect(
            |_, store, [one, ..]| store.header().free_head.store(one + 1, Relaxed),
            &["entries: a record stands where its state does not belong"],
        );
        expect(
            |_, store, _| store.header().free_head.store(63, Relaxed),
            &["free list: the list leads to a record that does not exist"],
        );
        expect(
            |_, store, _| {
                let first = store.header().free_head.load(Relaxed);
                store.entry(first - 1).list_next.store(first, Relaxed);
            },
            &["free list: the list has no end"],
        );
        expect(
            |_, store, _| {
                let first = store.header().limbo_head.load(Relaxed);
                store.entry(first - 1).list_next.store(0, Relaxed);
            },
            &[
                "limbo: the list has another end",
                "limbo: an entry that has left the index, or is being filled, is not in the list",
            ],
        );
        expect(
            |_, store, _| {
                let last = store.header().limbo_tail.load(Relaxed);
                store.entry(last - 1).list_previous.store(0, Relaxed);
            },
            &["limbo: an entry names another one before it"],
        );
        expect(|_, store, _| store.note_published(40), &["counts: the number of bits of published entries is wrong"]);
        expect(
            |_, store, _| store.note_published(store.header().free_head.load(Relaxed) - 1),
            &["entries: a bit says that a record is published, which is not"],
        );
        let add = |field: &crate::atomics::AtomicU32| field.fetch_add(1, Relaxed);
        expect(|_, store, _| _ = add(&store.header().published), &["counts: the number of published entries is wrong"]);
        expect(|_, store, _| _ = add(&store.header().limbo_len), &["counts: the length of limbo is wrong"]);
        let add = |field: &crate::atomics::AtomicU64| field.fetch_add(8, Relaxed);
        expect(|_, store, _| _ = add(&store.header().payload_bytes), &["counts: the bytes of all entries are wrong"]);
        expect(|_, store, _| _ = add(&store.header().fragment_bytes), &["counts: the bytes of fragments are wrong"]);
        expect(
            |_, store, _| store.header().fresh.store(1000, Relaxed),
            &["counts: more records are used than there are"],
        );
    }

    #[test]
    fn memory() {
        let first = |store: &TestStore<'_>, index: u32| ArenaPtr(store.entry(index).first_chunk.load(Relaxed));
        // SAFETY: the first chunk of a published entry, here and below.
        let header = |store: &TestStore<'_>, index| unsafe { chunk_header(store.arena.address(first(store, index))) };
        expect(
            |_, store, [one, ..]| _ = store.entry(one).bytes.fetch_add(8, Relaxed),
            &["arena: the bytes of an entry are wrong"],
        );
        expect(
            |_, store, [one, ..]| header(store, one).set_next(ArenaPtr::NULL),
            &[
                "arena: the bytes of an entry are wrong",
                "arena: the number of chunks is wrong",
                "arena: the last chunk is another one",
            ],
        );
        expect(
            |_, store, [one, ..]| header(store, one).set_next(first(store, one)),
            &["arena: a chain of memory leads astray"],
        );
        for astray in [u64::MAX, 4, 1 << 40, first(&Block::new(1, 1 << 20).seat(0), 0).0 + 12] {
            expect(
                |_, store, [one, ..]| header(store, one).set_next(ArenaPtr(astray)),
                &["arena: a chain of memory leads astray"],
            );
        }
        expect(
            |_, store, [one, two, ..]| store.entry(one).first_chunk.store(first(store, two).0, Relaxed),
            &["arena: two pieces of memory share bytes"],
        );
        expect(
            |_, store, [one, two, ..]| store.entry(one).head.store(first(store, two).0, Relaxed),
            &["arena: two pieces of memory share bytes"],
        );
        expect(
            |_, store, [one, ..]| store.entry(one).head.store(0, Relaxed),
            &["arena: a published entry has no head"],
        );
        expect(
            |_, store, [one, ..]| store.entry(one).text_len.store(u32::MAX, Relaxed),
            &["arena: an entry owns memory that does not lie in the arena"],
        );
        expect(
            |_, store, _| store.entry(store.header().free_head.load(Relaxed) - 1).bytes.store(1, Relaxed),
            &["arena: a free record owns memory"],
        );
    }

    #[test]
    fn renditions() {
        let damage_of = |then: fn(&RenditionHead, ArenaPtr)| {
            move |_: &Block, store: &TestStore<'_>, [.., four, _]: [u32; 5]| {
                let place = store.entry(four).renditions();
                // SAFETY: the first rendition of a published entry.
                then(unsafe { head_at(&store.arena, place) }, place);
            }
        };
        expect(damage_of(|head, place| head.set_next(place)), &["arena: the renditions of an entry have no end"]);
        expect(
            damage_of(|head, _| head.append(head.first(), 8)),
            &["renditions: the bytes of a rendition are wrong", "renditions: the last block is another one"],
        );
        expect(
            damage_of(|head, _| head.set_next(ArenaPtr(4))),
            &["arena: an entry owns memory that does not lie in the arena"],
        );
    }

    #[test]
    fn what_nobody_has() {
        expect(|_, store, [one, ..]| store.entry(one).pin(), &["entries: there are pins of nobody"]);
        expect(
            |block, store, [one, ..]| _ = block.seat(9).hold(one).zip(Some(store)),
            &["entries: there are pins of nobody"],
        );
        expect(
            |_, store, _| store.definers().enter(SlotId(70)),
            &["definitions: somebody is counted who changes definitions, and nobody does"],
        );
        expect(
            |_, store, _| store.versions().slot(SlotId(300)).damage([5, 5, 0]),
            &["versions: a slot holds a set of transactions that cannot be"],
        );
        expect(
            |_, store, _| store.versions().slot(SlotId(70)).damage_word(),
            &["versions: a slot is in the middle of a change"],
        );
        expect(
            |_, store, _| store.versions().values()[70].damage(),
            &["versions: the slot of a value holds transactions that cannot be"],
        );
    }

    /// Only some processes run.
    struct OnlyMine(Cell<u32>);

    impl Processes for OnlyMine {
        fn has_seat(&self, number: u32) -> bool {
            number == MINE as u32
        }

        fn has_claims(&self, owner: u32) -> bool {
            owner == MINE as u32
        }

        fn are_others(&self) -> bool {
            true
        }

        fn pause(&self) {}

        fn rest(&self, _: u32) {
            self.0.set(self.0.get() + 1);
        }
    }

    #[test]
    fn what_the_dead_have_left() {
        let block = Block::new(16, 1 << 20);
        let (store, gone) = (block.seat(MINE), block.seat(9));
        let mine = stored(&store, 1);
        let processes = OnlyMine(Cell::new(0));
        let (key, versions) = (key(1), store.versions());
        let Taking::Taken(of_mine) = store.claims().take(key, &[], &versions, MINE as u32, crate::Wanted::Current)
        else {
            panic!("it is free")
        };
        let pin = store.lookup(key).unwrap();
        assert_eq!(report(&store, &processes), Vec::<String>::new());
        store.claims().release(of_mine, crate::Ending::Open);
        let Taking::Taken(_left) = gone.claims().take(key, &[], &versions, 9, crate::Wanted::Current) else {
            panic!("it is free")
        };
        assert_eq!(report(&store, &processes), ["claims: a process has ended and left a claim behind"]);
        let left: Pin = gone.lookup(key).unwrap();
        assert_eq!(left.entry().0, mine);
        let both =
            ["seats: a process has ended and left pins behind", "claims: a process has ended and left a claim behind"];
        assert_eq!(report(&store, &processes), both);
        block.seat(9);
        assert_eq!(report(&store, &processes), both[1..], "who takes a seat gives back what was left there");
        store.unpin(pin);
        assert_eq!(size_of::<Seat>(), 256);
    }

    #[test]
    fn a_step_that_goes_on_is_no_finding() {
        let block = Block::new(16, 1 << 20);
        let store = block.seat(MINE);
        stored(&store, 1);
        block.note_damage();
        let step = store.step();
        store.header().payload_bytes.fetch_add(8, Relaxed);
        let processes = OnlyMine(Cell::new(0));
        let report = store.check(&processes).unwrap();
        assert!(report.is_undecided && report.findings.is_empty() && processes.0.get() > 5);
        store.note_retired(0);
        drop(step);
        let report = store.check(&processes).unwrap();
        assert!(!report.is_undecided && report.findings.len() > 1);
    }
}
