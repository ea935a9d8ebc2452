//! One place of the table of claims: which answer is computed, and until when it is worth waiting for. Only the owner
//! of a place that is taken writes here, while the word `state` says so (`claims`); any process may read. Atomics; no
//! lock.

use crate::atomics::{AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};
use crate::cache::entry::Dependency;
use crate::cache::key::CacheKey;
use crate::versions::slots::{SlotId, Versions};

/// Most dependencies of an answer that is claimed. What rests on more is computed by everybody.
pub(super) const MOST_DEPENDENCIES: usize = 36;

/// Which answer is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// One that is right when it is stored.
    Current,
    /// One over rows that may have changed meanwhile, right as of some moment. Times are in microseconds.
    Late {
        /// The moment that it will be right as of, if the one who asks computes it.
        as_of: i64,
        /// The earliest moment that will do.
        earliest: i64,
        /// The slot of all definitions, and its version when the one who asks was planned. If that moves, no late
        /// answer is stored.
        catalogs: (SlotId, u64),
    },
}

/// One place. Zeroed memory is a free place.
#[repr(C, align(64))]
pub struct ClaimPlace {
    /// How often the place was taken, in the upper half; below it a bit of the one who writes and the number of the
    /// owner plus one, 0 if it is free.
    pub(super) state: AtomicU64,
    /// What was claimed last; it stays when the place is given back.
    key: [AtomicU64; 2],
    /// The moment that the answer is right as of, if it is stored even though rows have changed; `NEVER` if it is not.
    as_of: AtomicI64,
    catalogs_version: AtomicU64,
    catalogs_slot: AtomicU32,
    /// True if nothing is to be gained by waiting for the process that computes `key`.
    pub(super) hopeless: AtomicU32,
    count: AtomicU32,
    /// Slots that the answer rests on, with `OF_ROWS` for those that stand for rows.
    slots: [AtomicU32; MOST_DEPENDENCIES],
    versions: [AtomicU64; MOST_DEPENDENCIES],
}

/// Earlier than any moment that is asked for.
const NEVER: i64 = i64::MIN;
/// Set in the number of a slot that stands for the rows of a relation, and not for definitions alone.
const OF_ROWS: u32 = 1 << 31;

impl ClaimPlace {
    /// Returns true if this was claimed last.
    pub(super) fn is_of(&self, key: CacheKey) -> bool {
        let [high, low] = words(key);
        self.key[0].load(Relaxed) == high && self.key[1].load(Relaxed) == low
    }

    /// Writes what is claimed.
    pub(super) fn write(&self, key: CacheKey, dependencies: &[Dependency], wanted: Wanted) {
        for (word, value) in self.key.iter().zip(words(key)) {
            word.store(value, Relaxed);
        }
        let (as_of, (slot, version)) = match wanted {
            Wanted::Current => (NEVER, (SlotId(0), 0)),
            Wanted::Late { as_of, catalogs, .. } => (as_of, catalogs),
        };
        self.as_of.store(as_of, Relaxed);
        self.catalogs_slot.store(slot.0, Relaxed);
        self.catalogs_version.store(version, Relaxed);
        self.hopeless.store(0, Relaxed);
        self.count.store(dependencies.len() as u32, Relaxed);
        for ((slot, version), dependency) in self.slots.iter().zip(&self.versions).zip(dependencies) {
            let of_rows = if dependency.relation == 0 { 0 } else { OF_ROWS };
            slot.store(dependency.slot.0 | of_rows, Relaxed);
            version.store(dependency.version, Relaxed);
        }
    }

    /// Returns true if it is still so that what is computed will be stored, and is what is wanted. Not if something has
    /// changed that it rests on.
    pub(super) fn is_promising(&self, versions: &Versions<'_>, wanted: Wanted) -> bool {
        let takes_late = match wanted {
            Wanted::Current => false,
            Wanted::Late { earliest, .. } => self.as_of.load(Relaxed) >= earliest && self.may_be_stored_late(versions),
        };
        let count = (self.count.load(Relaxed) as usize).min(MOST_DEPENDENCIES);
        self.slots.iter().zip(&self.versions).take(count).all(|(slot, version)| {
            let slot = slot.load(Relaxed);
            let may_move = takes_late && slot & OF_ROWS != 0;
            may_move || versions.version(SlotId(slot & !OF_ROWS)) == version.load(Relaxed)
        })
    }

    /// Returns true if the answer will be stored even if rows have changed.
    fn may_be_stored_late(&self, versions: &Versions<'_>) -> bool {
        let catalogs = SlotId(self.catalogs_slot.load(Relaxed));
        self.as_of.load(Relaxed) != NEVER && versions.version(catalogs) == self.catalogs_version.load(Relaxed)
    }

    /// Returns true if nobody would wait for what is computed.
    pub(super) fn is_in_vain(&self, versions: &Versions<'_>) -> bool {
        !self.is_promising(versions, Wanted::Current) && !self.may_be_stored_late(versions)
    }
}

fn words(CacheKey(hash): CacheKey) -> [u64; 2] {
    [hash.hi, hash.lo]
}
