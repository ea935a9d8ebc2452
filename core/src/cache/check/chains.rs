//! The chains of the index: each entry lies in the chain of its key, once, and is published; no key has two. A chain is
//! walked under the shared lock of its partition, so what is found there is certain.

use super::finding::{Finding, Findings};
use super::look::{IN_INDEX, IN_INDEX_AGAIN, Look, Marks, Processes, STRIDE};
use crate::atomics::Ordering::Relaxed;
use crate::cache::layout::PARTITIONS;
use crate::cache::memory::{Arena, Locks};
use crate::cache::store::Store;

const PART: &str = "index";
/// Entries of a chain whose keys are compared with each other.
const COMPARED: usize = 64;

impl<L: Locks, A: Arena, P: Processes> Look<'_, '_, L, A, P> {
    /// Walks all chains, and marks what they hold.
    pub(super) fn walk_index(&mut self) {
        let (store, findings, marks) = (self.store, &mut *self.findings, &mut *self.marks);
        for bucket in 0..store.layout.bucket_count {
            if bucket.is_multiple_of(STRIDE as usize) {
                self.processes.pause();
            }
            if store.bucket(bucket).load(Relaxed) != 0 {
                store.locks.shared(bucket % PARTITIONS, || store.walk_chain(bucket, findings, marks));
            }
        }
    }
}

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Shared partition lock held.
    fn walk_chain(&self, number: usize, findings: &mut Findings, marks: &mut [Marks]) {
        let finding = |what: &'static str| Finding::of(PART, what).at("bucket", number as u64);
        // A record that was first used after this look began has no mark.
        let most = self.header().fresh.load(Relaxed).min(self.layout.max_entries);
        let mut link = self.bucket(number).load(Relaxed);
        let mut length = 0;
        while link != 0 {
            if link > most {
                return findings.add(finding("a chain leads to a record that does not exist"));
            }
            if length == most {
                return findings.add(finding("a chain has no end"));
            }
            let (index, entry) = (link - 1, self.entry(link - 1));
            let key = entry.key();
            let of_entry = |what: &'static str| Finding::of(PART, what).at("entry", index);
            if !entry.life().is_published() {
                findings.add(of_entry("a chain holds an entry that is not published"));
            }
            if key.0.hi as usize & (self.layout.bucket_count - 1) != number {
                findings.add(of_entry("an entry lies in the chain of another key"));
            }
            if self.first_published(index, index + 1) != index {
                findings.add(of_entry("a published entry has no bit"));
            }
            if (length as usize) < COMPARED && self.is_met_before(number, length, index) {
                findings.add(of_entry("a key has two entries"));
            }
            if let Some(mark) = marks.get_mut(index as usize) {
                *mark |= if *mark & IN_INDEX == 0 { IN_INDEX } else { IN_INDEX_AGAIN };
            }
            link = entry.next_in_bucket.load(Relaxed);
            length += 1;
        }
    }

    /// Returns true if one of the first entries of a chain has the key of this one.
    fn is_met_before(&self, bucket: usize, first: u32, index: u32) -> bool {
        let key = self.entry(index).key();
        let mut link = self.bucket(bucket).load(Relaxed);
        for _ in 0..first {
            let entry = self.entry(link - 1);
            if link - 1 != index && entry.key() == key {
                return true;
            }
            link = entry.next_in_bucket.load(Relaxed);
        }
        false
    }
}
