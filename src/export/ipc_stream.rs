//! A result as messages of an Arrow IPC stream, as the options of the export ask for. Whole batches that go out as they
//! are stored are passed on untouched; all others are made anew, one batch at a time.

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_cache_core::{Compression, ExportOptions, Hash128, HashBuffer, OutOfMemory, RoomyVec};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{IpcWriteOptions, StreamEncoder};
use arrow_schema::SchemaRef;

use crate::arrow::chunk::Chunk;
use crate::arrow::column::{Column, is_utf8};
use crate::arrow::delivery::deliver::Delivery;
use crate::arrow::delivery::schema::headroom_of;
use crate::error::or_raise;
use crate::pg::allocator::headroom;
use crate::pg::error_passing::caught;
use crate::pg::row_type::RowType;

/// Bytes of the largest value that PostgreSQL can allocate (MaxAllocSize).
pub const LARGEST_BYTEA: usize = 0x3fff_ffff;

/// End of an IPC stream: continuation marker and a metadata length of 0.
pub const END_OF_STREAM: [u8; 8] = [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0];

/// Takes the messages of a stream, each as the parts that make it up.
pub trait Output {
    /// Tells, before anything else, about how many bytes there will be, if that is known.
    fn expect(&mut self, _bytes: usize) {}
    /// The schema, which comes first.
    fn schema(&mut self, message: &[u8]);
    /// A batch with that many rows.
    fn batch(&mut self, rows: usize, parts: &[&[u8]]);
    /// All has been sent.
    fn end(&mut self) {}
    /// Should more be made at once? If not, the export pauses after the batch.
    fn wants_more(&self) -> bool {
        true
    }
}

/// Makes the messages of one result.
pub struct Stream {
    delivery: Delivery,
    /// Rows that may still be delivered.
    left: u64,
    /// Rows that have been delivered.
    delivered: u64,
    batch_rows: usize,
    /// True if whole batches go out as they are stored.
    verbatim: bool,
    /// Makes messages of the others, once there are some.
    encoder: Option<StreamEncoder>,
    compression: Compression,
}

impl Stream {
    /// Prepares the delivery of rows of this type, which has these columns.
    ///
    /// Raises what the user can correct: a column that is not there, a type that the options cannot deliver.
    pub fn new(row_type: RowType<'_>, columns: &[Column], options: &ExportOptions) -> Self {
        let delivery = Delivery::new(row_type, columns, options).unwrap_or_else(|error| error.raise());
        Self {
            left: options.limit.unwrap_or(u64::MAX),
            delivered: 0,
            batch_rows: options.batch_rows.unwrap_or(usize::MAX),
            verbatim: delivery.is_verbatim() && options.compression == Compression::None,
            encoder: None,
            compression: options.compression,
            delivery,
        }
    }

    /// The key under which the messages of an entry with so many rows may be kept beside it: all that decides on their
    /// bytes. `None` if they need little work, or are not all of the entry, or if something else decides, too.
    pub fn rendition_key(&self, rows: u64) -> Option<Hash128> {
        let is_worth_it = self.compression != Compression::None || !self.delivery.converts_nothing();
        if !is_worth_it || rows == 0 || self.left < rows || !is_utf8() {
            return None;
        }
        let mut facts = HashBuffer::new();
        // Keys of messages for clients begin with the number of an encoding, which this is not.
        facts.u32(u32::MAX);
        facts.u8(self.compression as u8);
        facts.u64(self.batch_rows as u64);
        self.delivery.add_facts(&mut facts).then(|| facts.finish())
    }

    /// Delivers a batch of a stored answer by the messages that were made of it before.
    pub fn made_before(
        &mut self,
        chunk: Chunk<'_>,
        messages: &mut impl Iterator<Item = &'static [u8]>,
        output: &mut impl Output,
    ) {
        let mut rows = chunk.rows();
        self.delivered += rows as u64;
        self.left -= rows as u64;
        while rows > 0 {
            let length = self.batch_rows.min(rows);
            let Some(message) = messages.next() else { unreachable!("a rendition has a message for each batch") };
            output.batch(length, &[message]);
            rows -= length;
        }
    }

    /// How many messages are made of a batch.
    pub fn messages_of(&self, chunk: Chunk<'_>) -> usize {
        chunk.rows().div_ceil(self.batch_rows)
    }

    /// The schema message.
    pub fn schema(&self) -> Vec<u8> {
        or_raise(self.delivery.schema_message())
    }

    /// Columns that are delivered.
    pub fn columns(&self) -> usize {
        self.delivery.schema().fields().len()
    }

    /// Rows that have been delivered.
    pub fn rows(&self) -> u64 {
        self.delivered
    }

    /// Rows that may still be delivered; the largest number if no limit was asked for.
    pub fn rows_left(&self) -> u64 {
        self.left
    }

    /// Delivers a batch, or as much of it as may be delivered. Raises on a value that cannot be delivered.
    pub fn batch(&mut self, chunk: Chunk<'_>, output: &mut impl Output) {
        let rows = usize::try_from(self.left).unwrap_or(usize::MAX).min(chunk.rows());
        if rows == 0 {
            return;
        }
        let before = self.delivered;
        self.delivered += rows as u64;
        self.left -= rows as u64;
        let is_whole = rows == chunk.rows() && rows <= self.batch_rows;
        if self.verbatim && is_whole && !chunk.has_unrepresentable() {
            return output.batch(rows, &[chunk.message()]);
        }
        // SAFETY: the batch ends here.
        let batch = unsafe { self.delivery.batch(chunk, rows, before) }.unwrap_or_else(|error| error.raise());
        let mut start = 0;
        while start < rows {
            let length = self.batch_rows.min(rows - start);
            or_raise(self.send(&batch.slice(start, length), output));
            start += length;
        }
    }

    /// Sends a batch as a message of its own.
    fn send(&mut self, batch: &RecordBatch, output: &mut impl Output) -> Result<(), OutOfMemory> {
        let _of_fields = headroom_of(&self.delivery.schema())?;
        let _of_values = headroom(bytes_of_values(self.compression, batch.get_array_memory_size()))?;
        let encoder = match &mut self.encoder {
            Some(encoder) => encoder,
            none => none.insert(encoder(&self.delivery.schema(), self.compression)?),
        };
        let message = message(encoder, batch)?;
        output.batch(batch.num_rows(), &Vec::collected(message.iter().map(Buffer::as_slice))?);
        Ok(())
    }
}

/// Makes messages of batches. The message of the schema, which it would put before the first one, is sent by `schema`.
fn encoder(schema: &SchemaRef, compression: Compression) -> Result<StreamEncoder, OutOfMemory> {
    let kind = match compression {
        Compression::None => None,
        Compression::Lz4 => Some(CompressionType::LZ4_FRAME),
        Compression::Zstd => Some(CompressionType::ZSTD),
    };
    let options = IpcWriteOptions::default().try_with_compression(kind);
    let encoder = options.and_then(|options| StreamEncoder::try_new_with_options(schema, options));
    // All schemas that are delivered are supported.
    let mut encoder = encoder.map_err(|_| OutOfMemory)?;
    message(&mut encoder, &RecordBatch::new_empty(schema.clone()))?;
    Ok(encoder)
}

/// The message of a batch. Nothing but memory can be missing: without any for its context, zstd ends in a panic.
fn message(encoder: &mut StreamEncoder, batch: &RecordBatch) -> Result<Vec<Buffer>, OutOfMemory> {
    caught(|| encoder.encode(batch)).map_err(|_| OutOfMemory)?.map_err(|_| OutOfMemory)
}

/// Bytes that the message of a batch of this size takes at most, besides its fields.
fn bytes_of_values(compression: Compression, size: usize) -> usize {
    // Ends and bits of slices are copied. What is compressed grows by doubling, beside a copy.
    match compression {
        Compression::None => size,
        Compression::Zstd => ZSTD_BYTES + 4 * size,
        Compression::Lz4 => 2 * lz4_block(size) + lz4_block(size) / 8 + LZ4_BYTES + 4 * size,
    }
}

/// Bytes that zstd takes at most besides its output and the context, which it asks the system for.
const ZSTD_BYTES: usize = 256 * 1024;

/// Bytes of the tables of LZ4.
const LZ4_BYTES: usize = 64 * 1024;

/// Bytes of a block of LZ4, if no buffer has more than `size`. A frame has one block of input, and one of output that
/// is a tenth larger.
fn lz4_block(size: usize) -> usize {
    const BLOCKS: [usize; 2] = [64 * 1024, 256 * 1024];
    BLOCKS.into_iter().find(|block| size <= *block).unwrap_or(4 * 1024 * 1024)
}
