//! One stored column on its way to a client: its buffers, and its values as the server has them. Belongs to one
//! conversion.

use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;

use arrow_buffer::Buffer;
use arrow_buffer::alloc::Allocation;
use arrow_cache_core::formats::column_buffers::ColumnBuffers;
use arrow_cache_core::{OutOfMemory, Reason, RoomyVec, Unrepresentable, Why};
use pgrx::pg_sys;

use crate::arrow::chunk::Chunk;
use crate::arrow::column::Column;
use crate::arrow::decode::{Decoder, Reader};
use crate::pg::memory_context::context_below;
use crate::pg::row::{Row, Value};

/// Why a column cannot be delivered.
pub enum Problem {
    /// The value in this row, counted from 0.
    Value(usize, Unrepresentable),
    /// Something else.
    Result(Reason),
}

impl From<OutOfMemory> for Problem {
    fn from(_: OutOfMemory) -> Self {
        Self::Result(Reason::OutOfMemory)
    }
}

impl From<Reason> for Problem {
    fn from(reason: Reason) -> Self {
        Self::Result(reason)
    }
}

/// One column of a chunk.
pub struct StoredColumn<'a> {
    /// What it holds.
    pub column: Column,
    /// Reads it as its only column.
    reader: Reader<'a>,
    /// Returns true if the chunk has timestamps that Arrow would misread.
    pub has_unrepresentable: bool,
    /// Keeps the chunk in its place for arrays that lie on it.
    owner: Arc<dyn Allocation>,
}

impl<'a> StoredColumn<'a> {
    /// A column of a chunk, whose columns these are.
    ///
    /// # Errors
    /// There is no memory for it.
    ///
    /// # Safety
    /// The owner must keep the chunk in its place as long as it lives, or the arrays that are made of the column go
    /// before the chunk.
    pub unsafe fn of(
        columns: &[Column],
        index: usize,
        chunk: Chunk<'a>,
        owner: Arc<dyn Allocation>,
    ) -> Result<Self, OutOfMemory> {
        let reader = Reader::of_some(columns, &[index], chunk)?;
        Ok(Self { column: columns[index], reader, has_unrepresentable: chunk.has_unrepresentable(), owner })
    }

    /// Its buffers.
    pub fn buffers(&self) -> ColumnBuffers<'a> {
        self.reader.buffers_of(0)
    }

    /// Some of its bytes as a buffer of an array, which lies on them.
    pub fn buffer(&self, bytes: &'a [u8]) -> Buffer {
        if bytes.is_empty() {
            return Buffer::default();
        }
        // SAFETY: the bytes are those of the chunk, which `of` was promised to stay.
        unsafe { Buffer::from_custom_allocation(NonNull::from(bytes).cast(), bytes.len(), Arc::clone(&self.owner)) }
    }
}

/// A column's values, and the memory context that each is used in.
pub struct Decoded<'s, 'a> {
    stored: &'s StoredColumn<'a>,
    decoder: Decoder,
    scratch: pg_sys::MemoryContext,
}

impl<'s, 'a> Decoded<'s, 'a> {
    /// The values of a column. The current memory context must outlive them.
    pub fn new(stored: &'s StoredColumn<'a>) -> Self {
        Self { stored, decoder: Decoder::new(Rc::new([stored.column])), scratch: context() }
    }

    /// Does something with the value in a row, which is not NULL. What that leaves in the current memory context is
    /// freed behind it.
    ///
    /// # Errors
    /// Those of `code`; there is no memory for the value.
    #[inline]
    pub fn with<E: From<OutOfMemory>>(
        &mut self,
        row: usize,
        code: impl FnOnce(Value<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut value, mut is_null) = ([pg_sys::Datum::from(0)], [false]);
        // SAFETY: the context was made for this, and `code` leaves nothing behind that points into it. The decoder's
        // value is one of the column, and lives until the decoder makes the next.
        unsafe {
            let caller = pg_sys::MemoryContextSwitchTo(self.scratch);
            let filled = self.decoder.fill(&self.stored.reader, row, &mut value, &mut is_null);
            let result =
                filled.map_err(E::from).and_then(|()| Row::new(&value, &is_null).value(0).map_or(Ok(()), code));
            pg_sys::MemoryContextSwitchTo(caller);
            if !(*self.scratch).isReset {
                kept!(pg_sys::MemoryContextReset(self.scratch));
            }
            result
        }
    }
}

/// A memory context below the current one.
fn context() -> pg_sys::MemoryContext {
    // SAFETY: the current memory context is a live one.
    unsafe { context_below(pg_sys::CurrentMemoryContext, c"pg_arrow_cache delivery") }
}

/// Runs code whose allocations from PostgreSQL are of no use afterwards. After an error they go with the current
/// context.
pub fn in_context_of_its_own<T>(code: impl FnOnce() -> T) -> T {
    let context = context();
    // SAFETY: the context was just made, and `code` leaves nothing behind that points into it.
    unsafe {
        let caller = pg_sys::MemoryContextSwitchTo(context);
        let result = code();
        pg_sys::MemoryContextSwitchTo(caller);
        kept!(pg_sys::MemoryContextDelete(context));
        result
    }
}

/// Where values of varying length end, behind a zero.
pub struct Ends(Vec<u8>);

impl Ends {
    /// With room for that many values.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(rows: usize) -> Result<Self, OutOfMemory> {
        let mut ends = Vec::with_room((rows + 1) * size_of::<i32>())?;
        ends.add_all(&0i32.to_le_bytes())?;
        Ok(Self(ends))
    }

    /// The value in this row ends here.
    ///
    /// # Errors
    /// `TooLarge` beyond what Arrow counts, and if there is no memory.
    pub fn add(&mut self, row: usize, end: usize) -> Result<(), Problem> {
        let end = i32::try_from(end).map_err(|_| Problem::Value(row, Unrepresentable::new(Why::TooLarge, b"")))?;
        Ok(self.0.add_all(&end.to_le_bytes())?)
    }

    /// The row of a value that the part of this number belongs to, if these are the ends of the parts.
    pub fn row_of(&self, part: usize) -> usize {
        let (ends, _) = self.0.as_chunks();
        ends.partition_point(|end| i32::from_le_bytes(*end) as usize <= part) - 1
    }

    /// The bytes as Arrow has them.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// As a buffer of an array.
    pub fn into_buffer(self) -> Buffer {
        Buffer::from_vec(self.0)
    }
}
