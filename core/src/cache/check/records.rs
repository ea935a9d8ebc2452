//! The table of entries: each record that was ever used is free, in limbo or published, and stands where this says,
//! once. The counts of the header agree with that. Read without a lock: it counts if nobody was in a step meanwhile.

use super::finding::Finding;
use super::look::{IN_INDEX, IN_INDEX_AGAIN, IN_LIMBO, IS_FREE, Look, Marks, Processes};
use crate::atomics::Ordering::{Acquire, Relaxed};
use crate::cache::entry::{Entry, EntryKind, Link};
use crate::cache::memory::{Arena, Locks};
use crate::room::OutOfMemory;

/// What the records come to together.
#[derive(Default)]
pub(super) struct Sums {
    published: u64,
    in_limbo: u64,
    bytes: u64,
    fragment_bytes: u64,
    file_bytes: u64,
}

impl<L: Locks, A: Arena, P: Processes> Look<'_, '_, L, A, P> {
    /// Walks the free list and the limbo list, and marks what they hold.
    pub(super) fn walk_lists(&mut self) {
        let header = self.store.header();
        let free_head = header.free_head.load(Acquire);
        let end = self.walk_list("free list", free_head, IS_FREE, |_, _| true);
        debug_assert!(end.is_none_or(|link| link <= self.store.layout.max_entries));
        let store = self.store;
        let before = |entry: &Entry, last: Link| entry.list_previous.load(Relaxed) == last;
        let last = self.walk_list("limbo", store.header().limbo_head.load(Acquire), IN_LIMBO, before);
        if let Some(last) = last {
            let tail = store.header().limbo_tail.load(Relaxed);
            self.findings.compare(Finding::of("limbo", "the list has another end"), tail, last);
        }
    }

    /// Walks a list, and returns its last link; `None` if it leads astray.
    fn walk_list(
        &mut self,
        part: &'static str,
        first: Link,
        mark: Marks,
        follows: impl Fn(&Entry, Link) -> bool,
    ) -> Option<Link> {
        let (mut link, mut last) = (first, 0);
        while link != 0 {
            let index = link - 1;
            self.pause_at(index);
            let Some(marks) = self.marks.get_mut(index as usize) else {
                self.findings.add(Finding::of(part, "the list leads to a record that does not exist").at("link", link));
                return None;
            };
            if *marks & mark != 0 {
                self.findings.add(Finding::of(part, "the list has no end").at("entry", index));
                return None;
            }
            *marks |= mark;
            let entry = self.store.entry(index);
            if !follows(entry, last) {
                self.findings.add(Finding::of(part, "an entry names another one before it").at("entry", index));
            }
            last = link;
            link = entry.list_next.load(Relaxed);
        }
        Some(last)
    }

    /// Looks at each record that was ever used.
    pub(super) fn walk_records(&mut self) -> Result<Sums, OutOfMemory> {
        let mut sums = Sums::default();
        for index in 0..self.marks.len() as u32 {
            self.pause_at(index);
            let entry = self.store.entry(index);
            let bytes = entry.bytes.load(Relaxed);
            sums.bytes += bytes;
            sums.file_bytes += entry.file_bytes.load(Relaxed);
            let life = entry.life();
            let place = if life.is_published() {
                sums.published += 1;
                if entry.kind() == EntryKind::Fragment {
                    sums.fragment_bytes += bytes;
                }
                IN_INDEX
            } else if life.is_free() {
                IS_FREE
            } else {
                sums.in_limbo += 1;
                IN_LIMBO
            };
            self.check_place(index, place);
            self.check_payload(index, place != IS_FREE)?;
        }
        Ok(sums)
    }

    /// Returns true if the record stands where its state says, and nowhere else.
    fn check_place(&mut self, index: u32, place: Marks) {
        let marks = self.marks.get(index as usize).copied().unwrap_or(0);
        let mut add = |part, what| self.findings.add(Finding::of(part, what).at("entry", index));
        if marks & place == 0 {
            match place {
                IN_INDEX => add("index", "a published entry is in no chain"),
                IS_FREE => add("free list", "a free record is not in the list"),
                _ => add("limbo", "an entry that has left the index, or is being filled, is not in the list"),
            }
        }
        if marks & IN_INDEX_AGAIN != 0 {
            add("index", "an entry is in two chains");
        }
        if marks & !place & (IN_INDEX | IS_FREE | IN_LIMBO) != 0 {
            add("entries", "a record stands where its state does not belong");
        }
        if place != IN_INDEX && self.store.first_published(index, index + 1) == index {
            add("entries", "a bit says that a record is published, which is not");
        }
    }

    /// Returns true if the counts of the header agree with the records.
    pub(super) fn compare_sums(&mut self, sums: &Sums) {
        let (store, header) = (self.store, self.store.header());
        let bits: u32 = store.occupied().iter().map(|word| word.load(Acquire).count_ones()).sum();
        let findings = &mut *self.findings;
        let mut compare = |what, found: u64, expected: u64| {
            findings.compare(Finding::of("counts", what), found, expected);
        };
        compare("the number of published entries is wrong", header.published.load(Relaxed).into(), sums.published);
        compare("the number of bits of published entries is wrong", bits.into(), sums.published);
        compare("the length of limbo is wrong", header.limbo_len.load(Relaxed).into(), sums.in_limbo);
        compare("the bytes of all entries are wrong", header.payload_bytes.load(Relaxed), sums.bytes);
        compare("the bytes of fragments are wrong", header.fragment_bytes.load(Relaxed), sums.fragment_bytes);
        compare("the bytes of files are wrong", header.file_bytes.load(Relaxed), sums.file_bytes);
        let fresh = header.fresh.load(Relaxed);
        if fresh > store.layout.max_entries {
            compare("more records are used than there are", fresh.into(), store.layout.max_entries.into());
        }
    }
}
