//! What the running transactions of a primary have changed, as far as its WAL was replayed: a table for any number of
//! changes of any transaction. State of the one process that replays; no lock. Fixed memory: nothing here allocates or
//! panics, since an error of that process would stop the standby.

use crate::versions::slots::SlotId;

/// What a transaction has changed: a version slot, of a relation or a part of it, or a catalog whose rows decide later
/// which slots those are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct Change(pub u32);

/// What a [`Change`] says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ChangeKind {
    /// What a version slot stands for has changed.
    Slot(SlotId),
    /// The same, and of a relation's slot nobody knows any more which parts of it have.
    Anywhere(SlotId),
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
    /// Set in changes of relations of which any part may have changed.
    const ANYWHERE: u32 = 1 << 29;
    /// Set in changes of a part.
    const PART: u32 = 1 << 28;

    /// A change of what a slot stands for: the rows of a relation.
    #[must_use]
    pub const fn slot(slot: SlotId) -> Self {
        Self(slot.0 & (Self::PART - 1))
    }

    /// A change of a part of a relation, which is noted as well.
    #[must_use]
    pub const fn part(slot: SlotId) -> Self {
        Self(Self::PART | Self::slot(slot).0)
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
            let slot = SlotId(self.0 & (Self::PART - 1));
            if self.0 & Self::ANYWHERE == 0 { ChangeKind::Slot(slot) } else { ChangeKind::Anywhere(slot) }
        } else if self.0 & Self::IN_PLACE == 0 {
            ChangeKind::Catalog(self.0 as u16)
        } else {
            ChangeKind::CatalogInPlace(self.0 as u16)
        }
    }

    const fn is_part(self) -> bool {
        self.0 & (Self::CATALOG | Self::PART) == Self::PART
    }

    /// Returns true if this says all that the other one does.
    const fn covers(self, other: Self) -> bool {
        self.0 & !(Self::ANYWHERE & !other.0) == other.0
    }
}

/// The table has no place for a further note.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

/// A transaction with so many blocks gets no further one for parts.
const MOST_WITH_PARTS: usize = 16;

/// The place of a block plus one; 0 = none.
type Link = u16;

/// Changes of one transaction.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Block<const PLACES: usize> {
    xid: u32,
    len: u16,
    /// The next block of the same chain, or the next free one.
    next: Link,
    changes: [Change; PLACES],
}

impl<const PLACES: usize> Block<PLACES> {
    fn noted(&self) -> &[Change] {
        self.changes.get(..self.len.into()).unwrap_or(&self.changes)
    }
}

/// What running transactions have changed: `N` blocks of up to `PLACES` changes of one transaction. Those of
/// transactions whose ids have the same remainder form a chain; ids are given in their order, so those of running
/// transactions seldom share one. Of the blocks of a transaction one at most has places left. `N` is below 65535. The
/// empty table consists of zeros.
pub struct ChangeTable<const N: usize, const CHAINS: usize, const PLACES: usize> {
    blocks: [Block<PLACES>; N],
    /// The first block of each chain.
    chains: [Link; CHAINS],
    /// Blocks that were given back.
    free: Link,
    /// Blocks from here on were never used.
    untouched: Link,
    /// How many blocks are in use.
    used: Link,
}

impl<const N: usize, const CHAINS: usize, const PLACES: usize> ChangeTable<N, CHAINS, PLACES> {
    /// An empty table.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(N < Link::MAX as usize, "blocks are linked in 16 bits") };
        let block = Block { xid: 0, len: 0, next: 0, changes: [Change(0); PLACES] };
        Self { blocks: [block; N], chains: [0; CHAINS], free: 0, untouched: 0, used: 0 }
    }

    /// Notes that the transaction has changed something, unless that is noted already.
    ///
    /// # Errors
    /// [`Full`] if there is no place left. Nothing was noted then, and what was noted before stays. For parts there is
    /// no place either if the transaction has many blocks, or half of all are in use: call `forget_parts` then.
    pub fn note(&mut self, xid: u32, change: Change) -> Result<(), Full> {
        let (mut link, mut open, mut own) = (self.chains[Self::chain_of(xid)], 0, 0);
        while link != 0 {
            let block = self.at(link);
            if block.xid == xid {
                own += 1;
                if block.noted().iter().any(|noted| noted.covers(change)) {
                    return Ok(());
                }
                if usize::from(block.len) < PLACES {
                    open = link;
                }
            }
            link = block.next;
        }
        if open == 0 {
            if change.is_part() && (own >= MOST_WITH_PARTS || usize::from(self.used) >= N / 2) {
                return Err(Full);
            }
            open = self.take_block(xid)?;
        }
        let block = self.at_mut(open);
        let place = block.changes.get_mut(usize::from(block.len)).ok_or(Full)?;
        *place = change;
        block.len += 1;
        Ok(())
    }

    /// Calls `each` with every change that is noted of the transaction, in no order.
    pub fn for_each(&self, xid: u32, mut each: impl FnMut(Change)) {
        let mut link = self.chains[Self::chain_of(xid)];
        while link != 0 {
            let block = self.at(link);
            if block.xid == xid {
                block.noted().iter().for_each(|change| each(*change));
            }
            link = block.next;
        }
    }

    /// Calls `each` with every change that is noted of any transaction, in no order.
    pub fn for_each_of_all(&self, mut each: impl FnMut(Change)) {
        for first in self.chains {
            let mut link = first;
            while link != 0 {
                let block = self.at(link);
                block.noted().iter().for_each(|change| each(*change));
                link = block.next;
            }
        }
    }

    /// Forgets what is noted of the transaction.
    pub fn forget(&mut self, xid: u32) {
        self.forget_of_chain(Self::chain_of(xid), |other| other == xid);
    }

    /// Notes that any part may have changed of each relation that is noted of the transaction. Needs no place.
    pub fn forget_parts(&mut self, xid: u32) {
        let mut link = self.chains[Self::chain_of(xid)];
        while link != 0 {
            let block = self.at_mut(link);
            if block.xid == xid {
                let relations =
                    block.changes.iter_mut().filter(|change| change.0 & (Change::CATALOG | Change::PART) == 0);
                relations.for_each(|change| change.0 |= Change::ANYWHERE);
            }
            link = block.next;
        }
    }

    /// Notes of `parent` what is noted of `child`, and forgets it of that. Parts for which there is no place are
    /// forgotten.
    ///
    /// # Errors
    /// [`Full`] if there is no place for all else. Some of it may be lost then.
    pub fn pass_on(&mut self, child: u32, parent: u32) -> Result<(), Full> {
        let mut taken = self.take_out(Self::chain_of(child), |other| other == child);
        let mut parts_are_lost = false;
        while taken != 0 {
            let block = *self.at(taken);
            self.give_back(taken);
            for change in block.noted() {
                match self.note(parent, *change) {
                    Err(Full) if change.is_part() => parts_are_lost = true,
                    noted => noted?,
                }
            }
            taken = block.next;
        }
        if parts_are_lost {
            self.forget_parts(parent);
        }
        Ok(())
    }

    /// Forgets what is noted of transactions older than `oldest_running`. Ids are compared as PostgreSQL compares them:
    /// modulo 2^32.
    pub fn forget_older(&mut self, oldest_running: u32) {
        for chain in 0..CHAINS {
            self.forget_of_chain(chain, |xid| precedes(xid, oldest_running));
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.chains.fill(0);
        (self.free, self.untouched, self.used) = (0, 0, 0);
    }

    /// The block at a link that is not 0. The remainder changes nothing: it shows the compiler that the index is
    /// inside.
    fn at(&self, link: Link) -> &Block<PLACES> {
        &self.blocks[usize::from(link).wrapping_sub(1) % N]
    }

    fn at_mut(&mut self, link: Link) -> &mut Block<PLACES> {
        &mut self.blocks[usize::from(link).wrapping_sub(1) % N]
    }

    fn chain_of(xid: u32) -> usize {
        xid as usize % CHAINS
    }

    fn forget_of_chain(&mut self, chain: usize, is_asked_for: impl Fn(u32) -> bool) {
        let mut taken = self.take_out(chain, is_asked_for);
        while taken != 0 {
            let next = self.at(taken).next;
            self.give_back(taken);
            taken = next;
        }
    }

    /// Takes the blocks out of a chain that belong to the transactions that are asked for. Returns the first of them,
    /// linked to the others. They are found nowhere any more, and are to be given back.
    fn take_out(&mut self, chain: usize, is_asked_for: impl Fn(u32) -> bool) -> Link {
        let (mut kept, mut taken, mut link) = (0, 0, self.chains[chain]);
        while link != 0 {
            let (xid, next) = (self.at(link).xid, self.at(link).next);
            if is_asked_for(xid) {
                match kept {
                    0 => self.chains[chain] = next,
                    _ => self.at_mut(kept).next = next,
                }
                self.at_mut(link).next = taken;
                taken = link;
            } else {
                kept = link;
            }
            link = next;
        }
        taken
    }

    /// An empty block of the transaction, in its chain.
    fn take_block(&mut self, xid: u32) -> Result<Link, Full> {
        let link = self.free;
        let link = if link != 0 {
            self.free = self.at(link).next;
            link
        } else if usize::from(self.untouched) < N {
            self.untouched += 1;
            self.untouched
        } else {
            return Err(Full);
        };
        self.used += 1;
        let first = std::mem::replace(&mut self.chains[Self::chain_of(xid)], link);
        let block = self.at_mut(link);
        (block.xid, block.len, block.next) = (xid, 0, first);
        Ok(link)
    }

    fn give_back(&mut self, link: Link) {
        self.at_mut(link).next = self.free;
        self.free = link;
        self.used = self.used.wrapping_sub(1);
    }
}

impl<const N: usize, const CHAINS: usize, const PLACES: usize> Default for ChangeTable<N, CHAINS, PLACES> {
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
