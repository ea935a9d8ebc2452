//! Columns of a relation: those that are tracked, those that are quiet, and those that answers wish for (`tracked`).

use crate::atomics::{AtomicU64, Ordering::Relaxed};
use crate::versions::places::key_of;

/// Most columns of a relation that are tracked.
pub const MOST_COLUMNS: usize = 4;
/// A column that each table has, and whose value is the same in all rows. An answer without conditions rests on it.
pub const EACH_ROW: i16 = i16::MAX;
/// That value, by its hash.
pub const ITS_VALUE: u64 = 0;
/// So many wishes for a column, with no others between, take it in.
const ENOUGH_WISHES: u64 = 8;

/// The columns of a tracked relation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TrackedColumns {
    /// Another one for each change of the columns: what was noted under one says nothing under another.
    pub generation: u64,
    /// Their numbers; 0 for none.
    pub columns: [i16; MOST_COLUMNS],
    /// The quiet columns, by their bits (`bit_of`). No tracked column is among them.
    pub quiet: u64,
}

/// The bit of a column in a set of columns; all above 63 share the first one, which no tracked or quiet column has.
#[must_use]
pub const fn bit_of(column: i16) -> u64 {
    if column > 0 && column < 64 { 1 << column } else { 1 }
}

/// The columns that are unread both here and there; the first ones if there are none, as nothing would be quiet then.
const fn agreed(unread: u64, other: u64) -> u64 {
    if unread & other == 0 { unread } else { unread & other }
}

impl TrackedColumns {
    /// The numbers of the columns.
    pub fn iter(&self) -> impl Iterator<Item = i16> + use<> {
        self.columns.into_iter().filter(|column| *column != 0)
    }

    /// Returns true if the column is among them.
    #[must_use]
    pub fn has(&self, column: i16) -> bool {
        self.iter().any(|own| own == column)
    }

    /// Returns true if a change of these columns, by their bits, leaves the tracked ones as they are.
    #[must_use]
    pub fn keeps(&self, changed: u64) -> bool {
        self.iter().all(|column| column == EACH_ROW || changed & bit_of(column) == 0)
    }

    /// Returns true if all of these columns, by their bits, are quiet.
    #[must_use]
    pub const fn is_quiet(&self, changed: u64) -> bool {
        changed & !self.quiet == 0
    }

    /// Returns true if values of rows need not be looked at to know them.
    #[must_use]
    pub fn is_each_row(&self) -> bool {
        self.iter().eq([EACH_ROW])
    }

    /// These columns and the one of a wish, if there is room for it. Of the quiet columns those stay that the wish
    /// leaves unread.
    pub(crate) fn with(mut self, wish: &Wish) -> Option<Self> {
        let place = self.columns.iter_mut().find(|place| **place == 0)?;
        *place = wish.column;
        self.quiet = agreed(self.quiet, wish.unread) & !(bit_of(wish.column) | 1);
        Some(self)
    }
}

/// A wish that a column of a relation were tracked: an answer was stored that would rest on its values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wish {
    /// The database of the relation.
    pub database: u32,
    /// The relation.
    pub relation: u32,
    /// The number of the column.
    pub column: i16,
    /// The columns that the answer does not read, by their bits.
    pub unread: u64,
}

/// Which wishes there were last for columns of the relations of one line, and how many. Zeroed memory is none. The
/// words need not agree: what is tracked is never wrong, and at worst of no use.
#[derive(Default)]
pub(crate) struct Wishes {
    key: AtomicU64,
    /// How many, and in the low 16 bits the column.
    number: AtomicU64,
    unread: AtomicU64,
}

impl Wishes {
    /// Counts one. If there were enough for its column, returns one for what they agree to leave unread.
    pub(crate) fn count(&self, wish: &Wish) -> Option<Wish> {
        let (key, column) = (key_of(wish.database, wish.relation), u64::from(wish.column.cast_unsigned()));
        let number = self.number.load(Relaxed);
        let (count, last) = (number >> 16, number & 0xffff);
        let is_same = self.key.load(Relaxed) == key && last == column;
        if !is_same && count > 1 && last != EACH_ROW as u64 {
            // The wishes before weigh less, but not because of one that gives way to all others.
            let less = if wish.column == EACH_ROW { count } else { count - 1 };
            self.number.store(less << 16 | last, Relaxed);
            return None;
        }
        self.key.store(key, Relaxed);
        let (count, before) = if is_same { (count + 1, self.unread.load(Relaxed)) } else { (1, 0) };
        // An answer that reads everything has no say.
        let unread = agreed(if before == 0 { wish.unread } else { before }, wish.unread);
        self.unread.store(unread, Relaxed);
        let is_enough = count >= ENOUGH_WISHES;
        self.number.store(if is_enough { 0 } else { count << 16 | column }, Relaxed);
        is_enough.then_some(Wish { unread, ..*wish })
    }
}
