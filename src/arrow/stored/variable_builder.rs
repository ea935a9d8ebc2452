//! Builder of columns whose values vary in length: texts, numerics, jsonb, arrays and the like.

use std::borrow::Cow;
use std::ffi::CStr;
use std::ops::Range;

use arrow_cache_core::formats::jsonb;
use arrow_cache_core::formats::jsonb::Refusal;
use arrow_cache_core::formats::numeric;
use arrow_cache_core::{OutOfMemory, Reason, Room, RoomyVec};

use super::null_bitmap::Validity;
use super::record_types::Described;
use super::row_block::RowBlock;
use crate::arrow::ipc_message::Body;
use crate::pg::row::Row;
use crate::pg::varlena::Varlena;

/// Bytes of an offset.
const END: usize = size_of::<u32>();
/// Capacity for values, in bytes, that a column keeps for the next batch.
const KEPT_BYTES: usize = 1024 * 1024;

/// How the server represents the values of a column of variable length, and what is stored of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Representation {
    /// A varlena, whose body is stored.
    Body,
    /// A varlena whose body must be UTF-8.
    Text,
    /// A varlena of characters in another encoding.
    OtherText,
    /// A numeric, stored as its text.
    Numeric,
    /// A jsonb, stored as its text.
    Jsonb,
    /// An anonymous record, whose body is stored with a description of its type.
    Record,
    /// Characters up to a NUL.
    Characters,
    /// The same, and they must be UTF-8.
    TextCharacters,
}

/// Builds a column of values of variable length.
pub struct VariableBuilder {
    column: usize,
    representation: Representation,
    bytes: Vec<u8>,
    /// Where each row's bytes begin, and at last where they end.
    offsets: Vec<[u8; END]>,
    validity: Validity,
    /// There was a text with a NUL in it.
    has_nul: bool,
    /// The type of the last record.
    described: Described,
}

impl VariableBuilder {
    /// Column number `column` of the rows.
    pub fn new(column: usize, representation: Representation) -> Self {
        Self {
            column,
            representation,
            bytes: Vec::new(),
            offsets: Vec::new(),
            validity: Validity::default(),
            has_nul: false,
            described: Described::default(),
        }
    }

    /// Makes room for that many rows.
    ///
    /// # Errors
    /// There is no memory.
    pub fn grow(&mut self, rows: usize) -> Result<(), OutOfMemory> {
        self.validity.grow(rows)?;
        self.offsets.lengthen(rows + 1, [0; END])
    }

    /// Forgets the values.
    pub fn clear(&mut self) {
        self.bytes.clear();
        // A batch with a very large value may have left more.
        self.bytes.shrink_to(KEPT_BYTES);
    }

    /// Was there a text with a NUL in it? The server makes none itself, and sends what is before the NUL, or all, as the format is.
    #[inline]
    pub fn has_nul(&self) -> bool {
        self.has_nul
    }

    /// The bytes of the values so far.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Copies the row's value and returns where it is.
    ///
    /// # Errors
    /// `TooLarge` for a value of more than `limit` bytes, `UnsupportedType` for bytes that are no
    /// value of the type, `RecordType` for a record with records in it, `OutOfMemory`.
    #[inline]
    pub fn append(&mut self, row: Row<'_>, limit: usize) -> Result<Range<usize>, Reason> {
        let start = self.bytes.len();
        let Some(value) = row.value(self.column) else { return Ok(start..start) };
        // SAFETY: the row was made for this encoder, so its value is valid and of the column's type, which this representation stands for.
        let value = unsafe {
            match self.representation {
                Representation::Body
                | Representation::Text
                | Representation::OtherText
                | Representation::Numeric
                | Representation::Jsonb
                | Representation::Record => Varlena::of(value).body(limit)?,
                Representation::Characters | Representation::TextCharacters => {
                    CStr::from_ptr(value.datum().cast_mut_ptr()).to_bytes()
                }
            }
        };
        match self.representation {
            Representation::Numeric => {
                self.bytes.make_room(numeric::text_bound(value))?;
                if !numeric::to_text(value, &mut self.bytes) {
                    return Err(Reason::UnsupportedType);
                }
            }
            Representation::Jsonb => {
                jsonb::to_text(value, limit, &mut self.bytes).map_err(|refusal| match refusal {
                    Refusal::Unknown => Reason::UnsupportedType,
                    Refusal::TooLong => Reason::TooLarge,
                    Refusal::NoMemory => Reason::OutOfMemory,
                })?
            }
            Representation::Record => {
                self.copy(value, limit)?;
                self.bytes.add_all(self.described.of(value)?)?;
            }
            Representation::Text | Representation::OtherText => {
                self.has_nul |= value.contains(&0);
                self.copy(value, limit)?;
            }
            _ => self.copy(value, limit)?,
        }
        Ok(start..self.bytes.len())
    }

    #[inline]
    fn copy(&mut self, value: &[u8], limit: usize) -> Result<(), Reason> {
        if value.len() > self.bytes.capacity() - self.bytes.len() {
            self.make_room(value.len(), limit)?;
        }
        self.bytes.extend_from_slice(value);
        Ok(())
    }

    #[cold]
    fn make_room(&mut self, length: usize, limit: usize) -> Result<(), Reason> {
        if length > limit {
            return Err(Reason::TooLarge);
        }
        Ok(self.bytes.make_room(length)?)
    }

    /// Takes the validity of the rows of a block, the first of which is number `start`, and where their
    /// values end.
    pub fn take(&mut self, block: &RowBlock, start: usize, ends: impl Iterator<Item = u32>) {
        self.validity.take(block, self.column, start);
        for (offset, end) in self.offsets[start + 1..].iter_mut().zip(ends) {
            *offset = end.to_le_bytes();
        }
    }

    /// Are the values of the first `rows` rows UTF-8, if they must be?
    pub fn are_texts(&self, rows: usize) -> bool {
        if !matches!(self.representation, Representation::Text | Representation::TextCharacters | Representation::Jsonb)
            || self.bytes.is_ascii()
        {
            return true;
        }
        std::str::from_utf8(&self.bytes).is_ok_and(|text| {
            self.offsets[..rows].iter().all(|offset| text.is_char_boundary(u32::from_le_bytes(*offset) as usize))
        })
    }

    /// Adds the column to a batch.
    ///
    /// # Errors
    /// There is no memory for that.
    pub fn add_to<'a>(&'a self, body: &mut Body<'a>) -> Result<(), OutOfMemory> {
        self.validity.begin_column(body)?;
        let offsets = &self.offsets[..=body.rows()];
        body.buffer(Cow::Borrowed(offsets.as_flattened()))?;
        body.buffer(Cow::Borrowed(&self.bytes))
    }
}
