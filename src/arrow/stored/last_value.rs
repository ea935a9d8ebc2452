//! A value of the row that was encoded last, as messages for the client are made of it. Plain data, valid until the
//! next row is encoded.

use arrow_cache_core::formats::wire::StoredValue;

/// A value that is not NULL.
pub enum LastValue<'a> {
    /// One that is passed by value, as the server has it.
    Word(usize),
    /// One that lies among the bytes of its column, from `start` to `end`.
    Among {
        /// The bytes of the column.
        values: &'a [u8],
        /// Where the value begins.
        start: usize,
        /// Where it ends.
        end: usize,
    },
}

impl LastValue<'_> {
    /// The value as the server passes it; 0 if it does not pass it by value.
    #[inline]
    fn word(&self) -> usize {
        if let Self::Word(word) = self { *word } else { 0 }
    }
}

impl StoredValue for LastValue<'_> {
    #[inline]
    fn truth(&self) -> bool {
        self.word() & 0xFF != 0
    }

    #[inline]
    fn fixed<const N: usize>(&self) -> [u8; N] {
        let mut value = [0; N];
        match self {
            Self::Word(word) => value.copy_from_slice(&word.to_le_bytes()[..N]),
            Self::Among { values, start, .. } => value.copy_from_slice(&values[*start..start + N]),
        }
        value
    }

    #[inline]
    fn days(&self) -> i32 {
        self.word() as i32
    }

    #[inline]
    fn micros(&self) -> i64 {
        self.word() as i64
    }

    #[inline]
    fn place(&self) -> (&[u8], usize, usize) {
        match self {
            Self::Word(_) => (&[], 0, 0),
            Self::Among { values, start, end } => (values, *start, *end),
        }
    }
}
