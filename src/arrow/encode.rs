//! Rows into Arrow batches: values go straight from the executor's slot into column builders, and
//! a full set of builders becomes one encoded batch.
//!
//! Memory is bounded by one batch, whatever the result's size: the cost of a row is added up
//! before it is appended.

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Date32Builder, FixedSizeBinaryBuilder, Float32Builder, Float64Builder, Int16Builder,
    Int32Builder, Int64Builder, Time64MicrosecondBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, StringArray};
use arrow_cache_core::jsonb::{self, Refusal};
use arrow_cache_core::{Reason, numeric};
use pgrx::pg_sys;
use std::ffi::CStr;
use std::sync::Arc;

use super::chunk::EncodedBatch;
use super::column::{Column, Kind};
use super::epoch;
use super::varlena;

/// Size that a batch aims at, metadata included: above it the area's allocator keeps its pages in
/// one long list.
const TARGET_BYTES: usize = 512 * 1024;
/// Metadata and padding that a column can take in an encoded batch, at most.
const COLUMN_OVERHEAD: usize = 320;
/// Rows, and bytes of variable-length values per column, that the first batch has room for: enough
/// for most results, little for the many small ones.
const FIRST_ROWS: usize = 64;
const FIRST_BYTES: usize = 1024;
/// Least room for rows in a batch, for results of very many columns.
const MIN_ROW_BYTES: usize = 128 * 1024;

enum Builder {
    Bool(BooleanBuilder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    Date(Date32Builder),
    Time(Time64MicrosecondBuilder),
    Timestamp(TimestampMicrosecondBuilder),
    Fixed(FixedSizeBinaryBuilder),
    /// Text is checked to be UTF-8 as a whole when the batch is finished.
    Text(BinaryBuilder),
    Bytes(BinaryBuilder),
}

impl Builder {
    /// A builder with room for so many rows, and bytes if they vary in length.
    fn new(column: &Column, rows: usize, bytes: usize) -> Self {
        match column.kind {
            Kind::Bool => Self::Bool(BooleanBuilder::with_capacity(rows)),
            Kind::Int16 => Self::Int16(Int16Builder::with_capacity(rows)),
            // The bytes are those of the signed type, and they are all that a batch holds.
            Kind::Int32 | Kind::UInt32 => Self::Int32(Int32Builder::with_capacity(rows)),
            Kind::Int64 | Kind::UInt64 => Self::Int64(Int64Builder::with_capacity(rows)),
            Kind::Float32 => Self::Float32(Float32Builder::with_capacity(rows)),
            Kind::Float64 => Self::Float64(Float64Builder::with_capacity(rows)),
            Kind::Date => Self::Date(Date32Builder::with_capacity(rows)),
            Kind::Time => Self::Time(Time64MicrosecondBuilder::with_capacity(rows)),
            Kind::Timestamp | Kind::TimestampTz => {
                Self::Timestamp(TimestampMicrosecondBuilder::with_capacity(rows).with_data_type(column.storage_type()))
            }
            Kind::Uuid => Self::Fixed(FixedSizeBinaryBuilder::with_capacity(rows, 16)),
            Kind::FlatFixed => Self::Fixed(FixedSizeBinaryBuilder::with_capacity(rows, i32::from(column.length))),
            Kind::Numeric | Kind::Jsonb | Kind::Text | Kind::Name => {
                Self::Text(BinaryBuilder::with_capacity(rows, bytes))
            }
            Kind::Bytea | Kind::FlatVarlena | Kind::FlatCString => {
                Self::Bytes(BinaryBuilder::with_capacity(rows, bytes))
            }
        }
    }

    /// Bytes of the variable-length values appended so far.
    fn value_bytes(&self) -> usize {
        match self {
            Self::Text(b) | Self::Bytes(b) => b.values_slice().len(),
            _ => 0,
        }
    }

    fn append_null(&mut self) {
        match self {
            Self::Bool(b) => b.append_null(),
            Self::Int16(b) => b.append_null(),
            Self::Int32(b) => b.append_null(),
            Self::Int64(b) => b.append_null(),
            Self::Float32(b) => b.append_null(),
            Self::Float64(b) => b.append_null(),
            Self::Date(b) => b.append_null(),
            Self::Time(b) => b.append_null(),
            Self::Timestamp(b) => b.append_null(),
            Self::Fixed(b) => b.append_null(),
            Self::Text(b) | Self::Bytes(b) => b.append_null(),
        }
    }

    /// Takes what was appended as an array and starts anew.
    fn finish(&mut self) -> Result<ArrayRef, Reason> {
        Ok(match self {
            Self::Bool(b) => Arc::new(b.finish()),
            Self::Int16(b) => Arc::new(b.finish()),
            Self::Int32(b) => Arc::new(b.finish()),
            Self::Int64(b) => Arc::new(b.finish()),
            Self::Float32(b) => Arc::new(b.finish()),
            Self::Float64(b) => Arc::new(b.finish()),
            Self::Date(b) => Arc::new(b.finish()),
            Self::Time(b) => Arc::new(b.finish()),
            Self::Timestamp(b) => Arc::new(b.finish()),
            Self::Fixed(b) => Arc::new(b.finish()),
            Self::Text(b) => {
                let text = StringArray::try_from_binary(b.finish());
                Arc::new(text.map_err(|_| Reason::TextEncoding)?)
            }
            Self::Bytes(b) => Arc::new(b.finish()),
        })
    }
}

/// Collects rows of one result into batches.
pub struct Encoder {
    columns: Vec<Column>,
    builders: Vec<Builder>,
    rows: usize,
    /// Bytes that the rows in the builders will take.
    bytes: usize,
    /// Bytes at which the builders are full.
    budget: usize,
    /// Reused for the text of numerics and of jsonb.
    text: Vec<u8>,
}

impl Encoder {
    /// An encoder for rows of these columns.
    pub fn new(columns: Vec<Column>) -> Self {
        let builders = columns.iter().map(|column| Builder::new(column, FIRST_ROWS, FIRST_BYTES)).collect();
        let overhead = columns.len() * COLUMN_OVERHEAD + 1024;
        let budget = TARGET_BYTES.saturating_sub(overhead).max(MIN_ROW_BYTES);
        Self { columns, builders, rows: 0, bytes: 0, budget, text: Vec::new() }
    }

    /// Appends one row.
    ///
    /// # Errors
    /// `UnsupportedType` for a value that the storage form cannot hold exactly, `TooLarge` for a
    /// row of more than `limit` bytes. The encoder is of no further use then.
    ///
    /// # Safety
    /// `values` and `nulls` must hold one value per column, of the column's type.
    pub unsafe fn append(&mut self, values: &[pg_sys::Datum], nulls: &[bool], limit: usize) -> Result<(), Reason> {
        // Even a row without columns takes something, so that a batch of such rows is full some day.
        let mut row = 1;
        for (index, builder) in self.builders.iter_mut().enumerate() {
            if nulls[index] {
                builder.append_null();
                row += 8;
                continue;
            }
            let column = &self.columns[index];
            // SAFETY: as the caller promises.
            row += unsafe { append_value(builder, column, values[index], &mut self.text, limit.saturating_sub(row))? };
        }
        self.rows += 1;
        self.bytes += row;
        Ok(())
    }

    /// Is it time to take a batch?
    pub fn is_full(&self) -> bool {
        self.bytes >= self.budget
    }

    /// Rows appended since the last batch was taken.
    pub fn pending_rows(&self) -> usize {
        self.rows
    }

    /// Takes the rows appended so far as one encoded batch. `more` says whether others follow.
    ///
    /// # Errors
    /// `TextEncoding` when a text value is not valid UTF-8.
    pub fn take_batch(&mut self, more: bool) -> Result<EncodedBatch, Reason> {
        let arrays = self
            .builders
            .iter_mut()
            .zip(&self.columns)
            .map(|(builder, column)| {
                let bytes = builder.value_bytes();
                let array = builder.finish();
                if more {
                    // The next batch will be about as large: room for all of it spares the copies of growing.
                    *builder = Builder::new(column, self.rows + self.rows / 8, bytes + bytes / 8);
                }
                array
            })
            .collect::<Result<Vec<_>, _>>()?;
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        EncodedBatch::new(arrays, rows)
    }
}

/// Appends one value that is not NULL; returns about how many bytes it takes.
///
/// # Safety
/// `datum` must be a value of the column's type.
unsafe fn append_value(
    builder: &mut Builder,
    column: &Column,
    datum: pg_sys::Datum,
    text: &mut Vec<u8>,
    limit: usize,
) -> Result<usize, Reason> {
    let raw = datum.value();
    match builder {
        Builder::Bool(b) => {
            b.append_value(raw & 0xFF != 0);
            return Ok(1);
        }
        Builder::Int16(b) => b.append_value(raw as i16),
        Builder::Int32(b) => b.append_value(raw as i32),
        Builder::Int64(b) => b.append_value(raw as i64),
        Builder::Float32(b) => b.append_value(f32::from_bits(raw as u32)),
        Builder::Float64(b) => b.append_value(f64::from_bits(raw as u64)),
        Builder::Date(b) => {
            b.append_value(epoch::date_to_arrow(raw as i32).ok_or(Reason::UnsupportedType)?);
        }
        Builder::Time(b) => b.append_value(raw as i64),
        Builder::Timestamp(b) => {
            b.append_value(epoch::timestamp_to_arrow(raw as i64).ok_or(Reason::UnsupportedType)?);
        }
        Builder::Fixed(b) => {
            let length = column.length as usize;
            // SAFETY: a fixed-length value is in the datum itself or behind it.
            let appended = unsafe {
                if column.by_value {
                    b.append_value(&raw.to_le_bytes()[..length])
                } else {
                    b.append_value(std::slice::from_raw_parts(datum.cast_mut_ptr::<u8>(), length))
                }
            };
            appended.map_err(|_| Reason::UnsupportedType)?;
            return Ok(length);
        }
        Builder::Text(b) | Builder::Bytes(b) => {
            // SAFETY: as the caller promises.
            return unsafe { append_bytes(b, column, datum, text, limit) };
        }
    }
    Ok(8)
}

/// Appends a value of variable length.
///
/// # Safety
/// `datum` must be a value of the column's type.
unsafe fn append_bytes(
    builder: &mut BinaryBuilder,
    column: &Column,
    datum: pg_sys::Datum,
    text: &mut Vec<u8>,
    limit: usize,
) -> Result<usize, Reason> {
    // SAFETY: names and cstrings are NUL-terminated; all other kinds are varlenas. A copy made by
    // detoasting lives until the caller's per-row context is reset.
    unsafe {
        let bytes = match column.kind {
            Kind::Name | Kind::FlatCString => CStr::from_ptr(datum.cast_mut_ptr()).to_bytes(),
            _ => varlena::body(datum, limit).ok_or(Reason::TooLarge)?,
        };
        if matches!(column.kind, Kind::Numeric | Kind::Jsonb) {
            text.clear();
            if column.kind == Kind::Jsonb {
                jsonb::to_text(bytes, limit, text).map_err(|refusal| match refusal {
                    Refusal::Unknown => Reason::UnsupportedType,
                    Refusal::TooLong => Reason::TooLarge,
                })?;
            } else if !numeric::to_text(bytes, text) {
                return Err(Reason::UnsupportedType);
            }
            builder.append_value(&text[..]);
            return Ok(text.len() + 4);
        }
        if bytes.len() > limit {
            return Err(Reason::TooLarge);
        }
        builder.append_value(bytes);
        Ok(bytes.len() + 4)
    }
}
