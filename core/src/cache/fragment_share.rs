//! How much of the memory fragments take together. One statement may need hundreds of them, and answers must keep their
//! room. The bytes of published fragments are an atomic that anybody changes: a fragment claims its bytes before it can
//! be found, and who takes it out of the index gives them back.

use crate::atomics::Ordering::Relaxed;
use crate::cache::entry::EntryKind;
use crate::cache::memory::{Arena, Locks};
use crate::cache::store::Store;

/// Most evictions for one fragment.
const MOST_EVICTIONS: usize = 16;

impl<L: Locks, A: Arena> Store<'_, L, A> {
    /// Claims the bytes of a fragment that is about to be published, evicting other fragments when those together would
    /// take more than `most` bytes. False when too few of them can be spared: then nothing was claimed.
    pub(crate) fn claim_fragment(&self, index: u32, most: u64, now: i64) -> bool {
        let bytes = self.entry(index).bytes.load(Relaxed);
        if bytes > most {
            return false;
        }
        let within = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= most);
        for _ in 0..=MOST_EVICTIONS {
            if self.header().fragment_bytes.fetch_update(Relaxed, Relaxed, within).is_ok() {
                return true;
            }
            if !self.evict_fragment(now) {
                break;
            }
        }
        false
    }

    /// Notes that an entry was taken out of the index.
    pub(crate) fn note_unpublished(&self, index: u32) {
        let entry = self.entry(index);
        self.header().published.fetch_sub(1, Relaxed);
        if entry.kind() == EntryKind::Fragment {
            self.header().fragment_bytes.fetch_sub(entry.bytes.load(Relaxed), Relaxed);
        }
    }
}
