//! What clients get of stored batches: the columns they asked for, in the form that the row type and the options give them.
//!
//! Columns that are delivered as they are stored are arrays over the stored bytes, without a copy; if all are, whole
//! batches go out byte for byte. The others are rebuilt value by value, under the settings that `PinnedSettings` fixes,
//! so that every session gets the same bytes.

use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_buffer::Buffer;
use arrow_cache_core::{ExportOptions, Reason};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use pgrx::pg_sys;

use super::chunk::Chunk;
use super::column::{Column, Kind};
use super::convert::Converter;
use super::convert_leaf::out_of_range;
use super::decode::{Decoder, Reader};
use super::epoch;
use super::form::{Form, Room};
use super::output;
use super::pinned::PinnedSettings;
use crate::compat::tuple_attribute;
use crate::error::CacheError;

/// One column that is delivered.
struct Wanted {
    /// Its number among the stored ones.
    index: usize,
    column: Column,
    form: Form,
    name: String,
}

/// What a column is delivered as, for people.
pub struct Description {
    /// Its name.
    pub name: String,
    /// Its PostgreSQL type.
    pub type_oid: pg_sys::Oid,
    /// Its Arrow type.
    pub arrow_type: String,
    /// It goes out as it is stored.
    pub zero_copy: bool,
    /// What there is to know.
    pub note: Option<String>,
}

/// Turns stored batches into those that a client gets.
pub struct Delivery {
    stored: Vec<Column>,
    wanted: Vec<Wanted>,
    schema: SchemaRef,
}

impl Delivery {
    /// Prepares the delivery of rows of this type. Depends on the type and the options alone.
    ///
    /// # Errors
    /// A column that is not there, or that the options cannot deliver.
    ///
    /// # Safety
    /// `descriptor` must be the row type whose columns these are.
    pub unsafe fn new(
        descriptor: pg_sys::TupleDesc,
        columns: &[Column],
        options: &ExportOptions,
    ) -> Result<Self, CacheError> {
        // SAFETY: as the caller promises.
        let name = |index| output::name(unsafe { &(*tuple_attribute(descriptor, index)).attname });
        let names: Vec<String> = (0..columns.len()).map(name).collect();
        // A quoted name arrives as a text like any other: what is a name to the letter is not taken apart.
        let whole = options.column_text.as_ref().and_then(|text| position(&names, text).ok());
        let indexes = match &options.columns {
            None => (0..columns.len()).collect(),
            Some(_) if whole.is_some() => whole.into_iter().collect(),
            Some(wanted) => wanted.iter().map(|name| position(&names, name)).collect::<Result<Vec<_>, _>>()?,
        };
        let mut room = Room::WHOLE;
        let wanted = indexes
            .into_iter()
            .map(|index| {
                let column = columns[index];
                let form = Form::of_column(&column, &options.profile, &mut room)
                    .map_err(|error| CacheError::UndeliverableColumn { column: names[index].clone(), error })?;
                Ok(Wanted { index, column, form, name: names[index].clone() })
            })
            .collect::<Result<Vec<_>, CacheError>>()?;
        let field = |wanted: &Wanted| wanted.form.field(&wanted.name, &wanted.column, &options.profile);
        let fields: Vec<_> = wanted.iter().map(field).collect();
        Ok(Self { stored: columns.to_vec(), wanted, schema: Arc::new(Schema::new(fields)) })
    }

    /// The schema of what is delivered.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// What each column is delivered as.
    pub fn describe(&self) -> Vec<Description> {
        let describe = |wanted: &Wanted| Description {
            name: wanted.name.clone(),
            type_oid: wanted.column.type_oid,
            arrow_type: without_metadata(&wanted.form.data_type()).to_string(),
            zero_copy: wanted.form.is_stored(),
            note: wanted.form.note(),
        };
        self.wanted.iter().map(describe).collect()
    }

    /// Do stored batches go out byte for byte?
    pub fn is_verbatim(&self) -> bool {
        let in_order = self.wanted.iter().enumerate().all(|(position, wanted)| wanted.index == position);
        in_order && self.wanted.len() == self.stored.len() && self.wanted.iter().all(|wanted| wanted.form.is_stored())
    }

    /// The first `rows` rows of a stored batch, of which `before` rows came before. The arrays may lie over the chunk's
    /// bytes.
    ///
    /// # Errors
    /// The first value that cannot be delivered, by its column and row.
    ///
    /// # Safety
    /// The chunk must have the stored columns, and stay as long as the result.
    pub unsafe fn batch(&self, chunk: Chunk<'_>, rows: usize, before: u64) -> Result<RecordBatch, CacheError> {
        let pinned = (!self.wanted.iter().all(|wanted| wanted.form.is_stored())).then(PinnedSettings::enter);
        // SAFETY: as the caller promises.
        let array = |wanted: &Wanted| unsafe {
            if wanted.form.is_stored() {
                Ok(self.stored_array(chunk, wanted.index).slice(0, rows))
            } else {
                in_context_of_its_own(|| self.converted(wanted, chunk, rows, before))
            }
        };
        let arrays = self.wanted.iter().map(array).collect::<Result<Vec<_>, _>>()?;
        if let Some(pinned) = pinned {
            pinned.leave();
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema(), arrays, &options)
            .map_err(|_| CacheError::Undeliverable { reason: Reason::UnsupportedType })
    }

    /// Checks the timestamps that would be delivered as they are stored, if the chunk has some that Arrow would misread.
    ///
    /// # Errors
    /// The first that is none of Arrow's, by its column and row.
    ///
    /// # Safety
    /// As `batch`.
    pub unsafe fn check(&self, chunk: Chunk<'_>, rows: usize, before: u64) -> Result<(), CacheError> {
        if !chunk.has_unrepresentable() {
            return Ok(());
        }
        let timestamps = self.wanted.iter().filter(|wanted| {
            wanted.form.is_stored() && matches!(wanted.column.kind, Kind::Timestamp | Kind::TimestampTz)
        });
        for wanted in timestamps {
            let reader = Reader::of_one(&self.stored, wanted.index, chunk);
            let first = (0..rows).find(|row| reader.word(0, *row).is_some_and(|code| !epoch::is_representable(code)));
            if let Some(row) = first {
                let micros = epoch::timestamp_from_arrow(reader.word(0, row).unwrap_or_default());
                let _pinned = PinnedSettings::enter();
                return Err(CacheError::UndeliverableValue {
                    column: wanted.name.clone(),
                    row: before + row as u64 + 1,
                    // SAFETY: the value is one of the column's type.
                    problem: unsafe { out_of_range(wanted.column.base_type, pg_sys::Datum::from(micros)) },
                });
            }
        }
        Ok(())
    }

    /// The array of a column that is not delivered as it is stored, built value by value.
    ///
    /// # Safety
    /// As `batch`. What it takes to convert is left in the current memory context.
    unsafe fn converted(
        &self,
        wanted: &Wanted,
        chunk: Chunk<'_>,
        rows: usize,
        before: u64,
    ) -> Result<ArrayRef, CacheError> {
        let undeliverable = |reason| CacheError::Undeliverable { reason };
        let mut converter = Converter::new(&wanted.column, &wanted.form).map_err(undeliverable)?;
        converter.reserve(rows);
        let reader = Reader::of_one(&self.stored, wanted.index, chunk);
        let mut decoder = Decoder::new(vec![wanted.column]);
        let (mut value, mut is_null) = ([pg_sys::Datum::from(0)], [false]);
        let is_numeric = wanted.column.kind == Kind::Numeric;
        let scratch = context();
        for row in 0..rows {
            // SAFETY: the value is one of the column, and lives until the decoder makes the next.
            let appended = unsafe {
                let caller = pg_sys::MemoryContextSwitchTo(scratch);
                let appended = match is_numeric.then(|| reader.bytes(0, row)).flatten() {
                    // Its stored text is all it takes: a value made of it would only be printed again.
                    Some(text) => converter.append_numeric_text(text),
                    None => {
                        decoder.fill(&reader, row, &mut value, &mut is_null);
                        converter.append(value[0], is_null[0])
                    }
                };
                pg_sys::MemoryContextSwitchTo(caller);
                if !(*scratch).isReset {
                    pg_sys::MemoryContextReset(scratch);
                }
                appended
            };
            appended.map_err(|problem| CacheError::UndeliverableValue {
                column: wanted.name.clone(),
                row: before + row as u64 + 1,
                problem,
            })?;
            pgrx::check_for_interrupts!();
        }
        converter.finish().map_err(undeliverable)
    }

    /// A stored column as an array over its own bytes.
    ///
    /// # Safety
    /// As `batch`.
    unsafe fn stored_array(&self, chunk: Chunk<'_>, index: usize) -> ArrayRef {
        let first = self.stored[..index].iter().map(buffers_of).sum::<usize>();
        let column = &self.stored[index];
        // SAFETY: the bytes stay as long as the array, as the caller promises; nothing is freed with the buffer.
        let over = |number: usize| unsafe { over(chunk.buffer(first + number)) };
        let mut data = ArrayData::builder(column.storage_type())
            .len(chunk.rows())
            .null_bit_buffer(Some(over(0)).filter(|validity| !validity.is_empty()));
        for number in 1..buffers_of(column) {
            data = data.add_buffer(over(number));
        }
        // SAFETY: our encoder wrote these buffers from an array of this type, on multiples of 64.
        make_array(unsafe { data.build_unchecked() })
    }
}

/// A memory context below the current one.
fn context() -> pg_sys::MemoryContext {
    // SAFETY: a live parent and a literal name.
    unsafe {
        pg_sys::AllocSetContextCreateInternal(
            pg_sys::CurrentMemoryContext,
            c"pg_arrow_cache delivery".as_ptr(),
            pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
            pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        )
    }
}

/// Runs code whose allocations from PostgreSQL are of no use afterwards. After an error they go with the current context.
fn in_context_of_its_own<T>(code: impl FnOnce() -> T) -> T {
    let context = context();
    // SAFETY: the context was just made, and `code` leaves nothing behind that points into it.
    unsafe {
        let caller = pg_sys::MemoryContextSwitchTo(context);
        let result = code();
        pg_sys::MemoryContextSwitchTo(caller);
        pg_sys::MemoryContextDelete(context);
        result
    }
}

/// A buffer over bytes that are somebody else's.
///
/// # Safety
/// The bytes must stay as they are for as long as the buffer lives.
unsafe fn over(bytes: &[u8]) -> Buffer {
    let start = NonNull::from(bytes).cast::<u8>();
    // SAFETY: as the caller promises.
    unsafe { Buffer::from_custom_allocation(start, bytes.len(), Arc::new(())) }
}

/// A type whose parts tell no more than their own types.
fn without_metadata(data_type: &DataType) -> DataType {
    let bare = |field: &FieldRef| Arc::new(Field::new(field.name(), without_metadata(field.data_type()), true));
    match data_type {
        DataType::List(element) => DataType::List(bare(element)),
        DataType::Struct(attributes) => DataType::Struct(attributes.iter().map(bare).collect()),
        other => other.clone(),
    }
}

/// Arrow buffers of a stored column, its validity bitmap included.
fn buffers_of(column: &Column) -> usize {
    match column.storage_type() {
        DataType::Utf8 | DataType::Binary => 3,
        _ => 2,
    }
}

/// The number of the one column with this name.
fn position(names: &[String], wanted: &str) -> Result<usize, CacheError> {
    let mut found = names.iter().enumerate().filter(|(_, name)| *name == wanted).map(|(index, _)| index);
    match (found.next(), found.next()) {
        (Some(index), None) => Ok(index),
        (first, _) => Err(CacheError::NoSuchColumn {
            name: wanted.to_owned(),
            repeated: first.is_some(),
            columns: names.to_vec(),
        }),
    }
}
