//! The schema of a delivery: its IPC message, and how much memory it takes.

use std::sync::Arc;

use arrow_cache_core::OutOfMemory;
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions, write_message};
use arrow_schema::{DataType, Field, FieldRef, Schema};

use super::delivery_type::PartBudget;
use crate::arrow::column::{Column, Kind};
use crate::pg::allocator::{Headroom, headroom};

/// Bytes that a schema takes at most while it is made, besides its fields.
const SCHEMA_BYTES: usize = 64 * 1024;
/// Bytes that a field takes at most, while the schema is made and while it is written. A name has at most 63 characters
/// of four bytes, and occurs in a list of names, in what is wanted, in the field and in its error. The metadata are a
/// few short texts in a table of their own, a kilobyte together. The writer doubles its memory as it grows, and copies
/// what it has.
const FIELD_BYTES: usize = 4 * 1024;

/// Memory for `Delivery::new` with these columns, and for the little that is made beside it. It is kept free for as
/// long as the result lives.
///
/// # Errors
/// There is none.
pub fn headroom_for(columns: &[Column]) -> Result<Headroom, OutOfMemory> {
    let is_flat = |column: &Column| matches!(column.kind, Kind::FlatVarlena | Kind::FlatFixed | Kind::FlatCString);
    let parts = if columns.iter().any(is_flat) { PartBudget::PARTS } else { 0 };
    headroom(SCHEMA_BYTES + (columns.len() + parts) * FIELD_BYTES)
}

/// Memory for what is made of a schema, or of a batch that has it, besides the values.
///
/// # Errors
/// There is none.
pub fn headroom_of(schema: &Schema) -> Result<Headroom, OutOfMemory> {
    headroom(SCHEMA_BYTES + schema.fields().iter().map(fields_in).sum::<usize>() * FIELD_BYTES)
}

/// The message of a schema.
///
/// # Errors
/// There is no memory for it.
pub fn message(schema: &Schema) -> Result<Vec<u8>, OutOfMemory> {
    let _headroom = headroom_of(schema)?;
    let (options, mut dictionaries) = (IpcWriteOptions::default(), DictionaryTracker::new(false));
    let generator = IpcDataGenerator::default();
    let encoded = generator.schema_to_bytes_with_dictionary_tracker(schema, &mut dictionaries, &options);
    let mut message = Vec::new();
    // Writing to memory does not fail.
    write_message(&mut message, encoded, &options).map_err(|_| OutOfMemory)?;
    Ok(message)
}

/// How many fields a field is, its parts included.
fn fields_in(field: &FieldRef) -> usize {
    1 + match field.data_type() {
        DataType::List(element) => fields_in(element),
        DataType::Struct(attributes) => attributes.iter().map(fields_in).sum(),
        _ => 0,
    }
}

/// A type without the metadata of its parts, to be shown to people.
pub fn without_metadata(data_type: &DataType) -> DataType {
    let bare = |field: &FieldRef| Arc::new(Field::new(field.name(), without_metadata(field.data_type()), true));
    match data_type {
        DataType::List(element) => DataType::List(bare(element)),
        DataType::Struct(attributes) => DataType::Struct(attributes.iter().map(bare).collect()),
        other => other.clone(),
    }
}
