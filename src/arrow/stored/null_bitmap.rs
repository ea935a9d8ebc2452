//! Validity bitmaps of the columns of a batch in the making: Arrow's way to tell which rows are NULL.

use arrow_cache_core::{OutOfMemory, RoomyVec};

use super::ipc_message::Body;
use super::row_block::RowBlock;

/// Which rows of a column are not NULL, one bit each.
#[derive(Default)]
pub struct Validity {
    bits: Vec<u8>,
    nulls: usize,
}

impl Validity {
    /// Makes room for that many rows.
    ///
    /// # Errors
    /// There is no memory.
    pub fn grow(&mut self, rows: usize) -> Result<(), OutOfMemory> {
        self.bits.lengthen(rows / 8, 0)
    }

    /// Takes the bits of the block that begins at row `start`, and returns them.
    pub fn take(&mut self, block: &RowBlock, column: usize, start: usize) -> u64 {
        if start == 0 {
            self.nulls = 0;
        }
        let bits = block.validity(column);
        self.nulls += block.rows() - bits.count_ones() as usize;
        place_word(&mut self.bits, start, bits);
        bits
    }

    /// Begins the column in a batch.
    ///
    /// # Errors
    /// There is no memory for that.
    pub fn begin_column<'a>(&'a self, body: &mut Body<'a>) -> Result<(), OutOfMemory> {
        let length = if self.nulls == 0 { 0 } else { body.rows().div_ceil(8) };
        body.column(self.nulls, &self.bits[..length])
    }
}

/// Puts the bits of a block into a bitmap, `start` being its first row.
pub fn place_word(bitmap: &mut [u8], start: usize, bits: u64) {
    bitmap[start / 8..][..size_of::<u64>()].copy_from_slice(&bits.to_le_bytes());
}
