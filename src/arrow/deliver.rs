//! What clients get: the Arrow IPC stream of a result. The schema depends on the row type alone.
//!
//! Columns that are stored as Arrow values go out as they are; if all are, whole batches go out
//! byte for byte. A column that keeps PostgreSQL's own image of its values goes out as their text,
//! under the settings that `PinnedSettings` fixes, so that every session gets the same bytes.

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, make_array};
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_cache_core::Reason;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions, write_message};
use arrow_schema::{DataType, Field, Schema};
use pgrx::pg_sys;

use super::chunk::{Chunk, ChunkBytes, EncodedBatch};
use super::column::{Column, Kind};
use super::decode::{Decoder, Reader};
use crate::compat::tuple_attribute;

/// End of an IPC stream: continuation marker and a metadata length of 0.
pub const END_OF_STREAM: [u8; 8] = [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0];

/// Is the column delivered as text made by its type's output function?
fn is_converted(column: &Column) -> bool {
    matches!(column.kind, Kind::FlatVarlena | Kind::FlatFixed | Kind::FlatCString)
}

fn delivery_type(column: &Column) -> DataType {
    if is_converted(column) { DataType::Utf8 } else { column.storage_type() }
}

/// The schema message of a result.
///
/// # Errors
/// `UnsupportedType` when Arrow cannot write the schema.
///
/// # Safety
/// `descriptor` must be the row type whose columns these are.
pub unsafe fn schema_message(descriptor: pg_sys::TupleDesc, columns: &[Column]) -> Result<Vec<u8>, Reason> {
    let fields: Vec<Field> = columns
        .iter()
        .enumerate()
        // SAFETY: as the caller promises.
        .map(|(index, column)| unsafe { field(descriptor, index, column) })
        .collect();
    let options = IpcWriteOptions::default();
    let mut dictionaries = DictionaryTracker::new(false);
    let encoded = IpcDataGenerator::default().schema_to_bytes_with_dictionary_tracker(
        &Schema::new(fields),
        &mut dictionaries,
        &options,
    );
    let mut message = Vec::new();
    write_message(&mut message, encoded, &options).map_err(|_| Reason::UnsupportedType)?;
    Ok(message)
}

/// # Safety
/// As `schema_message`.
unsafe fn field(descriptor: pg_sys::TupleDesc, index: usize, column: &Column) -> Field {
    // SAFETY: an attribute's name is NUL-terminated.
    unsafe {
        let attribute = tuple_attribute(descriptor, index);
        let name = to_utf8(CStr::from_ptr((*attribute).attname.data.as_ptr()));
        let type_name = type_name(column.type_oid);
        let mut metadata = HashMap::from([("POSTGRESQL:type".to_owned(), type_name)]);
        if column.kind == Kind::Numeric && column.typmod >= 0 {
            metadata.insert("POSTGRESQL:typmod".to_owned(), column.typmod.to_string());
        }
        Field::new(name, delivery_type(column), true).with_metadata(metadata)
    }
}

/// Name of a type in the catalog (`int4`, `_text`), as other Arrow drivers for PostgreSQL give it.
///
/// # Safety
/// Called in a transaction.
unsafe fn type_name(type_oid: pg_sys::Oid) -> String {
    // SAFETY: a catalog look-up; the tuple is read before it is released.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::TYPEOID as i32;
        let tuple = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(type_oid));
        if tuple.is_null() {
            return "unknown".to_owned();
        }
        let row: *mut pg_sys::FormData_pg_type = pg_sys::heap_tuple_get_struct(tuple);
        let name = to_utf8(CStr::from_ptr((*row).typname.data.as_ptr()));
        pg_sys::ReleaseSysCache(tuple);
        name
    }
}

/// Text of the database as UTF-8.
///
/// # Safety
/// Called with a current memory context.
unsafe fn to_utf8(text: &CStr) -> String {
    // SAFETY: the conversion returns its argument or a palloc'd, NUL-terminated copy.
    unsafe {
        let length = text.to_bytes().len() as i32;
        let converted = pg_sys::pg_server_to_any(text.as_ptr(), length, pg_sys::pg_enc::PG_UTF8 as i32);
        CStr::from_ptr(converted).to_string_lossy().into_owned()
    }
}

/// Turns stored batches into the messages that a client gets.
pub struct Delivery {
    columns: Vec<Column>,
    /// Output functions of the converted columns.
    outputs: Vec<Option<pg_sys::Oid>>,
}

impl Delivery {
    /// Prepares the delivery of rows of these columns.
    pub fn new(columns: &[Column]) -> Self {
        let outputs = columns
            .iter()
            .map(|column| {
                is_converted(column).then(|| {
                    let (mut function, mut varlena) = (pg_sys::InvalidOid, false);
                    // SAFETY: a catalog look-up of a type that a column has.
                    unsafe {
                        pg_sys::getTypeOutputInfo(column.type_oid, &mut function, &mut varlena);
                    }
                    function
                })
            })
            .collect();
        Self { columns: columns.to_vec(), outputs }
    }

    /// Do stored batches go out byte for byte?
    pub fn is_verbatim(&self) -> bool {
        self.outputs.iter().all(Option::is_none)
    }

    /// A batch with its converted columns as text. Its message is what goes out.
    ///
    /// # Errors
    /// Why Arrow cannot hold it.
    ///
    /// # Safety
    /// The chunk must have these columns.
    pub unsafe fn convert(&self, chunk: Chunk<'_>) -> Result<ChunkBytes, Reason> {
        let reader = Reader::new(&self.columns, chunk);
        let rows = reader.rows();
        let mut texts: Vec<Option<StringBuilder>> =
            self.outputs.iter().map(|output| output.map(|_| StringBuilder::new())).collect();
        let mut decoder = Decoder::new(self.columns.clone());
        let mut values = vec![pg_sys::Datum::from(0); self.columns.len()];
        let mut nulls = vec![false; self.columns.len()];
        for row in 0..rows {
            decoder.fill(&reader, row, &mut values, &mut nulls);
            for (index, text) in texts.iter_mut().enumerate() {
                let (Some(text), Some(output)) = (text, self.outputs[index]) else { continue };
                if nulls[index] {
                    text.append_null();
                } else {
                    // SAFETY: the value is of the type whose output function this is.
                    unsafe {
                        let out = pg_sys::OidOutputFunctionCall(output, values[index]);
                        text.append_value(to_utf8(CStr::from_ptr(out)));
                        pg_sys::pfree(out.cast());
                    }
                }
            }
            pgrx::check_for_interrupts!();
        }
        let arrays = texts
            .into_iter()
            .enumerate()
            .map(|(index, text)| match text {
                Some(mut text) => Ok(Arc::new(text.finish()) as ArrayRef),
                None => self.stored_array(chunk, index, rows),
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(EncodedBatch::new(arrays, rows)?.into_bytes())
    }

    /// A stored column as an array over a copy of its buffers.
    fn stored_array(&self, chunk: Chunk<'_>, index: usize, rows: usize) -> Result<ArrayRef, Reason> {
        let first = self.columns[..index].iter().map(buffers_of).sum::<usize>();
        let copy = |number: usize| {
            let mut buffer = MutableBuffer::new(0);
            buffer.extend_from_slice(chunk.buffer(first + number));
            Buffer::from(buffer)
        };
        let column = &self.columns[index];
        let mut data = arrow_data::ArrayData::builder(column.storage_type())
            .len(rows)
            .null_bit_buffer(Some(copy(0)).filter(|validity| !validity.is_empty()));
        for number in 1..buffers_of(column) {
            data = data.add_buffer(copy(number));
        }
        Ok(make_array(data.build().map_err(|_| Reason::UnsupportedType)?))
    }
}

/// Arrow buffers of a stored column, its validity bitmap included.
fn buffers_of(column: &Column) -> usize {
    match column.storage_type() {
        DataType::Utf8 | DataType::Binary => 3,
        _ => 2,
    }
}

/// The settings under which text is delivered, for as long as the value lives: those that
/// postgres_fdw pins for its own transfers, plus the time zone and bytea's form.
pub struct PinnedSettings {
    nest_level: i32,
}

impl PinnedSettings {
    /// Pins them. After an error the transaction's abort restores them.
    pub fn enter() -> Self {
        const SETTINGS: [(&CStr, &CStr); 7] = [
            (c"datestyle", c"ISO"),
            (c"intervalstyle", c"postgres"),
            (c"extra_float_digits", c"3"),
            (c"search_path", c"pg_catalog"),
            (c"timezone", c"UTC"),
            (c"bytea_output", c"hex"),
            (c"lc_monetary", c"C"),
        ];
        // SAFETY: settings of built-in names and legal values, saved in a nest level of their own.
        unsafe {
            let nest_level = pg_sys::NewGUCNestLevel();
            for (name, value) in SETTINGS {
                pg_sys::set_config_option(
                    name.as_ptr(),
                    value.as_ptr(),
                    pg_sys::GucContext::PGC_USERSET,
                    pg_sys::GucSource::PGC_S_SESSION,
                    pg_sys::GucAction::GUC_ACTION_SAVE,
                    true,
                    0,
                    false,
                );
            }
            Self { nest_level }
        }
    }

    /// Puts the session's own settings back.
    pub fn leave(self) {
        // SAFETY: the nest level that `enter` opened.
        unsafe { pg_sys::AtEOXact_GUC(true, self.nest_level) };
    }
}
