//! The columns of a batch in the making: each in the layout of the finished Arrow column, in
//! memory that is kept from batch to batch.
//!
//! All columns have room for the same number of rows, a multiple of a block. Values that are
//! passed by reference are copied as their row comes; all else is taken from the full block.

use arrow_cache_core::formats::jsonb;
use arrow_cache_core::formats::jsonb::Refusal;
use arrow_cache_core::formats::{epoch, numeric};
use arrow_cache_core::{OutOfMemory, Reason, Room, RoomyVec};
use pgrx::pg_sys;
use std::borrow::Cow;
use std::ffi::CStr;
use std::ops::Range;

use super::block::Block;
use super::message::Body;
use super::varlena;

/// Bytes of an offset.
const END: usize = size_of::<u32>();
/// Capacity for variable-length values that a column keeps for the next batch.
const KEPT_BYTES: usize = 1024 * 1024;

/// Which rows of a column are not NULL: one bit each.
#[derive(Default)]
struct Validity {
    bits: Vec<u8>,
    nulls: usize,
}

impl Validity {
    /// Takes the bits of the block that begins at row `start`, and returns them.
    fn take(&mut self, block: &Block, column: usize, start: usize) -> u64 {
        if start == 0 {
            self.nulls = 0;
        }
        let bits = block.validity(column);
        self.nulls += block.rows() - bits.count_ones() as usize;
        place_word(&mut self.bits, start, bits);
        bits
    }

    fn begin_column<'a>(&'a self, body: &mut Body<'a>) -> Result<(), OutOfMemory> {
        let length = if self.nulls == 0 { 0 } else { body.rows().div_ceil(8) };
        body.column(self.nulls, &self.bits[..length])
    }
}

/// Puts the bits of a block into a bitmap, `start` being its first row.
fn place_word(bitmap: &mut [u8], start: usize, bits: u64) {
    bitmap[start / 8..][..size_of::<u64>()].copy_from_slice(&bits.to_le_bytes());
}

/// How a column is made of datums that hold the values themselves.
#[derive(Clone, Copy)]
pub enum Scalar {
    /// Single bits.
    Bool,
    /// Values of one byte.
    Byte,
    /// Values of two bytes.
    Short,
    /// Values of four bytes.
    Word,
    /// Values of eight bytes.
    Long,
    /// Days, in Arrow's count.
    Date,
    /// Microseconds, in Arrow's count.
    Timestamp,
}

/// A column of values that are passed by value.
pub struct Scalars {
    column: usize,
    scalar: Scalar,
    bytes: Vec<u8>,
    validity: Validity,
    /// Has the batch a timestamp that Arrow would misread?
    unrepresentable: bool,
}

impl Scalars {
    /// Column number `column` of the rows.
    pub fn new(column: usize, scalar: Scalar) -> Self {
        Self { column, scalar, bytes: Vec::new(), validity: Validity::default(), unrepresentable: false }
    }

    /// Makes room for so many rows.
    pub fn grow(&mut self, rows: usize) -> Result<(), OutOfMemory> {
        self.validity.bits.lengthen(rows / 8, 0)?;
        let bytes = rows * self.bits_per_row() / 8;
        self.bytes.lengthen(bytes, 0)
    }

    fn bits_per_row(&self) -> usize {
        match self.scalar {
            Scalar::Bool => 1,
            Scalar::Byte => 8,
            Scalar::Short => 16,
            Scalar::Word | Scalar::Date => 32,
            Scalar::Long | Scalar::Timestamp => 64,
        }
    }

    /// Takes the rows of a block, the first of which is number `start` of the batch.
    ///
    /// # Errors
    /// `UnsupportedType` for a day that is no date.
    pub fn take(&mut self, block: &Block, start: usize) -> Result<(), Reason> {
        let valid = self.validity.take(block, self.column, start);
        if start == 0 {
            self.unrepresentable = false;
        }
        match self.scalar {
            Scalar::Bool => {
                let values = block.values(self.column).enumerate();
                let bits = values.fold(0, |bits, (row, raw)| bits | u64::from(raw & 0xFF != 0) << row);
                place_word(&mut self.bytes, start, bits & valid);
            }
            Scalar::Byte => self.fill(block, start, valid, |raw| (raw as u8).to_le_bytes()),
            Scalar::Short => self.fill(block, start, valid, |raw| (raw as u16).to_le_bytes()),
            Scalar::Word => self.fill(block, start, valid, |raw| (raw as u32).to_le_bytes()),
            Scalar::Long => self.fill(block, start, valid, |raw| (raw as u64).to_le_bytes()),
            Scalar::Date => {
                let mut refused = 0;
                let mut row = 0;
                self.fill(block, start, valid, |raw| {
                    let day = epoch::date_to_arrow(raw as i32);
                    refused |= u64::from(day.is_none()) << row;
                    row += 1;
                    day.unwrap_or_default().to_le_bytes()
                });
                if refused & valid != 0 {
                    return Err(Reason::UnsupportedType);
                }
            }
            Scalar::Timestamp => {
                let mut unrepresentable = 0;
                let mut row = 0;
                self.fill(block, start, valid, |raw| {
                    let code = epoch::timestamp_to_arrow(raw as i64);
                    unrepresentable |= u64::from(!epoch::is_representable(code)) << row;
                    row += 1;
                    code.to_le_bytes()
                });
                self.unrepresentable |= unrepresentable & valid != 0;
            }
        }
        Ok(())
    }

    /// Fills the values of a block with what `convert` makes of its datums, and with zeroes where
    /// they are NULL: the datum of a NULL may be anything.
    #[inline]
    fn fill<const N: usize>(
        &mut self,
        block: &Block,
        start: usize,
        valid: u64,
        mut convert: impl FnMut(usize) -> [u8; N],
    ) {
        let (places, _) = self.bytes[start * N..][..block.rows() * N].as_chunks_mut::<N>();
        for (place, raw) in places.iter_mut().zip(block.values(self.column)) {
            *place = convert(raw);
        }
        let mut nulls = !valid & (u64::MAX >> (u64::BITS as usize - block.rows()));
        while nulls != 0 {
            places[nulls.trailing_zeros() as usize] = [0; N];
            nulls &= nulls - 1;
        }
    }

    /// Adds the column to a batch.
    ///
    /// # Errors
    /// There is no memory for that.
    pub fn add_to<'a>(&'a self, body: &mut Body<'a>) -> Result<(), OutOfMemory> {
        self.validity.begin_column(body)?;
        body.buffer(Cow::Borrowed(&self.bytes[..(body.rows() * self.bits_per_row()).div_ceil(8)]))
    }

    /// Has the batch a timestamp that Arrow would misread?
    pub fn has_unrepresentable(&self) -> bool {
        self.unrepresentable
    }
}

/// A column of values of one length that are passed by reference.
pub struct Fixed {
    column: usize,
    width: usize,
    bytes: Vec<u8>,
    validity: Validity,
}

impl Fixed {
    /// Column number `column` of the rows.
    pub fn new(column: usize, width: usize) -> Self {
        Self { column, width, bytes: Vec::new(), validity: Validity::default() }
    }

    /// Makes room for so many rows.
    pub fn grow(&mut self, rows: usize) -> Result<(), OutOfMemory> {
        self.validity.bits.lengthen(rows / 8, 0)?;
        self.bytes.lengthen(rows * self.width, 0)
    }

    /// Copies the value of row number `row` of the batch.
    ///
    /// # Safety
    /// One value per column, of the column's type.
    #[inline]
    pub unsafe fn append(&mut self, values: &[pg_sys::Datum], nulls: &[bool], row: usize) {
        let place = &mut self.bytes[row * self.width..][..self.width];
        if nulls[self.column] {
            place.fill(0);
            return;
        }
        let start = values[self.column].cast_mut_ptr::<u8>();
        // SAFETY: a value of the column's length is there, as the caller promises.
        let value = unsafe { std::slice::from_raw_parts(start, self.width) };
        match (place.as_mut_array::<16>(), value.as_array::<16>()) {
            // The length of most such types, known when this is compiled.
            (Some(place), Some(value)) => *place = *value,
            _ => place.copy_from_slice(value),
        }
    }

    /// Takes what else is to be known of a block, the first row of which is number `start`.
    pub fn take(&mut self, block: &Block, start: usize) {
        self.validity.take(block, self.column, start);
    }

    /// Adds the column to a batch.
    ///
    /// # Errors
    /// There is no memory for that.
    pub fn add_to<'a>(&'a self, body: &mut Body<'a>) -> Result<(), OutOfMemory> {
        self.validity.begin_column(body)?;
        body.buffer(Cow::Borrowed(&self.bytes[..body.rows() * self.width]))
    }
}

/// What the datum of a variable-length value points at, and what is stored of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A varlena, whose body is stored.
    Body,
    /// A varlena whose body must be UTF-8.
    Text,
    /// A numeric, stored as its text.
    Numeric,
    /// A jsonb, stored as its text.
    Jsonb,
    /// Characters up to a NUL.
    Characters,
    /// The same, and they must be UTF-8.
    TextCharacters,
}

/// A column of values of variable length.
pub struct Variable {
    column: usize,
    form: Form,
    bytes: Vec<u8>,
    /// Where each row's bytes begin, and at last where they end.
    offsets: Vec<[u8; END]>,
    validity: Validity,
}

impl Variable {
    /// Column number `column` of the rows.
    pub fn new(column: usize, form: Form) -> Self {
        Self { column, form, bytes: Vec::new(), offsets: Vec::new(), validity: Validity::default() }
    }

    /// Makes room for so many rows.
    pub fn grow(&mut self, rows: usize) -> Result<(), OutOfMemory> {
        self.validity.bits.lengthen(rows / 8, 0)?;
        self.offsets.lengthen(rows + 1, [0; END])
    }

    /// Forgets the values.
    pub fn clear(&mut self) {
        self.bytes.clear();
        // After a batch with a very large value.
        self.bytes.shrink_to(KEPT_BYTES);
    }

    /// Copies the row's value and returns where it is.
    ///
    /// # Errors
    /// `TooLarge` for a value of more than `limit` bytes, `UnsupportedType` for one that is not a
    /// value of its type, `OutOfMemory`.
    ///
    /// # Safety
    /// One value per column, of the column's type. A copy made by detoasting lives until the
    /// current memory context is reset.
    #[inline]
    pub unsafe fn append(
        &mut self,
        values: &[pg_sys::Datum],
        nulls: &[bool],
        limit: usize,
    ) -> Result<Range<usize>, Reason> {
        let start = self.bytes.len();
        if nulls[self.column] {
            return Ok(start..start);
        }
        let datum = values[self.column];
        // SAFETY: as the caller promises.
        let value = unsafe {
            match self.form {
                Form::Body | Form::Text | Form::Numeric | Form::Jsonb => varlena::body(datum, limit)?,
                Form::Characters | Form::TextCharacters => CStr::from_ptr(datum.cast_mut_ptr()).to_bytes(),
            }
        };
        match self.form {
            Form::Numeric => {
                self.bytes.make_room(numeric::text_bound(value))?;
                if !numeric::to_text(value, &mut self.bytes) {
                    return Err(Reason::UnsupportedType);
                }
            }
            Form::Jsonb => jsonb::to_text(value, limit, &mut self.bytes).map_err(|refusal| match refusal {
                Refusal::Unknown => Reason::UnsupportedType,
                Refusal::TooLong => Reason::TooLarge,
                Refusal::NoMemory => Reason::OutOfMemory,
            })?,
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

    /// Takes what else is to be known of a block, the first row of which is number `start`: where
    /// its values end.
    pub fn take(&mut self, block: &Block, start: usize, ends: impl Iterator<Item = u32>) {
        self.validity.take(block, self.column, start);
        for (offset, end) in self.offsets[start + 1..].iter_mut().zip(ends) {
            *offset = end.to_le_bytes();
        }
    }

    /// Is each value what its column holds, of the first `rows` rows?
    pub fn is_valid(&self, rows: usize) -> bool {
        if !matches!(self.form, Form::Text | Form::TextCharacters | Form::Jsonb) || self.bytes.is_ascii() {
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
