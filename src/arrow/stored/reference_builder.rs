//! Builder of columns whose values are passed by reference: texts, numerics, arrays, uuids and the like.

use std::ffi::CStr;
use std::ops::Range;

use arrow_cache_core::formats::numeric;
use arrow_cache_core::{OutOfMemory, Reason, Room, RoomyVec};

use super::column::are_texts;
use super::ipc_message::Body;
use super::null_bitmap::Validity;
use super::row_block::RowBlock;
use crate::pg::row::Row;
use crate::pg::varlena::Varlena;

/// Bytes of an offset.
const END: usize = size_of::<u32>();
/// Capacity for values, in bytes, that a column keeps for the next batch.
const KEPT_BYTES: usize = 1024 * 1024;

/// How the server represents the values of a column, and what is stored of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Representation {
    /// That many bytes, all of which are stored.
    Fixed(usize),
    /// A varlena, whose body is stored.
    Body,
    /// A varlena whose body must be UTF-8.
    Text,
    /// A varlena of characters in another encoding.
    OtherText,
    /// A numeric, stored as its text.
    Numeric,
    /// Characters up to a NUL.
    Characters,
    /// The same, and they must be UTF-8.
    TextCharacters,
}

/// Builds a column of values that are passed by reference.
pub struct ReferenceBuilder {
    column: usize,
    representation: Representation,
    bytes: Vec<u8>,
    /// Where each row's bytes begin, and at last where they end.
    offsets: Vec<[u8; END]>,
    validity: Validity,
    /// Why the values may not be stored.
    unfit: Option<Reason>,
}

impl ReferenceBuilder {
    /// Column number `column` of the rows.
    pub fn new(column: usize, representation: Representation) -> Self {
        Self {
            column,
            representation,
            bytes: Vec::new(),
            offsets: Vec::new(),
            validity: Validity::default(),
            unfit: None,
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

    /// Why the values may not be stored. The server makes no text with a NUL itself, and sends what is before the NUL,
    /// or all, as the format is.
    #[inline]
    pub fn unfit(&self) -> Option<Reason> {
        self.unfit
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
    /// value of the type, `OutOfMemory`.
    #[inline]
    pub fn append(&mut self, row: Row<'_>, limit: usize) -> Result<Range<usize>, Reason> {
        let start = self.bytes.len();
        let Some(whole) = row.value(self.column) else {
            if let Representation::Fixed(width) = self.representation {
                self.bytes.lengthen(start + width, 0)?;
            }
            return Ok(start..self.bytes.len());
        };
        // SAFETY: the row was made for this encoder, so its value is valid and of the column's type, which this
        // representation stands for.
        let value = unsafe {
            match self.representation {
                Representation::Fixed(width) => {
                    std::slice::from_raw_parts(whole.datum().cast_mut_ptr::<u8>().cast_const(), width)
                }
                Representation::Body | Representation::Text | Representation::OtherText | Representation::Numeric => {
                    Varlena::of(whole).body(limit)?
                }
                Representation::Characters | Representation::TextCharacters => {
                    CStr::from_ptr(whole.datum().cast_mut_ptr()).to_bytes()
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
            Representation::Text | Representation::OtherText => {
                if value.contains(&0) {
                    self.unfit = Some(Reason::TextEncoding);
                }
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

    /// Returns true if the values of the first `rows` rows are UTF-8, if they must be.
    pub fn are_texts(&self, rows: usize) -> bool {
        !matches!(self.representation, Representation::Text | Representation::TextCharacters)
            || are_texts(&self.bytes, &self.offsets[..rows])
    }

    /// Adds the column to a batch.
    ///
    /// # Errors
    /// There is no memory for that.
    pub fn add_to<'a>(&'a self, body: &mut Body<'a>) -> Result<(), OutOfMemory> {
        self.validity.begin_column(body)?;
        if !matches!(self.representation, Representation::Fixed(_)) {
            let offsets = &self.offsets[..=body.rows()];
            body.buffer(offsets.as_flattened())?;
        }
        body.buffer(&self.bytes)
    }
}
