//! What clients get of stored batches: the columns they asked for, in the form that the row type and the options give them.
//!
//! Columns that are delivered as they are stored lie on the stored bytes, without a copy; if all are, whole
//! batches go out byte for byte. The others are rebuilt value by value, under the settings that `PinnedSettings` fixes,
//! so that every session gets the same bytes.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_cache_core::shown;
use arrow_cache_core::{ExportOptions, OutOfMemory, RoomyVec, shown_list};
use arrow_ipc::convert::IpcSchemaEncoder;
use arrow_ipc::{MessageBuilder, MessageHeader, MetadataVersion};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use flatbuffers::FlatBufferBuilder;
use pgrx::pg_sys;

use super::array::{Array, Values};
use super::chunk::Chunk;
use super::column::{Column, Kind};
use super::convert::Converter;
use super::convert_leaf::out_of_range;
use super::decode::{Decoder, Reader};
use super::epoch;
use super::form::{Form, Room};
use super::pinned::PinnedSettings;
use super::{message, output};
use crate::error::CacheError;
use crate::pg::allocator::{Headroom, headroom};
use crate::pg::compat::tuple_attribute;

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

    /// The message of the schema.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn schema_message(&self) -> Result<Vec<u8>, OutOfMemory> {
        let _headroom = headroom(SCHEMA_BYTES + self.fields() * FIELD_BYTES)?;
        let mut builder = FlatBufferBuilder::new();
        let schema = IpcSchemaEncoder::new().schema_to_fb_offset(&mut builder, &self.schema);
        let mut message = MessageBuilder::new(&mut builder);
        message.add_version(MetadataVersion::V5);
        message.add_header_type(MessageHeader::Schema);
        message.add_bodyLength(0);
        message.add_header(schema.as_union_value());
        let message = message.finish();
        builder.finish(message, None);
        message::head(builder.finished_data())
    }

    /// Fields of the schema, the parts of others included.
    fn fields(&self) -> usize {
        self.schema.fields().iter().map(fields_in).sum()
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

    /// The first `rows` rows of a stored batch, or more, of which `before` rows came before.
    ///
    /// # Errors
    /// The first value that cannot be delivered, by its column and row.
    ///
    /// # Safety
    /// The chunk must have the stored columns.
    pub unsafe fn batch<'a>(&self, chunk: Chunk<'a>, rows: usize, before: u64) -> Result<Vec<Array<'a>>, CacheError> {
        let all_stored = self.wanted.iter().all(|wanted| wanted.form.is_stored());
        let pinned = if all_stored { None } else { Some(PinnedSettings::enter()?) };
        let mut arrays = Vec::with_room(self.wanted.len())?;
        for wanted in &self.wanted {
            let array = if wanted.form.is_stored() {
                self.stored_array(chunk, wanted.index)
            } else {
                // SAFETY: as the caller promises.
                in_context_of_its_own(|| unsafe { self.converted(wanted, chunk, rows, before) })?
            };
            arrays.add(array)?;
        }
        if let Some(pinned) = pinned {
            pinned.leave();
        }
        Ok(arrays)
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
            let reader = Reader::of_some(&self.stored, &[wanted.index], chunk)?;
            let first = (0..rows).find(|row| reader.word(0, *row).is_some_and(|code| !epoch::is_representable(code)));
            if let Some(row) = first {
                let micros = epoch::timestamp_from_arrow(reader.word(0, row).unwrap_or_default());
                let _pinned = PinnedSettings::enter()?;
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
    ) -> Result<Array<'static>, CacheError> {
        let undeliverable = |reason| CacheError::Undeliverable { reason };
        let mut converter = Converter::new(&wanted.column, &wanted.form).map_err(undeliverable)?;
        converter.reserve(rows)?;
        let reader = Reader::of_some(&self.stored, &[wanted.index], chunk)?;
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
                    None => decoder
                        .fill(&reader, row, &mut value, &mut is_null)
                        .map_err(Into::into)
                        .and_then(|()| converter.append(value[0], is_null[0])),
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

    /// A stored column over its own bytes.
    fn stored_array<'a>(&self, chunk: Chunk<'a>, index: usize) -> Array<'a> {
        let first = self.stored[..index].iter().map(buffers_of).sum::<usize>();
        let buffer = |number: usize| Cow::Borrowed(chunk.buffer(first + number));
        let values = match self.stored[index].storage_type() {
            DataType::Boolean => Values::Bits(buffer(1)),
            DataType::Utf8 | DataType::Binary => Values::Variable(buffer(1), buffer(2)),
            DataType::FixedSizeBinary(width) => Values::Fixed(width as usize, buffer(1)),
            fixed => Values::Fixed(fixed.primitive_width().unwrap_or(0), buffer(1)),
        };
        Array { validity: buffer(0), values }
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

/// What a schema takes at most while it is made, besides its fields.
const SCHEMA_BYTES: usize = 64 * 1024;
/// What a field takes at most, while the schema is made and while it is written. A name has at most 63 characters of four bytes,
/// and occurs in a list of names, in what is wanted, in the field and in its error. The metadata are a few short texts in a table of
/// their own, a kilobyte together. The writer doubles its memory as it grows, and copies what it has.
const FIELD_BYTES: usize = 4 * 1024;

/// Memory for the making of a delivery of rows of these columns: `Delivery::new`, and the little that is made beside it.
///
/// # Errors
/// There is none.
pub fn headroom_for(columns: &[Column]) -> Result<Headroom, OutOfMemory> {
    let is_flat = |column: &Column| matches!(column.kind, Kind::FlatVarlena | Kind::FlatFixed | Kind::FlatCString);
    let parts = if columns.iter().any(is_flat) { Room::PARTS } else { 0 };
    headroom(SCHEMA_BYTES + (columns.len() + parts) * FIELD_BYTES)
}

/// A field and its parts.
fn fields_in(field: &FieldRef) -> usize {
    1 + match field.data_type() {
        DataType::List(element) => fields_in(element),
        DataType::Struct(attributes) => attributes.iter().map(fields_in).sum(),
        _ => 0,
    }
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
            name: shown(wanted.as_bytes()),
            repeated: first.is_some(),
            columns: shown_list(names.iter().map(String::as_str)),
        }),
    }
}
