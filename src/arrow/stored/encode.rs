//! Encoding: values go from the executor's slot into the buffers of the columns, and a full set of columns
//! becomes one encoded batch.
//!
//! The memory of an encoder is bounded by one batch, whatever the size of the result. It belongs to one query of one process.

use arrow_cache_core::{OutOfMemory, Reason, RoomyVec};

use super::chunk::EncodedBatch;
use super::column::{Column, Kind};
use super::fixed_builder::FixedBuilder;
use super::last_value::LastValue;
use super::row_block::{self, RowBlock};
use super::scalar_builder::{Scalar, ScalarBuilder};
use super::variable_builder::{Representation, VariableBuilder};
use crate::arrow::ipc_message::Body;
use crate::pg::row::Row;

/// Size that a batch aims at, metadata included: above it the area's allocator keeps its pages in
/// one long list.
const TARGET_BYTES: usize = 512 * 1024;
/// Metadata and padding that a column can take in an encoded batch, at most.
const COLUMN_OVERHEAD: usize = 320;
/// Bytes of rows that fit into any batch, also one of very many columns.
const MIN_ROW_BYTES: usize = 128 * 1024;

pub use super::row_block::ROWS as BLOCK_ROWS;

/// Where a column is built.
#[derive(Clone, Copy)]
enum Place {
    Scalar(usize),
    Fixed(usize),
    Variable(usize),
}

/// Collects rows of one result into batches.
pub struct Encoder {
    scalars: Vec<ScalarBuilder>,
    fixed: Vec<FixedBuilder>,
    variable: Vec<VariableBuilder>,
    /// The places of the columns, in their order.
    order: Vec<Place>,
    /// The last rows, which are not in the columns yet.
    block: RowBlock,
    /// Ends of the variable-length values of the block, row after row. Always as long as for a full block.
    ends: Vec<u32>,
    /// Rows of the batch, the block's included.
    rows: usize,
    /// Rows that the columns have room for.
    capacity: usize,
    /// Bytes that every row takes, apart from values of variable length.
    row_size: usize,
    /// Bytes that the rows of the batch will take.
    size: usize,
    /// Bytes at which the batch is full.
    budget: usize,
    /// There was a text with a NUL in it.
    has_nul: bool,
}

impl Encoder {
    /// An encoder for rows of these columns.
    ///
    /// # Errors
    /// There is no memory for its first rows.
    pub fn new(columns: &[Column]) -> Result<Self, OutOfMemory> {
        let overhead = columns.len() * COLUMN_OVERHEAD + 1024;
        let mut encoder = Self {
            scalars: Vec::new(),
            fixed: Vec::new(),
            variable: Vec::new(),
            order: Vec::with_room(columns.len())?,
            block: RowBlock::new(columns.len())?,
            ends: Vec::new(),
            rows: 0,
            capacity: 0,
            // Even a row without columns is given a size, so that a batch of such rows becomes full.
            row_size: 1 + columns.len().div_ceil(8),
            size: 0,
            budget: TARGET_BYTES.saturating_sub(overhead).max(MIN_ROW_BYTES),
            has_nul: false,
        };
        for (index, column) in columns.iter().enumerate() {
            encoder.add_column(index, column)?;
        }
        encoder.ends.lengthen(encoder.variable.len() * row_block::ROWS, 0)?;
        Ok(encoder)
    }

    fn add_column(&mut self, index: usize, column: &Column) -> Result<(), OutOfMemory> {
        let scalar = match (column.kind, column.length) {
            (Kind::Bool, _) => Scalar::Bool,
            (Kind::Date, _) => Scalar::Date,
            (Kind::Timestamp | Kind::TimestampTz, _) => Scalar::Timestamp,
            (_, 1) => Scalar::Byte,
            (_, 2) => Scalar::Short,
            (_, 4) => Scalar::Word,
            // The server has no other lengths by value.
            _ => Scalar::Long,
        };
        let representation = match column.kind {
            Kind::Numeric => Representation::Numeric,
            Kind::Jsonb => Representation::Jsonb,
            Kind::Text => Representation::Text,
            _ if column.is_other_text() => Representation::OtherText,
            Kind::Name => Representation::TextCharacters,
            Kind::FlatCString => Representation::Characters,
            Kind::Record => Representation::Record,
            _ => Representation::Body,
        };
        let (place, size) = match usize::try_from(column.length) {
            Ok(width) if column.by_value => {
                self.scalars.add(ScalarBuilder::new(index, scalar))?;
                (Place::Scalar(self.scalars.len() - 1), width)
            }
            Ok(width) if column.kind != Kind::Name => {
                self.fixed.add(FixedBuilder::new(index, width))?;
                (Place::Fixed(self.fixed.len() - 1), width)
            }
            _ => {
                self.variable.add(VariableBuilder::new(index, representation))?;
                (Place::Variable(self.variable.len() - 1), size_of::<u32>())
            }
        };
        self.order.add(place)?;
        self.row_size += size;
        Ok(())
    }

    /// Appends one row.
    ///
    /// # Errors
    /// `UnsupportedType` for bytes that are no value of the type, `RecordType` for a record
    /// with records in it, `TooLarge` for a row of more than `limit` bytes, `OutOfMemory`. The encoder is of no further use then.
    #[inline]
    pub fn append(&mut self, row: Row<'_>, limit: usize) -> Result<(), Reason> {
        if self.rows.is_multiple_of(row_block::ROWS) {
            self.begin_block()?;
        }
        for column in &mut self.fixed {
            column.append(row, self.rows);
        }
        let mut size = self.row_size;
        let width = self.variable.len();
        let ends = &mut self.ends[self.block.rows() * width..][..width];
        for (column, end) in self.variable.iter_mut().zip(ends) {
            let place = column.append(row, limit.saturating_sub(size))?;
            *end = place.end as u32;
            size += place.len();
            self.has_nul |= column.has_nul();
        }
        self.block.push(row);
        self.rows += 1;
        self.size += size;
        if size > limit { Err(Reason::TooLarge) } else { Ok(()) }
    }

    /// The values of the row that was appended last, which must be this one.
    pub fn last_row<'a>(&'a self, row: Row<'a>) -> impl Iterator<Item = Option<LastValue<'a>>> {
        let width = self.variable.len();
        let last = self.block.rows() - 1;
        // The ends of a full block stay until those of the next one take their places, row by row.
        let before = last.checked_sub(1).or((self.rows > 1).then_some(row_block::ROWS - 1));
        self.order.iter().enumerate().map(move |(column, place)| {
            let value = row.value(column)?;
            Some(match *place {
                Place::Scalar(_) => LastValue::Word(value.word()),
                Place::Fixed(at) => self.fixed[at].value(self.rows - 1),
                Place::Variable(at) => LastValue::Among {
                    values: self.variable[at].bytes(),
                    start: before.map_or(0, |before| self.ends[before * width + at] as usize),
                    end: self.ends[last * width + at] as usize,
                },
            })
        })
    }

    /// Prepares for the first row of a block.
    #[cold]
    fn begin_block(&mut self) -> Result<(), Reason> {
        if self.rows == 0 {
            self.variable.iter_mut().for_each(VariableBuilder::clear);
        }
        self.end_block()?;
        if self.rows == self.capacity {
            self.capacity = (self.capacity * 2).max(row_block::ROWS);
            self.scalars.iter_mut().try_for_each(|column| column.grow(self.capacity))?;
            self.fixed.iter_mut().try_for_each(|column| column.grow(self.capacity))?;
            self.variable.iter_mut().try_for_each(|column| column.grow(self.capacity))?;
        }
        Ok(())
    }

    /// Moves the rows of the block into the columns.
    fn end_block(&mut self) -> Result<(), Reason> {
        let block = &self.block;
        if block.rows() == 0 {
            return Ok(());
        }
        let start = self.rows - block.rows();
        for column in &mut self.scalars {
            column.take(block, start)?;
        }
        for column in &mut self.fixed {
            column.take(block, start);
        }
        let width = self.variable.len();
        for (index, column) in self.variable.iter_mut().enumerate() {
            let ends = self.ends.chunks_exact(width).take(block.rows());
            column.take(block, start, ends.map(|row| row[index]));
        }
        self.block.clear();
        Ok(())
    }

    /// Forgets the rows appended since the last batch was taken.
    pub fn discard(&mut self) {
        self.block.clear();
        (self.rows, self.size) = (0, 0);
    }

    /// Was there a text with a NUL in it? Messages of such rows are the server's to make.
    pub fn has_nul(&self) -> bool {
        self.has_nul
    }

    /// Is it time to take a batch?
    pub fn is_full(&self) -> bool {
        self.size >= self.budget
    }

    /// Rows appended since the last batch was taken.
    pub fn pending_rows(&self) -> usize {
        self.rows
    }

    /// Bytes that they will take.
    pub fn pending_bytes(&self) -> usize {
        self.size
    }

    /// Takes the rows appended so far as one encoded batch. There must be some.
    ///
    /// # Errors
    /// `TextEncoding` when a text value is not valid UTF-8, `UnsupportedType` and `OutOfMemory` as `append`.
    pub fn take_batch(&mut self) -> Result<EncodedBatch<'_>, Reason> {
        self.end_block()?;
        let rows = std::mem::take(&mut self.rows);
        self.size = 0;
        if !self.variable.iter().all(|column| column.are_texts(rows)) {
            return Err(Reason::TextEncoding);
        }
        let mut body = Body::new(rows, self.order.len())?;
        for place in &self.order {
            match *place {
                Place::Scalar(at) => self.scalars[at].add_to(&mut body)?,
                Place::Fixed(at) => self.fixed[at].add_to(&mut body)?,
                Place::Variable(at) => self.variable[at].add_to(&mut body)?,
            }
        }
        EncodedBatch::new(body, self.scalars.iter().any(ScalarBuilder::has_unrepresentable))
    }
}
