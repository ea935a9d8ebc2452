//! Columns of a relation: those that are tracked, those that are quiet, and those that answers wish for (`tracked`).

use crate::atomics::{AtomicU64, Ordering::Relaxed};
use crate::versions::places::{key_of, scatter};

/// Most columns of a relation that are tracked.
pub const MOST_COLUMNS: usize = 4;
/// A column that each table has, and whose value is the same in all rows. An answer without conditions rests on it.
pub const EACH_ROW: i16 = i16::MAX;
/// That value, by its hash.
pub const ITS_VALUE: u64 = 0;
/// Two columns together are one that is tracked like any other: this bit, and six bits for the number of each.
const PAIR: i16 = 0x4000;
/// So many wishes for a column take it in.
const ENOUGH_WISHES: u64 = 8;
/// For so many columns of a relation wishes are counted at a time.
const MOST_WISHED: usize = 3;

/// A value of a column: the column's number, and the hash of the value.
pub type ColumnValue = (i16, u64);

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

/// The number of two columns together, whose value is that of both; `None` for what is no two of the first 63.
#[must_use]
pub const fn pair(one: i16, other: i16) -> Option<i16> {
    let (first, second) = if one < other { (one, other) } else { (other, one) };
    if first > 0 && first < second && second < 64 { Some(PAIR | first << 6 | second) } else { None }
}

/// A column, or the two that it stands for.
#[must_use]
pub const fn members(column: i16) -> (i16, Option<i16>) {
    let (first, second) = (column >> 6 & 63, column & 63);
    if column & !0xfff == PAIR && first > 0 && first < second { (first, Some(second)) } else { (column, None) }
}

/// The bits of a column, or of those that it stands for.
#[must_use]
pub fn bits_of(column: i16) -> u64 {
    let (first, second) = members(column);
    bit_of(first) | second.map_or(0, bit_of)
}

/// Values of two columns as that of both together; `None` if these cannot be tracked together.
#[must_use]
pub fn together(one: ColumnValue, other: ColumnValue) -> Option<ColumnValue> {
    let (first, second) = if one.0 < other.0 { (one, other) } else { (other, one) };
    Some((pair(first.0, second.0)?, scatter(scatter(first.1) ^ second.1)))
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
        self.place_of(column).is_some()
    }

    /// The place of the column, in the order in which they were taken in.
    #[must_use]
    pub fn place_of(&self, column: i16) -> Option<usize> {
        self.iter().position(|own| own == column)
    }

    /// The columns that were taken in since these were `before`; `None` if something else has changed as well. Each one
    /// taken in begins a generation, and so does each relation.
    pub fn added_since(&self, before: &Self) -> Option<impl Iterator<Item = i16> + use<>> {
        let [known, all] = [before, self].map(|columns| columns.iter().count());
        let begun = self.generation.checked_sub(before.generation)?;
        let are_added =
            self.quiet == before.quiet && known > 0 && Some(begun) == all.checked_sub(known).map(|n| n as u64);
        are_added.then(|| self.iter().skip(known))
    }

    /// Returns true if a change of these columns, by their bits, leaves the tracked ones as they are.
    #[must_use]
    pub fn keeps(&self, changed: u64) -> bool {
        self.iter().all(|column| column == EACH_ROW || changed & bits_of(column) == 0)
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
    /// leaves unread. The last place is not for two columns together, which only improve on one of them.
    pub(crate) fn with(mut self, wish: &Wish) -> Option<Self> {
        let usable = if members(wish.column).1.is_some() { MOST_COLUMNS - 1 } else { MOST_COLUMNS };
        let place = self.columns[..usable].iter_mut().find(|place| **place == 0)?;
        *place = wish.column;
        self.quiet = agreed(self.quiet, wish.unread) & !(bits_of(wish.column) | 1);
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

/// Which wishes there were for columns of the relations of one line, and how many. Zeroed memory is none. The words
/// need not agree: what is tracked is never wrong, and at worst of no use.
#[derive(Default)]
pub(crate) struct Wishes {
    key: AtomicU64,
    of_columns: [WishedColumn; MOST_WISHED],
}

/// A column that is wished for.
#[derive(Default)]
struct WishedColumn {
    /// How often, and in the low 16 bits the column.
    number: AtomicU64,
    unread: AtomicU64,
}

impl WishedColumn {
    fn count(&self) -> u64 {
        self.number.load(Relaxed) >> 16
    }

    fn is(&self, column: i16) -> bool {
        self.number.load(Relaxed) as u16 == column.cast_unsigned()
    }

    fn set(&self, column: i16, count: u64) {
        self.number.store(count << 16 | u64::from(column.cast_unsigned()), Relaxed);
    }

    fn lessen(&self) {
        let number = self.number.load(Relaxed);
        self.number.store(number.saturating_sub(1 << 16), Relaxed);
    }
}

impl Wishes {
    /// Counts one. If there were enough for its column, returns one for what they agree to leave unread.
    pub(crate) fn count(&self, wish: &Wish) -> Option<Wish> {
        let key = key_of(wish.database, wish.relation);
        if self.key.load(Relaxed) != key {
            if self.of_columns.iter().any(|own| own.count() > 1) {
                self.lessen();
                return None;
            }
            self.of_columns.iter().for_each(|own| own.set(0, 0));
            self.key.store(key, Relaxed);
        }
        // That for each row gives way to all others.
        let is_each_row = |own: &&WishedColumn| own.is(EACH_ROW);
        if wish.column != EACH_ROW {
            self.of_columns.iter().filter(is_each_row).for_each(|own| own.set(0, 0));
        } else if self.of_columns.iter().any(|own| own.count() > 1 && !own.is(EACH_ROW)) {
            return None;
        }
        let counted = || self.of_columns.iter().find(|own| own.count() > 0 && own.is(wish.column));
        let Some(own) = counted().or_else(|| self.of_columns.iter().find(|own| own.count() == 0)) else {
            self.lessen();
            return None;
        };
        let count = own.count() + 1;
        let before = if count > 1 { own.unread.load(Relaxed) } else { 0 };
        // An answer that reads everything has no say.
        let unread = agreed(if before == 0 { wish.unread } else { before }, wish.unread);
        own.unread.store(unread, Relaxed);
        let is_enough = count >= ENOUGH_WISHES;
        own.set(wish.column, if is_enough { 0 } else { count });
        is_enough.then_some(Wish { unread, ..*wish })
    }

    /// Those before weigh less: each is counted once less.
    fn lessen(&self) {
        self.of_columns.iter().for_each(WishedColumn::lessen);
    }
}
