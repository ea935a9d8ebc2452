//! Which running transactions of a primary have changed rows of the files that its records name most often: a bit for each such file, in a
//! word for each transaction. So a record costs a comparison of the file and one of the transaction. State of the one process that replays; no
//! lock. Fixed memory: nothing here allocates or panics.

use crate::cache::replayed::precedes;
use crate::cache::versions::SlotId;
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

/// A file that has a bit.
#[derive(Clone, Copy)]
struct Hot {
    file: RelationFile,
    bit: u64,
}

impl Hot {
    const NONE: Self = Self { file: RelationFile::NONE, bit: 0 };
}

/// What one transaction has changed. A line without marks is free, and a line of zeros is.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Line {
    /// The complement of its id: the line of zeros is that of the greatest id, and never one of a record without id.
    complement: u32,
    marks: u64,
}

impl Line {
    const FREE: Self = Self { complement: 0, marks: 0 };

    const fn is_of(&self, xid: u32) -> bool {
        self.complement == !xid
    }

    /// Is something noted, of a transaction that is older than that?
    fn is_older(&self, oldest_running: u32) -> bool {
        self.marks != 0 && precedes(!self.complement, oldest_running)
    }
}

/// Hot files that a transaction, or several, have changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Marks(u64);

impl Marks {
    /// Adds those of another transaction.
    pub fn add(&mut self, others: Self) {
        self.0 |= others.0;
    }
}

/// `L` lines, a power of two. Transactions whose ids are a multiple of `L` apart share a line, which the first of them has. All zeros if it is
/// empty.
pub struct HotFiles<const L: usize> {
    files: [Hot; FILES],
    slots: [SlotId; FILES],
    lines: [Line; L],
    passed_over: u32,
}

impl<const L: usize> HotFiles<L> {
    /// No file has a bit.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(L.is_power_of_two(), "lines are found by remainder") };
        Self { files: [Hot::NONE; FILES], slots: [SlotId(0); FILES], lines: [Line::FREE; L], passed_over: 0 }
    }

    const fn place(file: RelationFile) -> usize {
        file.number() as usize % FILES
    }

    /// Notes that the transaction has changed rows of the file. False if that was not possible: the file has no bit, or the transaction no line.
    #[inline(always)]
    #[must_use]
    pub fn note(&mut self, xid: u32, file: RelationFile) -> bool {
        let hot = &self.files[Self::place(file)];
        hot.file == file && self.add(xid, Marks(hot.bit))
    }

    /// Notes that the transaction has changed these files. False if it has no line.
    #[inline(always)]
    #[must_use]
    pub fn add(&mut self, xid: u32, marks: Marks) -> bool {
        let line = &mut self.lines[xid as usize % L];
        if !line.is_of(xid) {
            if line.marks != 0 || xid == 0 {
                return false;
            }
            line.complement = !xid;
        }
        line.marks |= marks.0;
        true
    }

    /// A change of the file was noted elsewhere. The file gets its bit, if no other file has it. True if it is time to give all of them away
    /// anew: see [`HotFiles::drain`].
    #[must_use]
    pub fn learn(&mut self, file: RelationFile, slot: SlotId) -> bool {
        let place = Self::place(file);
        let hot = &mut self.files[place];
        if hot.file == RelationFile::NONE {
            *hot = Hot { file, bit: 1 << place };
            self.slots[place] = slot;
        }
        self.passed_over += u32::from(hot.file != file);
        self.passed_over >= PATIENCE
    }

    /// Calls `each` with all that is noted, until it fails; forgets all of it, and takes the bits from all files.
    ///
    /// # Errors
    /// That of `each`: not all was passed on.
    pub fn drain<E>(&mut self, mut each: impl FnMut(u32, SlotId) -> Result<(), E>) -> Result<(), E> {
        let noted = self.lines.iter().filter(|line| line.marks != 0);
        let outcome = noted
            .map(|line| self.slots(Marks(line.marks)).try_for_each(|slot| each(!line.complement, slot)))
            .find(Result::is_err)
            .unwrap_or(Ok(()));
        self.clear();
        outcome
    }

    /// What is noted of the transaction, which is forgotten.
    #[inline]
    pub fn take(&mut self, xid: u32) -> Marks {
        let line = &mut self.lines[xid as usize % L];
        if line.is_of(xid) { Marks(std::mem::take(&mut line.marks)) } else { Marks(0) }
    }

    /// What is noted of the transaction.
    #[must_use]
    pub fn noted(&self, xid: u32) -> Marks {
        let line = &self.lines[xid as usize % L];
        if line.is_of(xid) { Marks(line.marks) } else { Marks(0) }
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
        self.lines.iter_mut().filter(|line| line.is_older(oldest_running)).for_each(|line| line.marks = 0);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.files.fill(Hot::NONE);
        self.lines.fill(Line::FREE);
        self.passed_over = 0;
    }

    /// Whether nothing is noted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.marks == 0)
    }
}

impl<const L: usize> Default for HotFiles<L> {
    fn default() -> Self {
        Self::new()
    }
}
