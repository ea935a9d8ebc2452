//! Builder of columns whose values are passed by value: numbers, days, moments.

use arrow_cache_core::formats::epoch;
use arrow_cache_core::{OutOfMemory, Reason, RoomyVec};

use super::ipc_message::Body;
use super::null_bitmap::{Validity, place_word};
use super::row_block::RowBlock;

/// How the buffer of a column is made of datums that hold the values themselves.
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

/// Builds a column of values that are passed by value.
pub struct ScalarBuilder {
    column: usize,
    scalar: Scalar,
    bytes: Vec<u8>,
    validity: Validity,
    /// True if the batch has a timestamp that Arrow would misread.
    unrepresentable: bool,
}

impl ScalarBuilder {
    /// Column number `column` of the rows.
    pub fn new(column: usize, scalar: Scalar) -> Self {
        Self { column, scalar, bytes: Vec::new(), validity: Validity::default(), unrepresentable: false }
    }

    /// Makes room for that many rows.
    ///
    /// # Errors
    /// There is no memory.
    pub fn grow(&mut self, rows: usize) -> Result<(), OutOfMemory> {
        self.validity.grow(rows)?;
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
    pub fn take(&mut self, block: &RowBlock, start: usize) -> Result<(), Reason> {
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
        block: &RowBlock,
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
        body.buffer(&self.bytes[..(body.rows() * self.bits_per_row()).div_ceil(8)])
    }

    /// Returns true if the batch has a timestamp that Arrow would misread.
    pub fn has_unrepresentable(&self) -> bool {
        self.unrepresentable
    }
}
