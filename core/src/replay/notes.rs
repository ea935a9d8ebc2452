//! All that is noted of the running transactions of a primary: of files that records name often in `hot_files`, of all else in `recent_changes`.
//! State of the one process that replays; no lock. Fixed memory: nothing here allocates or panics.

use crate::replay::changes::{Change, Full};
use crate::replay::hot_files::{HotFiles, Marks, RelationFile};
use crate::replay::recent_changes::RecentChanges;
use crate::versions::slots::SlotId;

/// What the process that replays keeps.
pub type ReplayedChanges = ReplayNotes<4096, 6, 32_768>;

/// What running transactions have changed: `L` lines, a power of two, for hot files; as many for `I` other changes each; and room for `N` more.
/// All zeros if it is empty.
pub struct ReplayNotes<const L: usize, const I: usize, const N: usize> {
    hot: HotFiles<L>,
    others: RecentChanges<L, I, N>,
}

impl<const L: usize, const I: usize, const N: usize> ReplayNotes<L, I, N> {
    /// Nothing is noted.
    #[must_use]
    pub const fn new() -> Self {
        Self { hot: HotFiles::new(), others: RecentChanges::new() }
    }

    /// Notes that the transaction has changed rows of a file, if that takes no time. If not, it returns false, and nothing was noted.
    #[inline(always)]
    #[must_use]
    pub fn note_hot(&mut self, xid: u32, file: RelationFile) -> bool {
        self.hot.note(xid, file)
    }

    /// Notes that the transaction has changed rows of a file, which stand for this slot.
    ///
    /// # Errors
    /// [`Full`] if there is no place left. What was noted before may be lost then.
    pub fn note_rows(&mut self, xid: u32, file: RelationFile, slot: SlotId) -> Result<(), Full> {
        if self.hot.learn(file, slot) {
            self.choose_anew()?;
        }
        self.others.note(xid, Change::slot(slot))
    }

    /// Notes that the transaction has changed something.
    ///
    /// # Errors
    /// [`Full`] if there is no place left. Nothing was noted then, and what was noted before stays.
    pub fn note(&mut self, xid: u32, change: Change) -> Result<(), Full> {
        self.others.note(xid, change)
    }

    /// Lets other files become hot: those that are named from now on.
    ///
    /// # Errors
    /// [`Full`] if what is noted of the hot ones of now has no place elsewhere: some of it is lost.
    pub fn choose_anew(&mut self) -> Result<(), Full> {
        let Self { hot, others } = self;
        hot.drain(|xid, slot| others.note(xid, Change::slot(slot)))
    }

    /// What is noted of a transaction and its sub-transactions, if these are changes of hot files only; then it is forgotten. `None` if there
    /// may be others, which needs [`ReplayNotes::take`].
    #[inline]
    pub fn take_hot(&mut self, xid: u32, children: &[u32]) -> Option<Marks> {
        if !self.others.is_empty() && (!children.is_empty() || self.others.may_hold(xid)) {
            return None;
        }
        let mut marks = self.hot.take(xid);
        children.iter().for_each(|child| marks.add(self.hot.take(*child)));
        Some(marks)
    }

    /// The slots of hot files.
    #[inline]
    pub fn slots(&self, marks: Marks) -> impl Iterator<Item = SlotId> + '_ {
        self.hot.slots(marks)
    }

    /// Calls `each` with every change that is noted of the transaction, in no order, and forgets them. One may come twice.
    pub fn take(&mut self, xid: u32, mut each: impl FnMut(Change)) {
        let marks = self.hot.take(xid);
        self.hot.slots(marks).for_each(|slot| each(Change::slot(slot)));
        self.others.take(xid, each);
    }

    /// Calls `each` with every change that is noted of the transaction, in no order. One may come twice.
    pub fn for_each(&self, xid: u32, mut each: impl FnMut(Change)) {
        self.hot.slots(self.hot.noted(xid)).for_each(|slot| each(Change::slot(slot)));
        self.others.for_each(xid, each);
    }

    /// Forgets what is noted of the transaction.
    pub fn forget(&mut self, xid: u32) {
        self.hot.take(xid);
        self.others.forget(xid);
    }

    /// Notes of `parent` what is noted of `child`, and forgets it of that.
    ///
    /// # Errors
    /// [`Full`] if there is no place left: not all was noted of `parent`.
    pub fn pass_on(&mut self, child: u32, parent: u32) -> Result<(), Full> {
        if child == parent {
            return Ok(());
        }
        let Self { hot, others } = self;
        let marks = hot.take(child);
        if !hot.add(parent, marks) {
            hot.slots(marks).try_for_each(|slot| others.note(parent, Change::slot(slot)))?;
        }
        others.pass_on(child, parent)
    }

    /// Forgets what is noted of transactions older than `oldest_running`. Ids are compared as PostgreSQL compares them: modulo 2^32.
    pub fn forget_older(&mut self, oldest_running: u32) {
        self.hot.forget_older(oldest_running);
        self.others.forget_older(oldest_running);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.hot.clear();
        self.others.clear();
    }

    /// Whether nothing is noted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hot.is_empty() && self.others.is_empty()
    }
}

impl<const L: usize, const I: usize, const N: usize> Default for ReplayNotes<L, I, N> {
    fn default() -> Self {
        Self::new()
    }
}
