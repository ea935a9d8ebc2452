//! What the encoder reads of a value: one that lies in a stored chunk, or one that is about to be stored. A trait, and
//! the first of these; nothing here is shared.

use crate::formats::column_buffers::ColumnBuffers;
use crate::formats::epoch;

/// A value that is not NULL, of a column whose format tells which of these functions apply.
pub trait StoredValue {
    /// A bool.
    fn truth(&self) -> bool;

    /// The bytes of a value that takes `N` bytes, the lowest first if it is a number.
    fn fixed<const N: usize>(&self) -> [u8; N];

    /// A date, in days since 2000.
    fn days(&self) -> i32;

    /// A timestamp, in microseconds since 2000.
    fn micros(&self) -> i64;

    /// Bytes among which a value of varying length lies, its start and its end among them.
    fn place(&self) -> (&[u8], usize, usize);

    /// The bytes of a value of varying length.
    #[inline]
    fn bytes(&self) -> &[u8] {
        let (values, start, end) = self.place();
        &values[start..end]
    }
}

/// A value in a chunk: that of a row of a column.
pub(super) struct ChunkValue<'a> {
    pub column: &'a ColumnBuffers<'a>,
    pub row: usize,
}

impl StoredValue for ChunkValue<'_> {
    #[inline]
    fn truth(&self) -> bool {
        self.column.truth(self.row)
    }

    #[inline]
    fn fixed<const N: usize>(&self) -> [u8; N] {
        self.column.fixed(self.row)
    }

    #[inline]
    fn days(&self) -> i32 {
        epoch::date_from_arrow(i32::from_le_bytes(self.fixed()))
    }

    #[inline]
    fn micros(&self) -> i64 {
        epoch::timestamp_from_arrow(i64::from_le_bytes(self.fixed()))
    }

    #[inline]
    fn place(&self) -> (&[u8], usize, usize) {
        let (start, end) = self.column.place(self.row);
        (self.column.values, start, end)
    }
}
