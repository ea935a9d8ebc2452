//! Bitmaps in Arrow's layout: one bit for each row, the lowest bit of a byte first.

use std::borrow::Cow;

use arrow_buffer::bit_chunk_iterator::{BitChunks, UnalignedBitChunk};
use arrow_cache_core::{OutOfMemory, RoomyVec};

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
