//! Builder of columns whose values have one length and are passed by reference: uuid, interval and the like.

use std::borrow::Cow;

use arrow_cache_core::{OutOfMemory, RoomyVec};

use super::last_value::LastValue;
use super::null_bitmap::Validity;
use super::row_block::RowBlock;
use crate::arrow::ipc_message::Body;
use crate::pg::row::Row;

/// Builds a column of values of one length that are passed by reference.
pub struct FixedBuilder {
    column: usize,
    width: usize,
    bytes: Vec<u8>,
    validity: Validity,
}

impl FixedBuilder {
    /// Column number `column` of the rows.
    pub fn new(column: usize, width: usize) -> Self {
        Self { column, width, bytes: Vec::new(), validity: Validity::default() }
    }

    /// Makes room for that many rows.
    ///
    /// # Errors
    /// There is no memory.
    pub fn grow(&mut self, rows: usize) -> Result<(), OutOfMemory> {
        self.validity.grow(rows)?;
        self.bytes.lengthen(rows * self.width, 0)
    }

    /// Copies the value of `row`, which is row number `number` of the batch.
    #[inline]
    pub fn append(&mut self, row: Row<'_>, number: usize) {
        let place = &mut self.bytes[number * self.width..][..self.width];
        let Some(value) = row.value(self.column) else {
            place.fill(0);
            return;
        };
        // SAFETY: the row was made for this encoder, so its value is valid and has the length of the column's type.
        let value = unsafe { std::slice::from_raw_parts(value.datum().cast_mut_ptr::<u8>(), self.width) };
        match (place.as_mut_array::<16>(), value.as_array::<16>()) {
            // The length of most such types, known when this is compiled.
            (Some(place), Some(value)) => *place = *value,
            _ => place.copy_from_slice(value),
        }
    }

    /// The value of row number `number` of the batch, which is not NULL.
    #[inline]
    pub fn value(&self, number: usize) -> LastValue<'_> {
        let start = number * self.width;
        LastValue::Among { values: &self.bytes, start, end: start + self.width }
    }

    /// Takes the validity of the rows of a block, the first of which is number `start`.
    pub fn take(&mut self, block: &RowBlock, start: usize) {
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
