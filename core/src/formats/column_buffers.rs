//! The Arrow buffers of one column of a stored chunk, and how a value is read from them. Pure functions over the bytes
//! of a chunk; nothing here is shared.

/// One column of a chunk: its Arrow buffers.
#[derive(Clone, Copy)]
pub struct ColumnBuffers<'a> {
    /// One bit per value, 0 for NULL; empty without NULLs.
    pub validity: &'a [u8],
    /// Where values of varying length end; empty for values of fixed length.
    pub offsets: &'a [u8],
    /// The values.
    pub values: &'a [u8],
}

impl<'a> ColumnBuffers<'a> {
    /// Returns true if the value is NULL.
    #[inline]
    #[must_use]
    pub fn is_null(&self, row: usize) -> bool {
        self.validity.get(row / 8).is_some_and(|byte| byte >> (row % 8) & 1 == 0)
    }

    /// A bool, which takes one bit.
    #[inline]
    #[must_use]
    pub fn truth(&self, row: usize) -> bool {
        self.values[row / 8] >> (row % 8) & 1 == 1
    }

    /// The bytes of a value that takes `N` bytes.
    #[inline]
    #[must_use]
    pub fn fixed<const N: usize>(&self, row: usize) -> [u8; N] {
        let mut value = [0; N];
        value.copy_from_slice(&self.values[row * N..row * N + N]);
        value
    }

    /// Start and end of a value of varying length among the values.
    ///
    /// # Panics
    /// If the column has no such row, or values of fixed length.
    #[inline]
    #[must_use]
    pub fn place(&self, row: usize) -> (usize, usize) {
        let [a, b, c, d, e, f, g, h] = *self.offsets[row * 4..].first_chunk().expect("a value has two offsets");
        (u32::from_le_bytes([a, b, c, d]) as usize, u32::from_le_bytes([e, f, g, h]) as usize)
    }

    /// The bytes of a value of varying length.
    #[inline]
    #[must_use]
    pub fn bytes(&self, row: usize) -> &'a [u8] {
        let (start, end) = self.place(row);
        &self.values[start..end]
    }
}
