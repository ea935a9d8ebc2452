//! What a row has that answers may rest on: the values of tracked columns, and the zone of its version. Keeps nothing.

use std::num::NonZero;

use arrow_cache_core::versions::columns::MOST_COLUMNS;
use arrow_cache_core::versions::places::{number_of_column, place_of_value};
use arrow_cache_core::versions::zones::size_of_zones;
use arrow_cache_core::{EACH_ROW, QuietColumns, TrackedColumns, bits_of, members, together};
use pgrx::pg_sys;

use crate::pg::backend;
use crate::pg::compat::tuple_attribute;
use crate::query::value_hash::{Form, form_of};

/// A column that has values, and how these are hashed.
pub type Hashed = (i16, Form);

/// What a tracked column has in a row. Which it is stands in a byte of its own, as it is asked for each row.
#[derive(Clone, Copy, Default)]
#[repr(u8)]
pub enum Content {
    /// Nothing that an answer rests on.
    #[default]
    Nothing,
    /// What `EACH_ROW` has.
    ItsValue,
    /// The zone of its version. The zones are of so many blocks, by its binary logarithm.
    Zone(u32),
    /// A value.
    Value(Hashed),
    /// That of two columns together.
    Pair(Hashed, Hashed),
}

/// A tracked column.
#[derive(Clone, Copy, Default)]
pub struct Column {
    pub content: Content,
    /// Of which the places of its values are made.
    number: u64,
    /// The node's own updates leave it as it is.
    pub is_kept: bool,
}

impl Column {
    /// The place of a value.
    #[inline]
    pub fn place_of(&self, hash: u64) -> u64 {
        place_of_value(self.number, hash)
    }
}

/// What is noted of a row that changes.
#[derive(Clone, Copy, Default)]
pub struct Columns {
    /// The tracked columns, and behind them some that have nothing.
    columns: [Column; MOST_COLUMNS],
    /// So many have something.
    count: usize,
    /// The last column whose value is one of these; 0 if there is none.
    last: i16,
    /// Some have more than values.
    pub have_more: bool,
    /// The node's own updates leave all these values as they are.
    pub keeps_values: bool,
    /// The columns that they set, by their bits, if these are a few quiet ones.
    pub quietly_set: Option<NonZero<u64>>,
    /// The quiet columns.
    pub quiet: QuietColumns,
}

impl Columns {
    /// What is noted of rows whose changes set the columns of `changed`, by their bits, and how values are hashed.
    ///
    /// # Safety
    /// The relation must be open.
    pub unsafe fn of(relation: pg_sys::Relation, tracked: &TrackedColumns, changed: u64) -> Self {
        // SAFETY: the caller's promise: an open relation has a row type with so many columns.
        let hashed = |column: i16| unsafe {
            let row_type = (*relation).rd_att;
            let has_column = column > 0 && i32::from(column) <= (*row_type).natts;
            let type_oid = has_column.then(|| (*tuple_attribute(row_type, column as usize - 1)).atttypid)?;
            Some((column, form_of(type_oid)?))
        };
        // No answer rests on values of a column that was dropped, or has got another type, which outdates all.
        let content = |column| match (size_of_zones(column), members(column)) {
            (Some(size), _) => Some(Content::Zone(size)),
            (None, (EACH_ROW, None)) => Some(Content::ItsValue),
            (None, (alone, None)) => hashed(alone).map(Content::Value),
            (None, (first, Some(second))) => {
                hashed(first).zip(hashed(second)).map(|(first, second)| Content::Pair(first, second))
            }
        };
        // SAFETY: the caller's promise.
        let (database, relation) = (backend::database(), unsafe { (*relation).rd_id.to_u32() });
        let mut all = Self {
            quietly_set: NonZero::new(changed).filter(|changed| tracked.quiet.are_all(changed.get())),
            quiet: tracked.quiet,
            ..Self::default()
        };
        for column in tracked.iter() {
            let Some(content) = content(column) else { continue };
            let is_kept = changed & bits_of(column) == 0;
            all.columns[all.count] = Column { content, number: number_of_column(database, relation, column), is_kept };
            all.count += 1;
            match content {
                Content::Value((column, _)) => all.last = all.last.max(column),
                Content::Pair((first, _), (second, _)) => all.last = all.last.max(first).max(second),
                Content::Nothing | Content::ItsValue | Content::Zone(..) => all.have_more = true,
            }
        }
        all.keeps_values = all.last != 0 && tracked.keeps(changed);
        all
    }

    /// The tracked columns that have something.
    #[inline]
    pub fn iter(&self) -> std::slice::Iter<'_, Column> {
        self.columns[..self.count].iter()
    }

    /// Returns true if rows are looked at for their values.
    #[inline]
    pub fn have_values(&self) -> bool {
        self.last != 0
    }
}

/// A version of a row whose values can be read.
#[derive(Clone, Copy)]
pub enum Version {
    /// That which a slot holds, with a value for each attribute up to the last one that is asked for.
    InSlot(*mut pg_sys::TupleTableSlot),
    /// One in the heap, whose page is pinned.
    Fetched(pg_sys::HeapTupleData, pg_sys::Relation, pg_sys::Buffer),
}

impl Version {
    /// That of the row that a slot holds.
    ///
    /// # Safety
    /// The slot must hold a row of the relation whose columns these are, as long as the version is used.
    #[inline]
    pub unsafe fn in_slot(columns: &Columns, slot: *mut pg_sys::TupleTableSlot) -> Self {
        // SAFETY: the caller's promise. That raises nothing, as the relation has these columns.
        unsafe {
            if (*slot).tts_nvalid < columns.last {
                direct!(pg_sys::slot_getsomeattrs_int(slot, i32::from(columns.last)));
            }
        }
        Self::InSlot(slot)
    }

    /// The version of a row that the transaction has just replaced or deleted. Nobody takes it away while the
    /// transaction runs. `None` if it cannot be read. Its page stays pinned until `release`, or until an error.
    ///
    /// # Safety
    /// The relation must be open as long as the version is used.
    pub unsafe fn fetched(relation: pg_sys::Relation, place: pg_sys::ItemPointerData) -> Option<Self> {
        let mut tuple = pg_sys::HeapTupleData { t_self: place, ..pg_sys::HeapTupleData::default() };
        let mut buffer = 0;
        // SAFETY: the caller's promise.
        let is_there = unsafe {
            let any = &raw mut pg_sys::SnapshotAnyData;
            kept!(pg_sys::heap_fetch(relation, any, &raw mut tuple, &raw mut buffer, false))
        };
        is_there.then_some(Self::Fetched(tuple, relation, buffer))
    }

    /// The version is not used any more.
    pub fn release(self) {
        if let Self::Fetched(_, _, buffer) = self {
            // SAFETY: pinned by `fetched`.
            unsafe { kept!(pg_sys::ReleaseBuffer(buffer)) };
        }
    }

    /// The hash of what a tracked column has, or that there is none. `None` for NULL, which equals nothing: so it is no
    /// value, and no answer asks for a pair with it. Neither raises nor allocates.
    ///
    /// # Safety
    /// The column must be one of those for which the version was made.
    #[inline(always)]
    pub unsafe fn hash(&self, column: &Column) -> Option<Option<u64>> {
        // SAFETY: the caller's promise; the form is that of the column's type.
        unsafe {
            match column.content {
                Content::Value((number, form)) => Some(form.hash(self.value(number)?)),
                Content::Pair(first, second) => self.hash_of_both(first, second),
                Content::Nothing | Content::ItsValue | Content::Zone(_) => None,
            }
        }
    }

    /// The same of what two columns have together.
    ///
    /// # Safety
    /// As `hash`.
    #[inline(never)]
    unsafe fn hash_of_both(&self, (first, form): Hashed, (second, other_form): Hashed) -> Option<Option<u64>> {
        // SAFETY: the caller's promise.
        unsafe {
            let (one, other) = self.value(first).zip(self.value(second))?;
            let (one, other) = (form.hash(one), other_form.hash(other));
            let both = one.zip(other).and_then(|(one, other)| together((first, one), (second, other)));
            Some(both.map(|(_, hash)| hash))
        }
    }

    /// The value of a column; `None` for NULL.
    ///
    /// # Safety
    /// As `hash`.
    #[inline(always)]
    unsafe fn value(&self, number: i16) -> Option<pg_sys::Datum> {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::InSlot(slot) => {
                    let place = number as usize - 1;
                    (!*(**slot).tts_isnull.add(place)).then(|| *(**slot).tts_values.add(place))
                }
                Self::Fetched(tuple, relation, _) => value_of_tuple(*tuple, *relation, number),
            }
        }
    }
}

/// The value of a column in a tuple; `None` for NULL.
///
/// # Safety
/// A tuple of an open relation, on a page that is pinned, and a column of it.
#[inline(never)]
unsafe fn value_of_tuple(
    mut tuple: pg_sys::HeapTupleData,
    relation: pg_sys::Relation,
    number: i16,
) -> Option<pg_sys::Datum> {
    let mut is_null = false;
    // SAFETY: the caller's promise.
    let value = unsafe { pg_sys::heap_getattr(&raw mut tuple, i32::from(number), (*relation).rd_att, &mut is_null) };
    (!is_null).then_some(value)
}
