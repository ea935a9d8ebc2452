//! The last rows of a batch in the making, as the executor gives them.
//!
//! A full block is turned into columns at once: the loop over a column then runs over many rows without
//! a decision, and between two blocks the processor's caches hold one block instead of the ends of all
//! columns.

use arrow_cache_core::{OutOfMemory, RoomyVec};
use pgrx::pg_sys;

use crate::pg::row::Row;

/// Rows of a full block: as many as a word has bits.
pub const ROWS: usize = 64;

/// Up to `ROWS` rows.
pub struct RowBlock {
    columns: usize,
    rows: usize,
    /// Datums, row after row. What those passed by reference pointed at is gone by now.
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
    /// True if the column has a NULL.
    has_nulls: Vec<bool>,
}

impl RowBlock {
    /// An empty block of rows with that many columns.
    ///
    /// # Errors
    /// There is no memory for a full one.
    pub fn new(columns: usize) -> Result<Self, OutOfMemory> {
        let (values, nulls) = (Vec::with_room(ROWS * columns)?, Vec::with_room(ROWS * columns)?);
        let mut has_nulls = Vec::new();
        has_nulls.lengthen(columns, false)?;
        Ok(Self { columns, rows: 0, values, nulls, has_nulls })
    }

    /// Adds a row, which must have a value per column.
    #[inline]
    pub fn push(&mut self, row: Row<'_>) {
        self.values.extend_from_slice(row.values());
        self.nulls.extend_from_slice(row.nulls());
        for (has_nulls, null) in self.has_nulls.iter_mut().zip(row.nulls()) {
            *has_nulls |= *null;
        }
        self.rows += 1;
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.rows = 0;
        self.values.clear();
        self.nulls.clear();
        self.has_nulls.fill(false);
    }

    /// Rows in the block.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The datums of a column.
    pub fn values(&self, column: usize) -> impl Iterator<Item = usize> {
        self.values.chunks_exact(self.columns).map(move |row| row[column].value())
    }

    /// One bit for each row, set where the column is not NULL. The bits behind the last row are 0.
    pub fn validity(&self, column: usize) -> u64 {
        if !self.has_nulls[column] {
            return u64::MAX >> (ROWS - self.rows);
        }
        let rows = self.nulls.chunks_exact(self.columns).enumerate();
        rows.fold(0, |bits, (row, nulls)| bits | u64::from(!nulls[column]) << row)
    }
}
