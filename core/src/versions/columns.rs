//! Columns of a relation: those that are tracked, those that are quiet, and those that are wished for (`tracked`).

use crate::atomics::{AtomicU64, Ordering::Relaxed};
use crate::versions::places::{key_of, scatter};

/// Most columns of a relation that are tracked.
pub const MOST_COLUMNS: usize = 4;
/// A column that each table has, and whose value is the same in all rows. An answer without conditions rests on it.
pub const EACH_ROW: i16 = i16::MAX;
/// That value, by its hash.
pub const ITS_VALUE: u64 = 0;
/// A wish for this one is a wish that columns were quiet.
pub const QUIET: i16 = EACH_ROW - 1;
/// Most columns of a relation that are quiet, and most that an UPDATE of these alone sets.
pub const MOST_QUIET: usize = 8;
const MOST_SET: u32 = 4;
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
    /// Their numbers, and behind them 0 for none.
    pub columns: [i16; MOST_COLUMNS],
    /// The quiet columns.
    pub quiet: QuietColumns,
}

/// Quiet columns: a byte with the number of each, in the place that it has had since it became quiet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct QuietColumns(pub u64);

impl QuietColumns {
    /// Their places and numbers. No place is empty before another one.
    pub fn iter(self) -> impl Iterator<Item = (u8, i16)> {
        let from = move |place: u8| self.0 >> (8 * u32::from(place));
        (0..MOST_QUIET as u8)
            .take_while(move |place| from(*place) != 0)
            .map(move |place| (place, (from(place) & 0xff) as i16))
    }

    /// All of them, by their bits.
    #[must_use]
    pub fn bits(self) -> u64 {
        self.iter().fold(0, |bits, (_, column)| bits | bit_of(column))
    }

    /// The places of those that are among some columns, by their bits.
    pub fn among(self, columns: u64) -> impl Iterator<Item = u8> {
        self.iter().filter(move |(_, column)| columns & bit_of(*column) != 0).map(|(place, _)| place)
    }

    /// Returns true if an UPDATE that sets these columns, by their bits, sets a few quiet ones and no others.
    #[must_use]
    pub fn are_all(self, set: u64) -> bool {
        set != 0 && set & !self.bits() == 0 && set.count_ones() <= MOST_SET
    }

    /// These and further ones, by their bits; `None` if none is new, or there is no room for all.
    #[must_use]
    pub fn with(self, columns: u64) -> Option<Self> {
        let new = columns & !self.bits();
        if new == 0 || new & 1 != 0 || columns.count_ones() > MOST_SET {
            return None;
        }
        let mut all = self.0.to_le_bytes();
        let mut free = all.iter_mut().filter(|place| **place == 0);
        for column in (1..64).filter(|column| new >> column & 1 != 0) {
            *free.next()? = column;
        }
        Some(Self(u64::from_le_bytes(all)))
    }
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

/// The bits of a column, or of those that it stands for. No column is `EACH_ROW`.
#[must_use]
pub fn bits_of(column: i16) -> u64 {
    let (first, second) = members(column);
    if column == EACH_ROW { 0 } else { bit_of(first) | second.map_or(0, bit_of) }
}

/// Values of two columns as that of both together; `None` if these cannot be tracked together.
#[must_use]
pub fn together(one: ColumnValue, other: ColumnValue) -> Option<ColumnValue> {
    let (first, second) = if one.0 < other.0 { (one, other) } else { (other, one) };
    Some((pair(first.0, second.0)?, scatter(scatter(first.1) ^ second.1)))
}

impl TrackedColumns {
    /// The numbers of the columns.
    pub fn iter(&self) -> impl Iterator<Item = i16> + use<> {
        self.columns.into_iter().take_while(|column| *column != 0)
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
        self.iter().all(|column| changed & bits_of(column) == 0)
    }

    /// Returns true if values of rows need not be looked at to know them.
    #[must_use]
    pub fn is_each_row(&self) -> bool {
        self.iter().eq([EACH_ROW])
    }

    /// These columns and one more, if there is room for it. The last place is not for two columns together, which only
    /// improve on one of them.
    pub(crate) fn with(mut self, column: i16) -> Option<Self> {
        let usable = if members(column).1.is_some() { MOST_COLUMNS - 1 } else { MOST_COLUMNS };
        let place = self.columns[..usable].iter_mut().find(|place| **place == 0)?;
        *place = column;
        Some(self)
    }
}

/// A wish that a column of a relation were tracked: an answer was stored that would rest on its values. Or a wish that
/// columns were quiet: an UPDATE has set these alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wish {
    /// The database of the relation.
    pub database: u32,
    /// The relation.
    pub relation: u32,
    /// The number of the column.
    pub column: i16,
    /// If that is `QUIET`, those that an UPDATE has set, by their bits.
    pub set: u64,
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
    set: AtomicU64,
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
    /// Counts one. If there were enough for its column, returns one for what they have in common.
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
        // That for each row gives way to all others for a tracked column.
        let is_other = |own: &WishedColumn| !own.is(EACH_ROW) && !own.is(QUIET);
        if wish.column == EACH_ROW {
            if self.of_columns.iter().any(|own| own.count() > 1 && is_other(own)) {
                return None;
            }
        } else if wish.column != QUIET {
            self.of_columns.iter().filter(|own| own.is(EACH_ROW)).for_each(|own| own.set(0, 0));
        }
        let counted = || self.of_columns.iter().find(|own| own.count() > 0 && own.is(wish.column));
        let Some(own) = counted().or_else(|| self.of_columns.iter().find(|own| own.count() == 0)) else {
            self.lessen();
            return None;
        };
        let count = own.count() + 1;
        let before = if count > 1 { own.set.load(Relaxed) } else { wish.set };
        // Those that have set others wait until these are quiet.
        let set = if before & wish.set == 0 { before } else { before & wish.set };
        own.set.store(set, Relaxed);
        let is_enough = count >= ENOUGH_WISHES;
        own.set(wish.column, if is_enough { 0 } else { count });
        is_enough.then_some(Wish { set, ..*wish })
    }

    /// Those before weigh less: each is counted once less.
    fn lessen(&self) {
        self.of_columns.iter().for_each(WishedColumn::lessen);
    }
}
