//! The rows of a stored entry, one at a time, in either direction. The position belongs to one query of this backend;
//! the entry is shared and immutable while it is pinned.

use std::rc::Rc;

use arrow_cache_core::OutOfMemory;
use arrow_cache_core::formats::column_buffers::ColumnBuffers;
use pgrx::pg_sys;

use super::stored_chunks::StoredChunks;
use crate::arrow::chunk::Chunk;
use crate::arrow::column::Column;
use crate::arrow::decode::{Decoder, Reader};

/// A position among the rows of an entry.
pub struct Rows {
    decoder: Decoder,
    /// The chunks of the entry, in order.
    chunks: StoredChunks,
    reader: Option<Reader<'static>>,
    /// Number of the chunk that `reader` reads, and of the next row in it, from 0.
    chunk: usize,
    row: usize,
    /// All rows were passed without being read: the position is behind the last one.
    passed_all: bool,
}

impl Rows {
    /// Starts before the first row.
    ///
    /// # Safety
    /// The entry that holds the chunks must stay pinned as long as this value lives, and its columns must be these.
    pub unsafe fn new(columns: Rc<[Column]>, chunks: StoredChunks) -> Self {
        Self { decoder: Decoder::new(columns), chunks, reader: None, chunk: 0, row: 0, passed_all: false }
    }

    /// Goes back before the first row.
    pub fn rewind(&mut self) {
        self.reader = None;
        self.chunk = 0;
        self.row = 0;
        self.passed_all = false;
    }

    /// Returns true if the rows lie in a file.
    pub fn are_in_file(&self) -> bool {
        matches!(self.chunks, StoredChunks::InFile(_))
    }

    /// Returns true if no row has been read, or passed.
    pub fn is_at_start(&self) -> bool {
        self.reader.is_none() && !self.passed_all
    }

    /// Goes past all rows from the start, where the position is.
    pub fn pass_all(&mut self) {
        self.passed_all = true;
    }

    /// Opens a chunk, of which there are more.
    fn open(&mut self, chunk: usize) -> Result<(), OutOfMemory> {
        self.reader = None;
        self.chunk = chunk;
        let current = self.current();
        self.reader = Some(Reader::new(self.decoder.columns(), current)?);
        self.row = 0;
        Ok(())
    }

    /// Number of the next row in its chunk. `None` at the end, where the position then stays.
    ///
    /// # Errors
    /// There is no memory for reading on.
    pub fn upcoming(&mut self) -> Result<Option<usize>, OutOfMemory> {
        if self.passed_all {
            return Ok(None);
        }
        loop {
            match &self.reader {
                Some(reader) if self.row < reader.rows() => return Ok(Some(self.row)),
                Some(_) if self.chunk + 1 < self.chunks.len() => self.open(self.chunk + 1)?,
                None if self.chunks.len() > 0 => self.open(0)?,
                Some(reader) => {
                    // One past the last row, so that stepping back gives the last row.
                    self.row = reader.rows() + 1;
                    return Ok(None);
                }
                None => return Ok(None),
            }
        }
    }

    /// Goes past the row that is `upcoming`, and others behind it in the same chunk.
    pub fn pass(&mut self, rows: usize) {
        self.row += rows;
    }

    /// Writes the next row. False at the end, where the position then stays.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn next(&mut self, values: &mut [pg_sys::Datum], nulls: &mut [bool]) -> Result<bool, OutOfMemory> {
        let Some(row) = self.upcoming()? else { return Ok(false) };
        if let Some(reader) = &self.reader {
            self.decoder.fill(reader, row, values, nulls)?;
        }
        self.pass(1);
        Ok(true)
    }

    /// The columns of the rows.
    pub fn columns(&self) -> &[Column] {
        self.decoder.columns()
    }

    /// The columns' buffers in the chunk of the row that is `upcoming`.
    pub fn buffers(&self) -> &[ColumnBuffers<'static>] {
        self.reader.as_ref().map_or(&[], Reader::buffers)
    }

    /// The chunk of the row that is `upcoming`, and its number.
    pub fn chunk(&mut self) -> (usize, Chunk<'static>) {
        (self.chunk, self.current())
    }

    /// The chunk that is read now, of which there is one.
    fn current(&mut self) -> Chunk<'static> {
        // SAFETY: the bytes were written by our encoder, and chunks start at multiples of 64. Whoever reads another one
        // has been let go by `open`.
        unsafe { Chunk::new(self.chunks.get(self.chunk).unwrap_or_default()) }
    }

    /// Writes the row before the one written last. False at the beginning.
    ///
    /// # Errors
    /// As `next`.
    pub fn previous(&mut self, values: &mut [pg_sys::Datum], nulls: &mut [bool]) -> Result<bool, OutOfMemory> {
        if self.passed_all
            && let Some(last) = self.chunks.len().checked_sub(1)
        {
            self.open(last)?;
            self.row = self.reader.as_ref().map_or(0, Reader::rows) + 1;
            self.passed_all = false;
        }
        loop {
            let Some(reader) = &self.reader else { return Ok(false) };
            if self.row >= 2 {
                self.row -= 1;
                self.decoder.fill(reader, self.row - 1, values, nulls)?;
                return Ok(true);
            }
            if self.chunk == 0 {
                self.rewind();
                return Ok(false);
            }
            self.open(self.chunk - 1)?;
            self.row = self.reader.as_ref().map_or(0, Reader::rows) + 1;
        }
    }
}
