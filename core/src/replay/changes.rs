//! What the running transactions of a primary have changed, as far as its WAL was replayed: a table for any number of
//! changes of any transaction. State of the one process that replays; no lock. Fixed memory: nothing here allocates or
//! panics, since an error of that process would stop the standby.

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

/// The first changes of one transaction. Those whose ids have the same remainder share a line: one of them has it,
/// until it is forgotten.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line<const PLACES: usize> {
    xid: u32,
    len: u16,
    /// The first of the notes that found no place in the line, of any of its transactions.
    further: Link,
    changes: [Change; PLACES],
}

/// One change of one transaction that found no place in its line.
#[derive(Clone, Copy)]
struct Note {
    xid: u32,
    change: Change,
    /// The next note in the bucket of (transaction, change), or the next free place.
    next_in_bucket: Link,
    /// The next note of the same line.
    next_of_line: Link,
}

const _: () = assert!(size_of::<Note>() == 12);

/// What running transactions have changed: the first changes of a transaction in its line, found by its id alone, as
/// nearly all transactions have no others. Up to `N` more are notes, found by the pair of transaction and change, and
/// from the line. A line has place for `PLACES` changes. `LINES` and `N` are powers of two, `N` below 65536. The empty
/// table consists of zeros.
pub struct ChangeTable<const N: usize, const LINES: usize, const PLACES: usize> {
    lines: [Line<PLACES>; LINES],
    notes: [Note; N],
    /// First note of each bucket, by hash of (transaction, change).
    by_pair: [Link; N],
    /// Places that were given back, linked by `next_in_bucket`.
    free: Link,
    /// Places from here on were never used.
    untouched: usize,
}

impl<const N: usize, const LINES: usize, const PLACES: usize> ChangeTable<N, LINES, PLACES> {
    /// An empty table.
    #[must_use]
    pub const fn new() -> Self {
        const {
            assert!(
                N.is_power_of_two() && LINES.is_power_of_two() && N < Link::MAX as usize,
                "places are found by remainder and linked in 16 bits"
            )
        };
        let line = Line { xid: 0, len: 0, further: 0, changes: [Change(0); PLACES] };
        let nothing = Note { xid: 0, change: Change(0), next_in_bucket: 0, next_of_line: 0 };
        Self { lines: [line; LINES], notes: [nothing; N], by_pair: [0; N], free: 0, untouched: 0 }
    }

    /// Notes that the transaction has changed something, unless that is noted already.
    ///
    /// # Errors
    /// [`Full`] if there is no place left. Nothing was noted then, and what was noted before stays.
    #[inline(always)]
    pub fn note(&mut self, xid: u32, change: Change) -> Result<(), Full> {
        let line = &mut self.lines[Self::line_of(xid)];
        // Those that have notes already, since the line was another's, go on with these: nothing is noted twice.
        if line.len == 0 && line.further == 0 {
            line.xid = xid;
        }
        if line.xid == xid {
            for (n, place) in line.changes.iter_mut().enumerate() {
                if n == usize::from(line.len) {
                    *place = change;
                    line.len += 1;
                    return Ok(());
                }
                if *place == change {
                    return Ok(());
                }
            }
        }
        self.note_further(xid, change)
    }

    #[cold]
    #[inline(never)]
    fn note_further(&mut self, xid: u32, change: Change) -> Result<(), Full> {
        let (bucket, line) = (Self::bucket_of_pair(xid, change), Self::line_of(xid));
        if !self.is_noted(bucket, xid, change) {
            let place = self.take_place().ok_or(Full)?;
            let (next_in_bucket, next_of_line) = (self.by_pair[bucket], self.lines[line].further);
            *self.at_mut(place) = Note { xid, change, next_in_bucket, next_of_line };
            (self.by_pair[bucket], self.lines[line].further) = (place, place);
        }
        Ok(())
    }

    /// Calls `each` with every change that is noted of the transaction, in no order.
    #[inline(always)]
    pub fn for_each(&self, xid: u32, mut each: impl FnMut(Change)) {
        let line = &self.lines[Self::line_of(xid)];
        if line.xid == xid {
            line.changes.iter().take(line.len.into()).for_each(|change| each(*change));
        }
        let mut place = line.further;
        while place != 0 {
            let note = self.at(place);
            if note.xid == xid {
                each(note.change);
            }
            place = note.next_of_line;
        }
    }

    /// Forgets what is noted of the transaction.
    #[inline(always)]
    pub fn forget(&mut self, xid: u32) {
        self.forget_of_line(Self::line_of(xid), |other| other == xid);
    }

    /// Notes of `parent` what is noted of `child`, and forgets it of that.
    ///
    /// # Errors
    /// [`Full`] if there is no place for all of it. Some of it may be lost then.
    pub fn pass_on(&mut self, child: u32, parent: u32) -> Result<(), Full> {
        let line = Self::line_of(child);
        if child == parent {
            return Ok(());
        }
        if self.lines[line].xid == child {
            let Line { len, changes, .. } = self.lines[line];
            self.lines[line].len = 0;
            changes.iter().take(len.into()).try_for_each(|change| self.note(parent, *change))?;
        }
        let mut taken = self.take_further(line, |other| other == child);
        while taken != 0 {
            let Note { change, next_of_line, .. } = *self.at(taken);
            self.give_back(taken);
            self.note(parent, change)?;
            taken = next_of_line;
        }
        Ok(())
    }

    /// Forgets what is noted of transactions older than `oldest_running`. Ids are compared as PostgreSQL compares them:
    /// modulo 2^32.
    pub fn forget_older(&mut self, oldest_running: u32) {
        for line in 0..LINES {
            self.forget_of_line(line, |xid| precedes(xid, oldest_running));
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.by_pair.fill(0);
        self.lines.iter_mut().for_each(|line| (line.len, line.further) = (0, 0));
        (self.free, self.untouched) = (0, 0);
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

    /// Ids are given in their order, so those of running transactions seldom share a line.
    fn line_of(xid: u32) -> usize {
        xid as usize % LINES
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

    /// Forgets what is noted in a line, and beside it, of the transactions that are asked for.
    #[inline(always)]
    fn forget_of_line(&mut self, line: usize, is_asked_for: impl Fn(u32) -> bool) {
        let Line { xid, further, .. } = self.lines[line];
        if is_asked_for(xid) {
            self.lines[line].len = 0;
        }
        if further != 0 {
            self.forget_further(line, is_asked_for);
        }
    }

    #[cold]
    #[inline(never)]
    fn forget_further(&mut self, line: usize, is_asked_for: impl Fn(u32) -> bool) {
        let mut taken = self.take_further(line, is_asked_for);
        while taken != 0 {
            let place = taken;
            taken = self.at(place).next_of_line;
            self.give_back(place);
        }
    }

    /// Takes the notes out that a line has of the transactions that are asked for, in one pass: others of it may have
    /// thousands. Returns the first of those taken, linked by `next_of_line`. They are found nowhere any more, and are
    /// to be given back.
    fn take_further(&mut self, line: usize, is_asked_for: impl Fn(u32) -> bool) -> Link {
        let (mut kept, mut taken, mut place) = (0, 0, self.lines[line].further);
        while place != 0 {
            let Note { xid, next_of_line: next, .. } = *self.at(place);
            if is_asked_for(xid) {
                match kept {
                    0 => self.lines[line].further = next,
                    _ => self.at_mut(kept).next_of_line = next,
                }
                self.unlink_from_pair(place);
                self.at_mut(place).next_of_line = taken;
                taken = place;
            } else {
                kept = place;
            }
            place = next;
        }
        taken
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
    }
}

impl<const N: usize, const LINES: usize, const PLACES: usize> Default for ChangeTable<N, LINES, PLACES> {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether a transaction id is older than another, as TransactionIdPrecedes says: ids of transactions go round in a
/// circle, while the permanent ids below 3 are older than all of them.
pub(crate) fn precedes(xid: u32, other: u32) -> bool {
    const FIRST_NORMAL: u32 = 3;
    if xid < FIRST_NORMAL || other < FIRST_NORMAL { xid < other } else { xid.wrapping_sub(other).cast_signed() < 0 }
}
