//! Decoding: stored chunks become the values of a slot again.
//!
//! Values are rebuilt as PostgreSQL passes them in memory, not as text, so that the reader's own settings determine the
//! output. By-reference values are laid out in a scratch buffer that holds one row. They live until the next row is
//! filled, as in the executor's own slots.

use std::rc::Rc;

use arrow_cache_core::formats::column_buffers::ColumnBuffers;
use arrow_cache_core::formats::{epoch, numeric};
use arrow_cache_core::{OutOfMemory, Room, RoomyVec};
use pgrx::pg_sys;

use super::chunk::Chunk;
use super::column::{Column, Kind};
use crate::pg::varlena;

/// Alignment of by-reference values: the largest PostgreSQL type alignment.
const ALIGNMENT: usize = 8;

/// Fills rows of one result, chunk by chunk.
pub struct Decoder {
    columns: Rc<[Column]>,
    scratch: Vec<u64>,
    /// Reused for the body of numerics.
    number: Vec<u8>,
}

/// The chunk that a decoder reads from at present.
pub struct Reader<'a> {
    columns: Vec<ColumnBuffers<'a>>,
    rows: usize,
}

impl<'a> Reader<'a> {
    /// Finds the columns of a chunk.
    ///
    /// # Errors
    /// There is no memory for their places.
    pub fn new(columns: &[Column], chunk: Chunk<'a>) -> Result<Self, OutOfMemory> {
        Ok(Self { columns: Vec::collected(buffers(columns, chunk))?, rows: chunk.rows() })
    }

    /// Finds some of the columns of a chunk, ascending; they are columns 0, 1, … of the reader.
    ///
    /// # Errors
    /// As `new`.
    pub fn of_some(columns: &[Column], wanted: &[usize], chunk: Chunk<'a>) -> Result<Self, OutOfMemory> {
        let mut chosen = Vec::with_room(wanted.len())?;
        for (index, buffers) in buffers(columns, chunk).enumerate() {
            if wanted.get(chosen.len()) == Some(&index) {
                chosen.add(buffers)?;
            }
        }
        Ok(Self { columns: chosen, rows: chunk.rows() })
    }

    /// The columns' buffers.
    pub fn buffers(&self) -> &[ColumnBuffers<'a>] {
        &self.columns
    }

    /// The buffers of a column.
    pub fn buffers_of(&self, column: usize) -> ColumnBuffers<'a> {
        self.columns[column]
    }

    /// Rows in the chunk.
    pub fn rows(&self) -> usize {
        self.rows
    }
}

/// Where the columns of a chunk are.
fn buffers<'a>(columns: &[Column], chunk: Chunk<'a>) -> impl ExactSizeIterator<Item = ColumnBuffers<'a>> {
    let mut next = 0;
    columns.iter().map(move |column| {
        let mut buffer = || {
            next += 1;
            chunk.buffer(next - 1)
        };
        ColumnBuffers {
            validity: buffer(),
            offsets: if is_variable(column.kind) { buffer() } else { &[] },
            values: buffer(),
        }
    })
}

fn is_variable(kind: Kind) -> bool {
    matches!(kind, Kind::Numeric | Kind::Text | Kind::Name | Kind::Bytea | Kind::FlatVarlena | Kind::FlatCString)
}

impl Decoder {
    /// A decoder for rows of these columns.
    pub fn new(columns: Rc<[Column]>) -> Self {
        Self { columns, scratch: Vec::new(), number: Vec::new() }
    }

    /// The columns this decoder was made for.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Fills `values` and `nulls` with row number `row` of the reader's chunk. By-reference values live until the next
    /// call, or as long as the current memory context.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn fill(
        &mut self,
        reader: &Reader<'_>,
        row: usize,
        values: &mut [pg_sys::Datum],
        nulls: &mut [bool],
    ) -> Result<(), OutOfMemory> {
        let needed = self.scratch_bytes(reader, row)?.div_ceil(ALIGNMENT);
        if self.scratch.len() < needed {
            // The values in it are no longer needed.
            self.scratch.clear();
            self.scratch.make_room(needed)?;
            self.scratch.lengthen(self.scratch.capacity(), 0)?;
        }
        let mut used = 0;
        for (index, buffers) in reader.columns.iter().enumerate() {
            nulls[index] = buffers.is_null(row);
            values[index] = if nulls[index] {
                pg_sys::Datum::from(0)
            } else {
                let column = self.columns[index];
                self.value(&column, buffers, row, &mut used)?
            };
        }
        Ok(())
    }

    /// Bytes of scratch that a row needs at most.
    fn scratch_bytes(&mut self, reader: &Reader<'_>, row: usize) -> Result<usize, OutOfMemory> {
        let mut total = 0;
        for (column, buffers) in self.columns.iter().zip(&reader.columns) {
            total += match column.kind {
                Kind::Uuid => 16,
                Kind::Name => pg_sys::NAMEDATALEN as usize,
                Kind::FlatFixed if !column.by_value => column.length as usize + ALIGNMENT,
                // A numeric's body is shorter than its text, apart from a few bytes of header.
                Kind::Numeric => {
                    self.number.clear();
                    self.number.make_room(numeric::body_bound(buffers.bytes(row)))?;
                    buffers.bytes(row).len() + 4 * ALIGNMENT
                }
                kind if is_variable(kind) => buffers.bytes(row).len() + 2 * ALIGNMENT,
                _ => 0,
            };
        }
        Ok(total)
    }

    fn value(
        &mut self,
        column: &Column,
        buffers: &ColumnBuffers<'_>,
        row: usize,
        used: &mut usize,
    ) -> Result<pg_sys::Datum, OutOfMemory> {
        Ok(match column.kind {
            Kind::Bool => pg_sys::Datum::from(buffers.truth(row)),
            Kind::Int16 => pg_sys::Datum::from(i16::from_le_bytes(buffers.fixed(row))),
            // As fetch_att reads it from a tuple: the datum's upper half says nothing.
            Kind::Int32 | Kind::UInt32 => pg_sys::Datum::from(i32::from_le_bytes(buffers.fixed(row))),
            Kind::Int64 | Kind::UInt64 | Kind::Time => pg_sys::Datum::from(i64::from_le_bytes(buffers.fixed(row))),
            Kind::Float32 => pg_sys::Datum::from(i32::from_le_bytes(buffers.fixed(row))),
            Kind::Float64 => pg_sys::Datum::from(i64::from_le_bytes(buffers.fixed(row))),
            Kind::Date => {
                let days = i32::from_le_bytes(buffers.fixed(row));
                pg_sys::Datum::from(epoch::date_from_arrow(days))
            }
            Kind::Timestamp | Kind::TimestampTz => {
                let micros = i64::from_le_bytes(buffers.fixed(row));
                pg_sys::Datum::from(epoch::timestamp_from_arrow(micros))
            }
            Kind::Uuid => self.place(used, 0, &buffers.fixed::<16>(row), 0),
            Kind::FlatFixed => {
                let length = column.length as usize;
                let bytes = &buffers.values[row * length..(row + 1) * length];
                if column.by_value { by_value(bytes) } else { self.place(used, 0, bytes, 0) }
            }
            Kind::Name => {
                let bytes = buffers.bytes(row);
                let padding = (pg_sys::NAMEDATALEN as usize).saturating_sub(bytes.len());
                self.place(used, 0, bytes, padding)
            }
            Kind::FlatCString => self.place(used, 0, buffers.bytes(row), 1),
            Kind::Numeric => {
                self.number.clear();
                // The text was made by numeric's own rules, so it always reads back.
                let parsed = numeric::from_text(buffers.bytes(row), &mut self.number);
                debug_assert!(parsed);
                let number = std::mem::take(&mut self.number);
                let datum = self.place(used, varlena::header(number.len()), &number, 0);
                self.number = number;
                datum
            }
            Kind::Text | Kind::Bytea | Kind::FlatVarlena => {
                let bytes = buffers.bytes(row);
                self.place(used, varlena::header(bytes.len()), bytes, 0)
            }
        })
    }

    /// Copies a by-reference value into the scratch row: a varlena header unless it is 0, the
    /// bytes, then zeroes.
    fn place(&mut self, used: &mut usize, header: u32, bytes: &[u8], zeroes: usize) -> pg_sys::Datum {
        let prefix = if header == 0 { 0 } else { varlena::HEADER };
        let length = prefix + bytes.len() + zeroes;
        let start = *used;
        *used = (start + length).next_multiple_of(ALIGNMENT);
        assert!(*used <= self.scratch.len() * ALIGNMENT, "row larger than its scratch");
        // SAFETY: `start..start + length` lies in the scratch buffer, as asserted, and nobody else
        // writes it. The buffer is not resized while the row is in use.
        unsafe {
            let target = self.scratch.as_mut_ptr().cast::<u8>().add(start);
            if prefix > 0 {
                target.cast::<u32>().write_unaligned(header);
            }
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), target.add(prefix), bytes.len());
            std::ptr::write_bytes(target.add(prefix + bytes.len()), 0, zeroes);
            pg_sys::Datum::from(target.cast::<std::ffi::c_void>())
        }
    }
}

/// A by-value datum from its bytes, widened as fetch_att does.
fn by_value(bytes: &[u8]) -> pg_sys::Datum {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let unused = 8 * (word.len() - bytes.len());
    pg_sys::Datum::from(i64::from_le_bytes(word) << unused >> unused)
}
