//! Which running transactions of a primary have changed rows of the files that its records name most often: a bit for each such file, in a
//! word for each transaction. So a record costs a comparison of the file and one of the transaction. State of the one process that replays; no
//! lock. Fixed memory: nothing here allocates or panics.

use crate::replay::changes::precedes;
use crate::versions::slots::SlotId;
use std::num::NonZeroU64;

/// A file of a relation, as records name it: by the database, 0 for the catalogs that all databases share, and its number (`relfilenode`). Both
/// are one word, so that comparing files is one instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RelationFile(u64);

impl RelationFile {
    /// No file: none has the number 0.
    pub const NONE: Self = Self(0);

    /// The file with this number in this database.
    #[must_use]
    pub const fn new(database: u32, number: u32) -> Self {
        Self(database as u64 | (number as u64) << u32::BITS)
    }

    /// The same, if the number stands in memory behind the database, as it does in records: one word is read, and not two.
    #[must_use]
    pub const fn of_neighbours(database_and_number: u64) -> Self {
        Self(if cfg!(target_endian = "big") { database_and_number.rotate_left(u32::BITS) } else { database_and_number })
    }

    /// The database.
    #[must_use]
    pub const fn database(self) -> u32 {
        self.0 as u32
    }

    /// The number in the database.
    #[must_use]
    pub const fn number(self) -> u32 {
        (self.0 >> u32::BITS) as u32
    }
}

/// Files that have a bit, each the one of its remainder.
const FILES: usize = u64::BITS as usize;

/// Notes of files whose bit belongs to another one, until all bits are given away anew.
const PATIENCE: u32 = 4096;

/// Hot files that a transaction, or several, have changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Marks(u64);

impl Marks {
    /// Adds those of another transaction.
    pub fn add(&mut self, others: Self) {
        self.0 |= others.0;
    }
}

/// `L` lines, a power of two: what one transaction each has changed. Transactions whose ids are a multiple of `L` apart share a line, which the first
/// of them has. A line without marks is free. All zeros if it is empty.
pub struct HotFiles<const L: usize> {
    /// The file that has the bit of the same place.
    files: [RelationFile; FILES],
    slots: [SlotId; FILES],
    /// The ids that follow those of the transactions: the line of zeros is that of the greatest id, and never one of a record without id.
    owners: [u32; L],
    marks: [u64; L],
    passed_over: u32,
}

impl<const L: usize> HotFiles<L> {
    /// No file has a bit.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(L.is_power_of_two(), "lines are found by remainder") };
        Self {
            files: [RelationFile::NONE; FILES],
            slots: [SlotId(0); FILES],
            owners: [0; L],
            marks: [0; L],
            passed_over: 0,
        }
    }

    const fn place(file: RelationFile) -> usize {
        file.number() as usize % FILES
    }

    /// What stands for the transaction in its line.
    const fn owner(xid: u32) -> u32 {
        xid.wrapping_add(1)
    }

    /// Notes that the transaction has changed rows of the file. False if that was not possible: the file has no bit, or the transaction no line.
    #[inline(always)]
    #[must_use]
    pub fn note(&mut self, xid: u32, file: RelationFile) -> bool {
        let (place, line) = (Self::place(file), xid as usize % L);
        if self.files[place] != file {
            return false;
        }
        // Most notes find the line of the transaction, for which this is the shortest code.
        if self.owners[line] == Self::owner(xid) {
            self.marks[line] |= 1 << place;
            return true;
        }
        self.add_to_free_line(xid, Marks(1 << place))
    }

    /// Notes that the transaction has changed these files. False if it has no line.
    #[must_use]
    pub fn add(&mut self, xid: u32, marks: Marks) -> bool {
        let line = xid as usize % L;
        if self.owners[line] != Self::owner(xid) {
            return self.add_to_free_line(xid, marks);
        }
        self.marks[line] |= marks.0;
        true
    }

    /// The same for a transaction whose line is not its own yet.
    #[inline(always)]
    fn add_to_free_line(&mut self, xid: u32, marks: Marks) -> bool {
        let line = xid as usize % L;
        if self.marks[line] != 0 || xid == 0 {
            return false;
        }
        (self.owners[line], self.marks[line]) = (Self::owner(xid), marks.0);
        true
    }

    /// A change of the file was noted elsewhere. The file gets its bit, if no other file has it. True if it is time to give all of them away
    /// anew: see [`HotFiles::drain`].
    #[must_use]
    pub fn learn(&mut self, file: RelationFile, slot: SlotId) -> bool {
        let place = Self::place(file);
        if self.files[place] == RelationFile::NONE {
            (self.files[place], self.slots[place]) = (file, slot);
        }
        self.passed_over += u32::from(self.files[place] != file);
        self.passed_over >= PATIENCE
    }

    /// Calls `each` with all that is noted, until it fails; forgets all of it, and takes the bits from all files.
    ///
    /// # Errors
    /// That of `each`: not all was passed on.
    pub fn drain<E>(&mut self, mut each: impl FnMut(u32, SlotId) -> Result<(), E>) -> Result<(), E> {
        let noted = self.owners.iter().zip(&self.marks).filter(|(_, marks)| **marks != 0);
        let outcome = noted
            .map(|(owner, marks)| self.slots(Marks(*marks)).try_for_each(|slot| each(owner.wrapping_sub(1), slot)))
            .find(Result::is_err)
            .unwrap_or(Ok(()));
        self.clear();
        outcome
    }

    /// What is noted of the transaction, which is forgotten.
    #[inline]
    pub fn take(&mut self, xid: u32) -> Marks {
        let line = xid as usize % L;
        if self.owners[line] == Self::owner(xid) { Marks(std::mem::take(&mut self.marks[line])) } else { Marks(0) }
    }

    /// What is noted of the transaction.
    #[must_use]
    pub fn noted(&self, xid: u32) -> Marks {
        let line = xid as usize % L;
        if self.owners[line] == Self::owner(xid) { Marks(self.marks[line]) } else { Marks(0) }
    }

    /// The slots of the files that are marked.
    #[inline]
    pub fn slots(&self, marks: Marks) -> impl Iterator<Item = SlotId> + '_ {
        let mut left = marks.0;
        std::iter::from_fn(move || {
            let first = NonZeroU64::new(left)?.trailing_zeros();
            left &= left.wrapping_sub(1);
            Some(self.slots[first as usize % FILES])
        })
    }

    /// Forgets what is noted of transactions older than `oldest_running`.
    pub fn forget_older(&mut self, oldest_running: u32) {
        let lines = self.owners.iter().zip(&mut self.marks);
        lines.filter(|(owner, _)| precedes(owner.wrapping_sub(1), oldest_running)).for_each(|(_, marks)| *marks = 0);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.files.fill(RelationFile::NONE);
        self.owners.fill(0);
        self.marks.fill(0);
        self.passed_over = 0;
    }

    /// Whether nothing is noted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.marks.iter().all(|marks| *marks == 0)
    }
}

impl<const L: usize> Default for HotFiles<L> {
    fn default() -> Self {
        Self::new()
    }
}
