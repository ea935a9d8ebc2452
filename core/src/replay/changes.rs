//! What the running transactions of a primary have changed, as far as its WAL was replayed: a table for any number of changes of any
//! transaction. State of the one process that replays; no lock. Fixed memory: nothing here allocates or panics, since an error of that
//! process would stop the standby.

use crate::versions::slots::SlotId;

/// What a transaction has changed: a version slot, or a catalog whose rows decide later which slots those are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct Change(pub u32);

/// What a [`Change`] says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ChangeKind {
    /// What a version slot stands for has changed.
    Slot(SlotId),
    /// Rows of the catalog with this OID were added, updated or deleted. Catalogs have OIDs below 16384.
    Catalog(u16),
    /// A row of the catalog with this OID was overwritten where it stands.
    CatalogInPlace(u16),
}

impl Change {
    /// Set in changes of catalogs. Slots have far smaller numbers.
    const CATALOG: u32 = 1 << 31;
    /// Set in those that overwrite a row.
    const IN_PLACE: u32 = 1 << 30;

    /// A change of what a slot stands for.
    #[must_use]
    pub const fn slot(slot: SlotId) -> Self {
        Self(slot.0 & !Self::CATALOG)
    }

    /// A change of a catalog.
    #[must_use]
    pub const fn catalog(oid: u16) -> Self {
        Self(Self::CATALOG | oid as u32)
    }

    /// A change of a catalog's row where it stands.
    #[must_use]
    pub const fn catalog_in_place(oid: u16) -> Self {
        Self(Self::CATALOG | Self::IN_PLACE | oid as u32)
    }

    /// What was changed.
    #[must_use]
    pub const fn kind(self) -> ChangeKind {
        if self.0 & Self::CATALOG == 0 {
            ChangeKind::Slot(SlotId(self.0))
        } else if self.0 & Self::IN_PLACE == 0 {
            ChangeKind::Catalog(self.0 as u16)
        } else {
            ChangeKind::CatalogInPlace(self.0 as u16)
        }
    }
}

/// The table has no place for a further note.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

/// The place of a note plus one; 0 = none.
type Link = u16;

/// One change of one transaction.
#[derive(Clone, Copy)]
struct Note {
    xid: u32,
    change: Change,
    /// The next note in the bucket of (transaction, change), or the next free place.
    next_in_bucket: Link,
    /// The next note of the same transaction.
    next_of_xid: Link,
    /// In the first note of a transaction: that of the next transaction in the bucket.
    next_xid: Link,
}

const _: () = assert!(size_of::<Note>() == 16);

/// What running transactions have changed: up to `N` notes, each a pair of transaction and change, found by the pair and by the transaction.
/// `N` is a power of two below 65536. The empty table consists of zeros.
pub struct ChangeTable<const N: usize> {
    notes: [Note; N],
    /// First note of each bucket, by hash of (transaction, change).
    by_pair: [Link; N],
    /// First note of the first transaction of each bucket, by hash of the transaction.
    by_xid: [Link; N],
    /// Places that were given back, linked by `next_in_bucket`.
    free: Link,
    /// Places from here on were never used since the table was empty.
    untouched: usize,
    len: usize,
    /// What was noted last, while it is in the table.
    latest: Option<(u32, Change)>,
}

impl<const N: usize> ChangeTable<N> {
    /// Number of notes there is room for.
    pub const CAPACITY: usize = N;

    /// An empty table.
    #[must_use]
    pub const fn new() -> Self {
        const {
            assert!(
                N.is_power_of_two() && N < Link::MAX as usize,
                "places are found by remainder and linked in 16 bits"
            )
        };
        let nothing = Note { xid: 0, change: Change(0), next_in_bucket: 0, next_of_xid: 0, next_xid: 0 };
        Self { notes: [nothing; N], by_pair: [0; N], by_xid: [0; N], free: 0, untouched: 0, len: 0, latest: None }
    }

    /// Notes that the transaction has changed something, unless that is noted already.
    ///
    /// # Errors
    /// [`Full`] if there is no place left. Nothing was noted then, and what was noted before stays.
    #[inline]
    pub fn note(&mut self, xid: u32, change: Change) -> Result<(), Full> {
        if self.latest == Some((xid, change)) { Ok(()) } else { self.note_another(xid, change) }
    }

    fn note_another(&mut self, xid: u32, change: Change) -> Result<(), Full> {
        let bucket = Self::bucket_of_pair(xid, change);
        if !self.is_noted(bucket, xid, change) {
            let place = self.take_place().ok_or(Full)?;
            *self.at_mut(place) =
                Note { xid, change, next_in_bucket: self.by_pair[bucket], next_of_xid: 0, next_xid: 0 };
            self.by_pair[bucket] = place;
            self.append_to_transaction(xid, place);
            self.len += 1;
        }
        self.latest = Some((xid, change));
        Ok(())
    }

    /// Calls `each` with every change that is noted of the transaction, in no order.
    pub fn for_each(&self, xid: u32, mut each: impl FnMut(Change)) {
        let mut place = self.first_of(xid);
        while place != 0 {
            let note = self.at(place);
            each(note.change);
            place = note.next_of_xid;
        }
    }

    /// Forgets what is noted of the transaction, in a time that grows with the number of its notes only.
    pub fn forget(&mut self, xid: u32) {
        let mut place = self.first_of(xid);
        if place == 0 {
            return;
        }
        self.unlink_transaction(xid, place);
        while place != 0 {
            let next = self.at(place).next_of_xid;
            self.unlink_from_pair(place);
            self.give_back(place);
            place = next;
        }
        if self.latest.is_some_and(|(latest, _)| latest == xid) {
            self.latest = None;
        }
        if self.len == 0 {
            // Places that were used lately are used first again.
            (self.free, self.untouched) = (0, 0);
        }
    }

    /// Notes of `parent` what is noted of `child`, and forgets it of that. Takes no more room than there was.
    pub fn pass_on(&mut self, child: u32, parent: u32) {
        let mut place = self.first_of(child);
        if place == 0 || child == parent {
            return;
        }
        self.unlink_transaction(child, place);
        while place != 0 {
            let Note { change, next_of_xid: next, .. } = *self.at(place);
            self.unlink_from_pair(place);
            self.give_back(place);
            // The place that was given back is there for it.
            let _ = self.note_another(parent, change);
            place = next;
        }
    }

    /// Forgets what is noted of transactions older than `oldest_running`. Ids are compared as PostgreSQL compares them: modulo 2^32.
    pub fn forget_older(&mut self, oldest_running: u32) {
        if self.is_empty() {
            return;
        }
        for bucket in 0..N {
            let mut first = self.by_xid[bucket];
            while first != 0 {
                let Note { xid, next_xid, .. } = *self.at(first);
                if precedes(xid, oldest_running) {
                    self.forget(xid);
                }
                first = next_xid;
            }
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.by_pair.fill(0);
        self.by_xid.fill(0);
        (self.free, self.untouched, self.len, self.latest) = (0, 0, 0, None);
    }

    /// Number of notes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is noted.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The note at a link that is not 0. The remainder changes nothing: it shows the compiler that the index is inside.
    fn at(&self, link: Link) -> &Note {
        &self.notes[usize::from(link).wrapping_sub(1) % N]
    }

    fn at_mut(&mut self, link: Link) -> &mut Note {
        &mut self.notes[usize::from(link).wrapping_sub(1) % N]
    }

    /// The leading bits of a product depend on all bits of a factor; the other one is 2^64 divided by the golden ratio.
    fn bucket_of_pair(xid: u32, change: Change) -> usize {
        let pair = u64::from(xid) << 32 | u64::from(change.0);
        (pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize % N
    }

    /// Ids are given in their order, so those of running transactions are seldom the same here.
    fn bucket_of_xid(xid: u32) -> usize {
        xid as usize % N
    }

    fn is_noted(&self, bucket: usize, xid: u32, change: Change) -> bool {
        let mut place = self.by_pair[bucket];
        while place != 0 {
            let note = self.at(place);
            if (note.xid, note.change) == (xid, change) {
                return true;
            }
            place = note.next_in_bucket;
        }
        false
    }

    /// The first note of the transaction, which the others follow; 0 = there is none.
    fn first_of(&self, xid: u32) -> Link {
        let mut place = self.by_xid[Self::bucket_of_xid(xid)];
        while place != 0 && self.at(place).xid != xid {
            place = self.at(place).next_xid;
        }
        place
    }

    /// The first note of a transaction stays the first, so that the bucket need not follow.
    fn append_to_transaction(&mut self, xid: u32, place: Link) {
        let first = self.first_of(xid);
        if first == 0 {
            let bucket = Self::bucket_of_xid(xid);
            self.at_mut(place).next_xid = self.by_xid[bucket];
            self.by_xid[bucket] = place;
        } else {
            self.at_mut(place).next_of_xid = self.at(first).next_of_xid;
            self.at_mut(first).next_of_xid = place;
        }
    }

    fn unlink_transaction(&mut self, xid: u32, first: Link) {
        let next = self.at(first).next_xid;
        let bucket = Self::bucket_of_xid(xid);
        let mut before = self.by_xid[bucket];
        if before == first {
            self.by_xid[bucket] = next;
            return;
        }
        while before != 0 {
            let note = self.at_mut(before);
            if note.next_xid == first {
                note.next_xid = next;
                return;
            }
            before = note.next_xid;
        }
    }

    fn unlink_from_pair(&mut self, place: Link) {
        let Note { xid, change, next_in_bucket: next, .. } = *self.at(place);
        let bucket = Self::bucket_of_pair(xid, change);
        let mut before = self.by_pair[bucket];
        if before == place {
            self.by_pair[bucket] = next;
            return;
        }
        while before != 0 {
            let note = self.at_mut(before);
            if note.next_in_bucket == place {
                note.next_in_bucket = next;
                return;
            }
            before = note.next_in_bucket;
        }
    }

    fn take_place(&mut self) -> Option<Link> {
        if self.free != 0 {
            let place = self.free;
            self.free = self.at(place).next_in_bucket;
            return Some(place);
        }
        let place = self.untouched + 1;
        if place > N {
            return None;
        }
        self.untouched = place;
        Some(place as Link)
    }

    fn give_back(&mut self, place: Link) {
        self.at_mut(place).next_in_bucket = self.free;
        self.free = place;
        self.len -= 1;
    }
}

impl<const N: usize> Default for ChangeTable<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether a transaction id is older than another, as TransactionIdPrecedes says: ids of transactions go round in a circle, while the
/// permanent ids below 3 are older than all of them.
pub(crate) fn precedes(xid: u32, other: u32) -> bool {
    const FIRST_NORMAL: u32 = 3;
    if xid < FIRST_NORMAL || other < FIRST_NORMAL { xid < other } else { xid.wrapping_sub(other).cast_signed() < 0 }
}
