//! What the running transactions of a primary have changed, beside the rows of hot files: the first changes of a transaction stand in one line
//! that its id finds directly; what has no room there goes to the table of `replayed`. State of the one process that replays; no lock. Fixed
//! memory: nothing here allocates or panics.

use crate::replay::changes::{Change, ChangeTable, Full, precedes};

/// The first `I` changes of one transaction. A line of zeros is free.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Line<const I: usize> {
    xid: u32,
    count: u32,
    changes: [Change; I],
}

const _: () = assert!(size_of::<Line<6>>() == 32);

impl<const I: usize> Line<I> {
    const FREE: Self = Self { xid: 0, count: 0, changes: [Change(0); I] };

    fn changes(&self) -> &[Change] {
        self.changes.get(..self.count as usize).unwrap_or(&self.changes)
    }
}

/// What running transactions have changed: `L` lines, a power of two, for `I` changes each, and room for `N` more. Transactions whose ids are a multiple of `L`
/// apart share a line: the second one uses the room behind it. All zeros if it is empty.
pub struct RecentChanges<const L: usize, const I: usize, const N: usize> {
    lines: [Line<I>; L],
    /// Lines that are in use.
    used: usize,
    rest: ChangeTable<N>,
}

impl<const L: usize, const I: usize, const N: usize> RecentChanges<L, I, N> {
    /// Nothing is noted.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(L.is_power_of_two() && I > 0, "lines are found by remainder, and hold something") };
        Self { lines: [Line::FREE; L], used: 0, rest: ChangeTable::new() }
    }

    /// Notes that the transaction has changed something.
    ///
    /// # Errors
    /// [`Full`] if there is no place left. Nothing was noted then, and what was noted before stays.
    #[inline]
    pub fn note(&mut self, xid: u32, change: Change) -> Result<(), Full> {
        let line = &mut self.lines[xid as usize % L];
        if line.count == 0 {
            (line.xid, line.count) = (xid, 1);
            line.changes[0] = change;
            self.used += 1;
            return Ok(());
        }
        if line.xid == xid {
            if line.changes().contains(&change) {
                return Ok(());
            }
            if let Some(place) = line.changes.get_mut(line.count as usize) {
                *place = change;
                line.count += 1;
                return Ok(());
            }
        }
        self.rest.note(xid, change)
    }

    /// May something be noted of the transaction? If not, nothing is.
    #[inline]
    #[must_use]
    pub fn may_hold(&self, xid: u32) -> bool {
        let line = &self.lines[xid as usize % L];
        line.count != 0 && line.xid == xid || !self.rest.is_empty()
    }

    /// Calls `each` with every change that is noted of the transaction, in no order, and forgets them. One may come twice.
    #[inline]
    pub fn take(&mut self, xid: u32, mut each: impl FnMut(Change)) {
        let line = &mut self.lines[xid as usize % L];
        if line.count != 0 && line.xid == xid {
            line.changes().iter().copied().for_each(&mut each);
            line.count = 0;
            self.used -= 1;
        }
        if !self.rest.is_empty() {
            self.rest.for_each(xid, each);
            self.rest.forget(xid);
        }
    }

    /// Calls `each` with every change that is noted of the transaction, in no order. One may come twice.
    pub fn for_each(&self, xid: u32, mut each: impl FnMut(Change)) {
        let line = &self.lines[xid as usize % L];
        if line.count != 0 && line.xid == xid {
            line.changes().iter().copied().for_each(&mut each);
        }
        self.rest.for_each(xid, each);
    }

    /// Forgets what is noted of the transaction.
    pub fn forget(&mut self, xid: u32) {
        self.take(xid, |_| ());
    }

    /// Notes of `parent` what is noted of `child`, and forgets it of that.
    ///
    /// # Errors
    /// [`Full`] if there is no place left: not all was noted of `parent`.
    pub fn pass_on(&mut self, child: u32, parent: u32) -> Result<(), Full> {
        if child == parent {
            return Ok(());
        }
        self.rest.pass_on(child, parent);
        let line = self.lines[child as usize % L];
        if line.count == 0 || line.xid != child {
            return Ok(());
        }
        self.lines[child as usize % L].count = 0;
        self.used -= 1;
        line.changes().iter().try_for_each(|change| self.note(parent, *change))
    }

    /// Forgets what is noted of transactions older than `oldest_running`. Ids are compared as PostgreSQL compares them: modulo 2^32.
    pub fn forget_older(&mut self, oldest_running: u32) {
        if self.used > 0 {
            for line in &mut self.lines {
                if line.count != 0 && precedes(line.xid, oldest_running) {
                    line.count = 0;
                    self.used -= 1;
                }
            }
        }
        self.rest.forget_older(oldest_running);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.lines.fill(Line::FREE);
        self.used = 0;
        self.rest.clear();
    }

    /// Whether nothing is noted.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.used == 0 && self.rest.is_empty()
    }
}

impl<const L: usize, const I: usize, const N: usize> Default for RecentChanges<L, I, N> {
    fn default() -> Self {
        Self::new()
    }
}
