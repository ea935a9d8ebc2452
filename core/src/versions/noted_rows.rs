//! What one transaction has noted of the rows of a tracked relation that it changes: the values that tracked columns
//! had before and after, and how many changes that were. The server counts each change of a row by itself, whatever
//! path it took. So a change that was not noted shows: then the noted values are not all, and are worth nothing.
//!
//! Pure; belongs to one transaction of one process.

use crate::room::Room;
use crate::versions::columns::TrackedColumns;

/// Most changes whose values are noted, and most of these values. Noting one, and publishing it, takes as long as a
/// simple change of a row; so more would be felt.
pub const MOST_CHANGES: i64 = 1000;

/// Of so many of the last values it is remembered where they stand.
const RECENT: usize = 512;
/// Values that memory is kept for.
const KEPT: usize = 64;

/// One change of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowChange {
    /// A row came.
    Insert,
    /// A row got a new version.
    Update,
    /// A row went.
    Delete,
}

/// Numbers of changes of rows, by their kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RowChanges {
    /// Rows that came.
    pub inserted: i64,
    /// Rows that got a new version.
    pub updated: i64,
    /// Rows that went.
    pub deleted: i64,
}

impl RowChanges {
    /// One change.
    #[inline]
    #[must_use]
    pub const fn one(change: RowChange) -> Self {
        let mut one = Self { inserted: 0, updated: 0, deleted: 0 };
        match change {
            RowChange::Insert => one.inserted = 1,
            RowChange::Update => one.updated = 1,
            RowChange::Delete => one.deleted = 1,
        }
        one
    }

    /// These and others.
    #[inline]
    #[must_use]
    pub const fn and(self, more: Self) -> Self {
        Self {
            inserted: self.inserted.wrapping_add(more.inserted),
            updated: self.updated.wrapping_add(more.updated),
            deleted: self.deleted.wrapping_add(more.deleted),
        }
    }
}

/// What the server has counted of the changes of one relation's rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CountedChanges {
    /// Those of the transaction under way, at all of its open levels.
    pub open: RowChanges,
    /// Those of earlier transactions that this process has not reported yet, and of levels of this transaction that
    /// were rolled back. The end of a level moves its changes from there to here, or to the level above it.
    pub over: RowChanges,
    /// Counts were set to zero, since the relation was truncated or dropped.
    pub is_truncated: bool,
}

/// Why a change of a tracked relation is one of the whole relation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coarse {
    /// Some change was not noted.
    NotNoted,
    /// Too many rows have changed, or one with a value that has no hash.
    Overflow,
    /// The transaction has changed definitions.
    Definitions,
    /// The relation came to be tracked anew since the first change, or by fewer quiet columns.
    Generation,
}

/// What is noted of one relation.
pub struct NotedRows {
    /// What was tracked when the first statement began.
    tracked: TrackedColumns,
    /// What the server had counted as over when the first change was noted; `None` before.
    base: Option<RowChanges>,
    /// Changes that were noted, rolled back or not.
    noted: RowChanges,
    /// For how many of them rows were looked at.
    looked_at: i64,
    /// The places of values among their slots. Some may stand there more than once.
    values: Vec<u64>,
    /// Where the last ones stand, by their low bits.
    recent: [u16; RECENT],
    /// Why no more is noted.
    coarse: Option<Coarse>,
}

impl NotedRows {
    /// Nothing is noted.
    #[must_use]
    pub const fn new(tracked: TrackedColumns) -> Self {
        let nothing = RowChanges { inserted: 0, updated: 0, deleted: 0 };
        Self {
            tracked,
            base: None,
            noted: nothing,
            looked_at: 0,
            values: Vec::new(),
            recent: [0; RECENT],
            coarse: None,
        }
    }

    /// Forgets what was noted, and notes by these columns.
    pub fn start_anew(&mut self, tracked: TrackedColumns) {
        (self.tracked, self.base, self.noted) = (tracked, None, RowChanges::default());
        (self.looked_at, self.coarse) = (0, None);
        self.forget_values();
    }

    /// Gives back the memory of many values.
    pub fn forget_values(&mut self) {
        self.values.clear();
        self.values.shrink_to(KEPT);
    }

    /// A statement begins that finds these columns.
    pub fn expect(&mut self, tracked: &TrackedColumns) {
        if tracked.added_since(&self.tracked).is_none() {
            self.give_up(Coarse::Generation);
        }
    }

    /// Returns true if it is worth noting more.
    #[inline]
    #[must_use]
    pub const fn wants_more(&self) -> bool {
        self.coarse.is_none()
    }

    /// Nothing more is to be noted: the relation has changed as a whole. The first reason counts.
    #[cold]
    pub fn give_up(&mut self, why: Coarse) {
        self.coarse.get_or_insert(why);
        self.forget_values();
    }

    /// The server has told of a change of the relation's definition. It may have been truncated: when that is rolled
    /// back, the server forgets changes that it has counted since then, and so fewer are counted than were noted.
    pub fn redefine(&mut self) {
        if self.base.is_some() {
            self.give_up(Coarse::Definitions);
        }
    }

    /// Notes a change that has been made. `counted` is what the server has counted, with this change; it is asked for
    /// the first change only. `None` if the server does not count.
    #[inline]
    pub fn add_change(&mut self, change: RowChange, counted: impl FnOnce() -> Option<CountedChanges>) {
        self.add_changes(RowChanges::one(change), counted);
    }

    /// As `add_change`, of changes that have been made together.
    #[inline]
    pub fn add_changes(&mut self, made: RowChanges, counted: impl FnOnce() -> Option<CountedChanges>) {
        if self.base.is_none() {
            // Changes before these would not be noted.
            match counted().filter(|counted| counted.open == made && !counted.is_truncated) {
                Some(counted) => self.base = Some(counted.over),
                None => self.give_up(Coarse::NotNoted),
            }
        }
        self.noted = self.noted.and(made);
    }

    /// Notes that a row has to be looked at for its values.
    #[inline]
    pub fn look(&mut self) {
        self.looked_at += 1;
        if self.looked_at > MOST_CHANGES {
            self.give_up(Coarse::Overflow);
        }
    }

    /// Notes a value that a changed row had before or after, by its place (`places`).
    #[inline]
    pub fn add_value(&mut self, value: u64) {
        // Rows of the same values often follow each other.
        let recent = &mut self.recent[value as usize % RECENT];
        if self.values.get(usize::from(*recent)) == Some(&value) || self.coarse.is_some() {
            return;
        }
        if self.values.len() < MOST_CHANGES as usize && self.values.make_room(1).is_ok() {
            *recent = self.values.len() as u16;
            self.values.push(value);
        } else {
            self.give_up(Coarse::Overflow);
        }
    }

    /// The places of the values that changed rows had, before or after, some more than once; and the columns of which
    /// these may not be all, as they were taken in meanwhile. `tracked` are those of now, and `counted` what the server
    /// has counted.
    ///
    /// # Errors
    /// Why these may not be all.
    pub fn values(
        &self,
        tracked: &TrackedColumns,
        counted: &CountedChanges,
    ) -> Result<(&[u64], impl Iterator<Item = i16> + use<>), Coarse> {
        if let Some(why) = self.coarse {
            return Err(why);
        }
        let added = tracked.added_since(&self.tracked).ok_or(Coarse::Generation)?;
        // Each change that counts was made since the first one that is noted. Since then the server has counted as many
        // changes as were noted, and each noted one is counted (`redefine`): so each counted one is noted.
        let all = self.base.map(|base| base.and(self.noted));
        let is_complete = !counted.is_truncated && all == Some(counted.over.and(counted.open));
        if is_complete { Ok((&self.values, added)) } else { Err(Coarse::NotNoted) }
    }
}
