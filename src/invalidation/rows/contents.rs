//! What a row has that answers may rest on: the values of tracked columns, and the zone of its version. Keeps nothing.

use std::num::NonZero;

use arrow_cache_core::versions::columns::{ColumnValue, MOST_COLUMNS};
use arrow_cache_core::versions::zones::size_of_zones;
use arrow_cache_core::{EACH_ROW, QuietColumns, TrackedColumns, members, together};
use pgrx::pg_sys;

use crate::pg::compat::tuple_attribute;
use crate::query::value_hash::{Form, form_of};

/// A column that has values, and how these are hashed.
pub type Hashed = (i16, Form);

/// What a tracked column has in a row.
#[derive(Clone, Copy, Default)]
pub enum Content {
    /// Nothing that an answer rests on.
    #[default]
    Nothing,
    /// What `EACH_ROW` has.
    ItsValue,
    /// The zone of its version. The zones are of so many blocks, by its binary logarithm.
    Zone(i16, u32),
    /// A value.
    Value(Hashed),
    /// That of two columns together.
    Pair(Hashed, Hashed),
}

/// What is noted of a row that changes.
#[derive(Clone, Copy, Default)]
pub struct Columns {
    /// What tracked columns have, and behind it nothing.
    contents: [Content; MOST_COLUMNS],
    /// The last column whose value is one of these; 0 if there is none.
    last: i16,
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
            (Some(size), _) => Some(Content::Zone(column, size)),
            (None, (EACH_ROW, None)) => Some(Content::ItsValue),
            (None, (alone, None)) => hashed(alone).map(Content::Value),
            (None, (first, Some(second))) => {
                hashed(first).zip(hashed(second)).map(|(first, second)| Content::Pair(first, second))
            }
        };
        let (mut contents, mut last) = ([Content::Nothing; MOST_COLUMNS], 0);
        for (place, content) in contents.iter_mut().zip(tracked.iter().filter_map(content)) {
            *place = content;
            last = match content {
                Content::Value((column, _)) => last.max(column),
                Content::Pair((first, _), (second, _)) => last.max(first).max(second),
                Content::Nothing | Content::ItsValue | Content::Zone(..) => last,
            };
        }
        Self {
            contents,
            last,
            keeps_values: last != 0 && tracked.keeps(changed),
            quietly_set: NonZero::new(changed).filter(|changed| tracked.quiet.are_all(changed.get())),
            quiet: tracked.quiet,
        }
    }

    /// What tracked columns have.
    pub fn contents(&self) -> impl Iterator<Item = &Content> {
        self.contents.iter().take_while(|content| !matches!(content, Content::Nothing))
    }

    /// Returns true if rows are looked at for their values.
    pub fn have_values(&self) -> bool {
        self.last != 0
    }
}

/// What tracked columns have in one version of a row.
#[derive(Default)]
pub struct Found {
    values: [ColumnValue; MOST_COLUMNS],
    /// So many of these are there.
    count: usize,
    /// One of them has no hash, or the version could not be read.
    pub is_incomplete: bool,
}

impl Found {
    /// The values.
    pub fn values(&self) -> &[ColumnValue] {
        &self.values[..self.count]
    }

    /// The values that `read` gives; `None` for NULL, which equals nothing. So a pair with it is asked for by no
    /// answer.
    ///
    /// # Safety
    /// `read` must give values of the columns.
    unsafe fn of(columns: &Columns, mut read: impl FnMut(i16) -> Option<pg_sys::Datum>) -> Self {
        let mut found = Self::default();
        for content in columns.contents() {
            let mut has_null = false;
            let mut value_of = |(column, form): Hashed| -> Option<ColumnValue> {
                let datum = read(column);
                has_null |= datum.is_none();
                // SAFETY: the caller's promise; the form is that of the column's type.
                Some((column, unsafe { form.hash(datum?) }?))
            };
            let value = match *content {
                Content::Value(own) => value_of(own),
                Content::Pair(first, second) => {
                    value_of(first).zip(value_of(second)).and_then(|(first, second)| together(first, second))
                }
                Content::Nothing | Content::ItsValue | Content::Zone(..) => continue,
            };
            match value {
                Some(value) => {
                    found.values[found.count] = value;
                    found.count += 1;
                }
                None => found.is_incomplete |= !has_null,
            }
        }
        found
    }

    /// Those of the row that a slot holds.
    ///
    /// # Safety
    /// The slot must hold a row of the relation whose columns these are.
    #[inline(always)]
    pub unsafe fn of_slot(columns: &Columns, slot: *mut pg_sys::TupleTableSlot) -> Self {
        // SAFETY: the caller's promise; a slot has a value for each attribute once it is deformed that far. That raises
        // nothing, as the relation has these columns.
        unsafe {
            if (*slot).tts_nvalid < columns.last {
                direct!(pg_sys::slot_getsomeattrs_int(slot, i32::from(columns.last)));
            }
            Self::of(columns, |column| {
                let place = column as usize - 1;
                (!*(*slot).tts_isnull.add(place)).then(|| *(*slot).tts_values.add(place))
            })
        }
    }

    /// Those of the version of a row that the transaction has just replaced or deleted. Nobody takes it away while the
    /// transaction runs.
    ///
    /// # Safety
    /// The relation must be open, and the columns be its own.
    pub unsafe fn of_version(columns: &Columns, relation: pg_sys::Relation, place: pg_sys::ItemPointerData) -> Self {
        let mut tuple = pg_sys::HeapTupleData { t_self: place, ..pg_sys::HeapTupleData::default() };
        let mut buffer = 0;
        // SAFETY: the caller's promise; the version is read while its page is pinned. An error gives the pin back.
        unsafe {
            let any = &raw mut pg_sys::SnapshotAnyData;
            if !kept!(pg_sys::heap_fetch(relation, any, &raw mut tuple, &raw mut buffer, false)) {
                return Self { is_incomplete: true, ..Self::default() };
            }
            let found = Self::of(columns, |column| {
                let mut is_null = false;
                let value = pg_sys::heap_getattr(&raw mut tuple, i32::from(column), (*relation).rd_att, &mut is_null);
                (!is_null).then_some(value)
            });
            kept!(pg_sys::ReleaseBuffer(buffer));
            found
        }
    }
}
