//! Bitmaps in Arrow's layout: one bit for each row, the lowest bit of a byte first.

use std::borrow::Cow;

use arrow_buffer::bit_chunk_iterator::{BitChunks, UnalignedBitChunk};
use arrow_cache_core::{OutOfMemory, Room, RoomyVec};

/// A bitmap in the making.
#[derive(Default)]
pub struct Bits {
    bytes: Vec<u8>,
    length: usize,
    zeroes: usize,
}

impl Bits {
    /// Makes room for that many more bits.
    ///
    /// # Errors
    /// There is no memory.
    pub fn make_room(&mut self, more: usize) -> Result<(), OutOfMemory> {
        let bytes = (self.length + more).div_ceil(8) - self.bytes.len();
        Room::make_room(&mut self.bytes, bytes)
    }

    /// Appends a bit.
    ///
    /// # Errors
    /// There is no memory.
    #[inline]
    pub fn add(&mut self, bit: bool) -> Result<(), OutOfMemory> {
        if self.length.is_multiple_of(8) {
            self.bytes.add(0)?;
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit) << (self.length % 8);
        }
        self.length += 1;
        self.zeroes += usize::from(!bit);
        Ok(())
    }

    /// Bits that are not set.
    pub fn zeroes(&self) -> usize {
        self.zeroes
    }

    /// The bitmap.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// How many of these bits are not set.
pub fn zeroes(bitmap: &[u8], start: usize, length: usize) -> usize {
    length - UnalignedBitChunk::new(bitmap, start, length).count_ones()
}

/// Some of the bits as a bitmap of their own, in which no bit is set behind them: the bytes themselves where they are that, else a copy.
///
/// # Errors
/// There is no memory.
pub fn part(bitmap: &[u8], start: usize, length: usize) -> Result<Cow<'_, [u8]>, OutOfMemory> {
    let bytes = &bitmap[start / 8..(start + length).div_ceil(8)];
    // The bits of the last byte that belong to the part.
    let of_last = 0xFF >> (length.next_multiple_of(8) - length);
    if start.is_multiple_of(8) && bytes.last().is_none_or(|last| last & !of_last == 0) {
        return Ok(Cow::Borrowed(bytes));
    }
    let words = BitChunks::new(bitmap, start, length);
    let mut moved = Vec::with_room(length.div_ceil(8) + size_of::<u64>())?;
    for word in words.iter_padded() {
        moved.add_all(&word.to_le_bytes())?;
    }
    moved.truncate(length.div_ceil(8));
    Ok(Cow::Owned(moved))
}
