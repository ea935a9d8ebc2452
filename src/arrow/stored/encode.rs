//! Encoding: values go from the executor's slot into the buffers of the columns, and a full set of columns becomes one
//! encoded batch.
//!
//! The memory of an encoder is bounded by one batch, whatever the size of the result. It belongs to one query of one
//! process.

use arrow_cache_core::{OutOfMemory, Reason, RoomyVec};

use super::chunk::EncodedBatch;
use super::column::{Column, Kind};
use super::ipc_message::Body;
use super::last_value::LastValue;
use super::reference_builder::{ReferenceBuilder, Representation};
use super::row_block::{self, RowBlock};
use super::scalar_builder::{Scalar, ScalarBuilder};
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
    Reference(usize),
}

/// Collects rows of one result into batches.
pub struct Encoder {
    scalars: Vec<ScalarBuilder>,
    references: Vec<ReferenceBuilder>,
    /// The places of the columns, in their order.
    order: Vec<Place>,
    /// The last rows, which are not in the columns yet.
    block: RowBlock,
    /// Ends of the values of the block that are passed by reference, row after row. Always as long as for a full block.
    ends: Vec<u32>,
    /// Rows of the batch, the block's included.
    rows: usize,
    /// Rows that the columns have room for.
    capacity: usize,
    /// Bytes that every row takes, apart from values that are passed by reference.
    row_size: usize,
    /// Bytes that the rows of the batch will take.
    size: usize,
    /// Bytes at which the batch is full.
    budget: usize,
    /// Why the rows may not be stored.
    unfit: Option<Reason>,
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
            references: Vec::new(),
            order: Vec::with_room(columns.len())?,
            block: RowBlock::new(columns.len())?,
            ends: Vec::new(),
            rows: 0,
            capacity: 0,
            // Even a row without columns is given a size, so that a batch of such rows becomes full.
            row_size: 1 + columns.len().div_ceil(8),
            size: 0,
            budget: TARGET_BYTES.saturating_sub(overhead).max(MIN_ROW_BYTES),
            unfit: None,
        };
        for (index, column) in columns.iter().enumerate() {
            encoder.add_column(index, column)?;
        }
        encoder.ends.lengthen(encoder.references.len() * row_block::ROWS, 0)?;
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
            Kind::Text => Representation::Text,
            _ if column.is_other_text() => Representation::OtherText,
            Kind::Name => Representation::TextCharacters,
            Kind::FlatCString => Representation::Characters,
            _ => usize::try_from(column.length).map_or(Representation::Body, Representation::Fixed),
        };
        let (place, size) = match usize::try_from(column.length) {
            Ok(width) if column.by_value => {
                self.scalars.add(ScalarBuilder::new(index, scalar))?;
                (Place::Scalar(self.scalars.len() - 1), width)
            }
            _ => {
                self.references.add(ReferenceBuilder::new(index, representation))?;
                (Place::Reference(self.references.len() - 1), size_of::<u32>())
            }
        };
        self.order.add(place)?;
        self.row_size += size;
        Ok(())
    }

    /// Appends one row.
    ///
    /// # Errors
    /// `UnsupportedType` for bytes that are no value of the type, `TooLarge` for a row of more than `limit` bytes,
    /// `OutOfMemory`. The encoder is of no further use then.
    #[inline]
    pub fn append(&mut self, row: Row<'_>, limit: usize) -> Result<(), Reason> {
        if self.rows.is_multiple_of(row_block::ROWS) {
            self.begin_block()?;
        }
        let mut size = self.row_size;
        let width = self.references.len();
        let ends = &mut self.ends[self.block.rows() * width..][..width];
        for (column, end) in self.references.iter_mut().zip(ends) {
            let place = column.append(row, limit.saturating_sub(size))?;
            *end = place.end as u32;
            size += place.len();
            self.unfit = self.unfit.or(column.unfit());
        }
        self.block.push(row);
        self.rows += 1;
        self.size += size;
        if size > limit { Err(Reason::TooLarge) } else { Ok(()) }
    }

    /// The values of the row that was appended last, which must be this one.
    pub fn last_row<'a>(&'a self, row: Row<'a>) -> impl Iterator<Item = Option<LastValue<'a>>> {
        let width = self.references.len();
        let last = self.block.rows() - 1;
        // The ends of a full block stay until those of the next one take their places, row by row.
        let before = last.checked_sub(1).or((self.rows > 1).then_some(row_block::ROWS - 1));
        self.order.iter().enumerate().map(move |(column, place)| {
            let value = row.value(column)?;
            Some(match *place {
                Place::Scalar(_) => LastValue::Word(value.word()),
                Place::Reference(at) => LastValue::Among {
                    values: self.references[at].bytes(),
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
            self.references.iter_mut().for_each(ReferenceBuilder::clear);
        }
        self.end_block()?;
        if self.rows == self.capacity {
            self.capacity = (self.capacity * 2).max(row_block::ROWS);
            self.scalars.iter_mut().try_for_each(|column| column.grow(self.capacity))?;
            self.references.iter_mut().try_for_each(|column| column.grow(self.capacity))?;
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
        let width = self.references.len();
        for (index, column) in self.references.iter_mut().enumerate() {
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

    /// Why the rows may not be stored, although they can be encoded. Messages of such rows are the server's to make.
    pub fn unfit(&self) -> Option<Reason> {
        self.unfit
    }

    /// Returns true if it is time to take a batch.
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
        if !self.references.iter().all(|column| column.are_texts(rows)) {
            return Err(Reason::TextEncoding);
        }
        let mut body = Body::new(rows, self.order.len())?;
        for place in &self.order {
            match *place {
                Place::Scalar(at) => self.scalars[at].add_to(&mut body)?,
                Place::Reference(at) => self.references[at].add_to(&mut body)?,
            }
        }
        EncodedBatch::new(body, self.scalars.iter().any(ScalarBuilder::has_unrepresentable))
    }
}
