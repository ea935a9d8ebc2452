//! What clients get of stored batches: the columns that they asked for, each as its delivery type.
//!
//! Columns that are delivered as they are stored lie on the stored bytes, without a copy. If all columns are delivered so, whole
//! batches go out byte for byte. The others are rebuilt value by value, under the settings that `PinnedSettings` fixes,
//! so that every session gets the same bytes.

use std::borrow::Cow;
use std::hash::Hash;
use std::rc::Rc;
use std::sync::Arc;

use arrow_cache_core::formats::epoch;
use arrow_cache_core::shown;
use arrow_cache_core::{ExportOptions, HashBuffer, OutOfMemory, RoomyVec, Unrepresentable, shown_list};
use arrow_schema::{DataType, Schema, SchemaRef};
use pgrx::pg_sys;

use super::array::{Array, Values};
use super::convert_nested::Converter;
use super::convert_scalar::out_of_range;
use super::delivery_type::{DeliveryType, PartBudget};
use super::pinned_settings::PinnedSettings;
use super::text_output::LabelSource;
use super::{facts, schema, text_output};
use crate::arrow::chunk::Chunk;
use crate::arrow::column::{Column, Kind};
use crate::arrow::decode::{Decoder, Reader};
use crate::error::CacheError;
use crate::pg::backend;
use crate::pg::row::{Row, Value};
use crate::pg::row_type::RowType;

/// One column that is delivered.
struct Wanted {
    /// Its number among the stored ones.
    index: usize,
    column: Column,
    delivered: DeliveryType,
    name: String,
}

/// What a column is delivered as, to be shown to people.
pub struct Description {
    /// Its name.
    pub name: String,
    /// Its PostgreSQL type.
    pub type_oid: pg_sys::Oid,
    /// Its Arrow type.
    pub arrow_type: String,
    /// It goes out as it is stored.
    pub zero_copy: bool,
    /// What a user should know of it.
    pub note: Option<String>,
}

/// Turns stored batches into those that a client gets.
pub struct Delivery {
    stored: Vec<Column>,
    wanted: Vec<Wanted>,
    schema: SchemaRef,
}

impl Delivery {
    /// Prepares the delivery of rows of this type, which has these columns. Depends on the type and the options alone.
    ///
    /// # Errors
    /// A column that is not there, or that the options cannot deliver.
    pub fn new(row_type: RowType<'_>, columns: &[Column], options: &ExportOptions) -> Result<Self, CacheError> {
        let names: Vec<String> = row_type.attributes().map(|attribute| text_output::name(&attribute.attname)).collect();
        // A quoted name arrives as a text like any other: a text that is a column's name is not taken apart.
        let whole = options.column_text.as_ref().and_then(|text| position(&names, text).ok());
        let indexes = match &options.columns {
            None => (0..columns.len()).collect(),
            Some(_) if whole.is_some() => whole.into_iter().collect(),
            Some(wanted) => wanted.iter().map(|name| position(&names, name)).collect::<Result<Vec<_>, _>>()?,
        };
        let mut budget = PartBudget::WHOLE;
        let wanted = indexes
            .into_iter()
            .map(|index| {
                let column = columns[index];
                let delivered = DeliveryType::of_column(&column, &options.profile, &mut budget)
                    .map_err(|digits| CacheError::undeliverable_column(names[index].clone(), digits))?;
                Ok(Wanted { index, column, delivered, name: names[index].clone() })
            })
            .collect::<Result<Vec<_>, CacheError>>()?;
        let field = |wanted: &Wanted| wanted.delivered.field(&wanted.name, &wanted.column, &options.profile);
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
        schema::message(&self.schema)
    }

    /// What each column is delivered as.
    pub fn describe(&self) -> Vec<Description> {
        let describe = |wanted: &Wanted| Description {
            name: wanted.name.clone(),
            type_oid: wanted.column.type_oid,
            arrow_type: schema::without_metadata(&wanted.delivered.data_type()).to_string(),
            zero_copy: wanted.delivered.is_stored(),
            note: wanted.delivered.note(),
        };
        self.wanted.iter().map(describe).collect()
    }

    /// Do stored batches go out byte for byte?
    pub fn is_verbatim(&self) -> bool {
        let in_order = self.wanted.iter().enumerate().all(|(position, wanted)| wanted.index == position);
        in_order && self.wanted.len() == self.stored.len() && self.converts_nothing()
    }

    /// Are all columns delivered as they are stored?
    pub fn converts_nothing(&self) -> bool {
        self.wanted.iter().all(|wanted| wanted.delivered.is_stored())
    }

    /// Adds what decides on the bytes that are delivered, beside the stored ones. False if something else decides, too.
    pub fn add_facts(&self, facts: &mut HashBuffer) -> bool {
        self.wanted.iter().all(|wanted| {
            (wanted.index, wanted.column, &wanted.delivered).hash(facts);
            facts::are_all(&wanted.column, &wanted.delivered)
        })
    }

    /// The enums whose labels are delivered.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn enums(&self) -> Result<Vec<pg_sys::Oid>, OutOfMemory> {
        let mut enums = Vec::new();
        self.wanted.iter().try_for_each(|wanted| facts::add_enums(&wanted.column, &wanted.delivered, &mut enums))?;
        Ok(enums)
    }

    /// The first `rows` rows of a stored batch, or more, of which `before` rows came before.
    ///
    /// # Errors
    /// The first value that cannot be delivered, by its column and row.
    pub fn batch<'a>(
        &self,
        chunk: Chunk<'a>,
        (rows, before): (usize, u64),
        labels: &LabelSource,
    ) -> Result<Vec<Array<'a>>, CacheError> {
        let pinned = if self.converts_nothing() { None } else { Some(PinnedSettings::enter()?) };
        let mut arrays = Vec::with_room(self.wanted.len())?;
        for wanted in &self.wanted {
            let array = if wanted.delivered.is_stored() {
                self.stored_array(chunk, wanted.index)
            } else {
                in_context_of_its_own(|| self.converted(wanted, chunk, (rows, before), labels))?
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
    /// The first such timestamp, by its column and row.
    pub fn check(&self, chunk: Chunk<'_>, rows: usize, before: u64) -> Result<(), CacheError> {
        if !chunk.has_unrepresentable() {
            return Ok(());
        }
        let timestamps = self.wanted.iter().filter(|wanted| {
            wanted.delivered.is_stored() && matches!(wanted.column.kind, Kind::Timestamp | Kind::TimestampTz)
        });
        for wanted in timestamps {
            let reader = Reader::of_some(&self.stored, &[wanted.index], chunk)?;
            let first = (0..rows).find(|row| reader.word(0, *row).is_some_and(|code| !epoch::is_representable(code)));
            if let Some(row) = first {
                let micros = epoch::timestamp_from_arrow(reader.word(0, row).unwrap_or_default());
                let _pinned = PinnedSettings::enter()?;
                return Err(CacheError::undeliverable_value(
                    &wanted.name,
                    before + row as u64 + 1,
                    // SAFETY: microseconds are a value of the column's type.
                    out_of_range(wanted.column.base_type, unsafe { Value::of(pg_sys::Datum::from(micros)) }),
                ));
            }
        }
        Ok(())
    }

    /// The array of a column that is not delivered as it is stored, built value by value. What it takes to convert is left in the current
    /// memory context.
    fn converted(
        &self,
        wanted: &Wanted,
        chunk: Chunk<'_>,
        (rows, before): (usize, u64),
        labels: &LabelSource,
    ) -> Result<Array<'static>, CacheError> {
        let undeliverable = |reason| CacheError::undeliverable(reason);
        let mut converter = Converter::new(&wanted.column, &wanted.delivered, labels).map_err(undeliverable)?;
        converter.reserve(rows)?;
        let reader = Reader::of_some(&self.stored, &[wanted.index], chunk)?;
        let mut decoder = Decoder::new(Rc::new([wanted.column]));
        let (mut value, mut is_null) = ([pg_sys::Datum::from(0)], [false]);
        let stored = reader.buffers_of(0);
        let scratch = context();
        for row in 0..rows {
            let appended = in_scratch(scratch, || {
                if !converter.append_stored(&stored, row)? {
                    decoder.fill(&reader, row, &mut value, &mut is_null)?;
                    // SAFETY: the decoder's value is one of the column, and lives until the decoder makes the next.
                    converter.append(unsafe { Row::new(&value, &is_null) }.value(0))?;
                }
                Ok(())
            });
            appended.map_err(|problem: Unrepresentable| {
                CacheError::undeliverable_value(wanted.name.clone(), before + row as u64 + 1, problem)
            })?;
            backend::accept_interrupts();
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
    // SAFETY: the current memory context is there; the name is a literal.
    unsafe {
        kept!(pg_sys::AllocSetContextCreateInternal(
            pg_sys::CurrentMemoryContext,
            c"pg_arrow_cache delivery".as_ptr(),
            pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
            pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        ))
    }
}

/// Runs code in a memory context that is emptied afterwards, if anything was allocated in it.
#[inline]
fn in_scratch<T>(scratch: pg_sys::MemoryContext, code: impl FnOnce() -> T) -> T {
    // SAFETY: the context was made by `context` for this, and `code` leaves nothing behind that points into it.
    unsafe {
        let caller = pg_sys::MemoryContextSwitchTo(scratch);
        let result = code();
        pg_sys::MemoryContextSwitchTo(caller);
        if !(*scratch).isReset {
            kept!(pg_sys::MemoryContextReset(scratch));
        }
        result
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
        kept!(pg_sys::MemoryContextDelete(context));
        result
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
        (first, _) => Err(CacheError::no_such_column(
            shown(wanted.as_bytes()),
            first.is_some(),
            shown_list(names.iter().map(String::as_str)),
        )),
    }
}
