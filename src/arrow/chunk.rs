//! One stored batch: a header of ours, a directory of its buffers, and the encapsulated Arrow IPC
//! message (prefix, metadata, body) exactly as it goes out to a client.
//!
//! ```text
//! offset 0    ChunkHeader
//!        32   directory: one (offset, length) pair per Arrow buffer, offsets from the chunk's start
//!        *    IPC message, starting at a multiple of 64; its body starts at a multiple of 64 too
//! ```
//!
//! The directory makes a hit free of flatbuffer parsing: readers take column addresses from it.
//! They trust it without validation, because only `EncodedBatch::write_to` ever writes chunks.

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_cache_core::Reason;
use arrow_ipc::root_as_message;
use arrow_ipc::writer::{DictionaryTracker, EncodedData, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow_schema::{Field, Schema};
use std::sync::Arc;

/// Alignment of messages and bodies.
const ALIGNMENT: usize = 64;
/// Prefix of an encapsulated message: continuation marker and metadata length.
const PREFIX: usize = 8;
/// Bytes of the header in front of the directory.
const HEADER: usize = 32;

#[repr(C)]
#[derive(Clone, Copy)]
struct ChunkHeader {
    rows: u32,
    buffers: u32,
    message: u32,
    message_length: u32,
    reserved: [u32; 4],
}

const _: () = assert!(std::mem::size_of::<ChunkHeader>() == HEADER);

/// Where one Arrow buffer lies in its chunk. A column without NULLs has a validity bitmap of length
/// 0.
#[repr(C)]
#[derive(Clone, Copy)]
struct BufferPlace {
    offset: u32,
    length: u32,
}

/// A batch that is encoded but not written yet.
pub struct EncodedBatch {
    header: ChunkHeader,
    directory: Vec<BufferPlace>,
    encoded: EncodedData,
    padded_metadata: usize,
}

impl EncodedBatch {
    /// Encodes the columns of `rows` rows.
    ///
    /// # Errors
    /// `UnsupportedType` when Arrow refuses the batch, `TooLarge` past 4 GB.
    pub fn new(columns: Vec<ArrayRef>, rows: usize) -> Result<Self, Reason> {
        let fields: Vec<Field> =
            columns.iter().map(|column| Field::new("", column.data_type().clone(), true)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::new(Schema::new(fields));
        let batch =
            RecordBatch::try_new_with_options(schema, columns, &options).map_err(|_| Reason::UnsupportedType)?;
        let encoded = encode(&batch)?;
        let message = root_as_message(&encoded.ipc_message).map_err(|_| Reason::UnsupportedType)?;
        let buffers = message
            .header_as_record_batch()
            .and_then(|batch| batch.buffers())
            .map(|buffers| buffers.iter().map(|b| (b.offset(), b.length())).collect::<Vec<_>>())
            .unwrap_or_default();

        let padded_metadata = (PREFIX + encoded.ipc_message.len()).next_multiple_of(ALIGNMENT) - PREFIX;
        let directory_end = HEADER + buffers.len() * std::mem::size_of::<BufferPlace>();
        let message_start = directory_end.next_multiple_of(ALIGNMENT);
        let body = message_start + PREFIX + padded_metadata;
        let message_length = PREFIX + padded_metadata + encoded.arrow_data.len();
        if message_start + message_length > u32::MAX as usize {
            return Err(Reason::TooLarge);
        }
        let directory = buffers
            .into_iter()
            .map(|(offset, length)| BufferPlace { offset: (body + offset as usize) as u32, length: length as u32 })
            .collect::<Vec<_>>();
        let header = ChunkHeader {
            rows: rows as u32,
            buffers: directory.len() as u32,
            message: message_start as u32,
            message_length: message_length as u32,
            reserved: [0; 4],
        };
        Ok(Self { header, directory, encoded, padded_metadata })
    }

    /// Bytes that `write_to` needs.
    pub fn len(&self) -> usize {
        (self.header.message + self.header.message_length) as usize
    }

    /// Writes the chunk; `out` must be `len()` bytes long.
    pub fn write_to(&self, out: &mut [u8]) {
        let (head, message) = out.split_at_mut(self.header.message as usize);
        head.fill(0);
        let words = [self.header.rows, self.header.buffers, self.header.message, self.header.message_length];
        for (place, word) in head.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        for (place, buffer) in head[HEADER..].chunks_exact_mut(8).zip(&self.directory) {
            place[..4].copy_from_slice(&buffer.offset.to_le_bytes());
            place[4..].copy_from_slice(&buffer.length.to_le_bytes());
        }
        message[..4].copy_from_slice(&[0xFF; 4]);
        message[4..8].copy_from_slice(&(self.padded_metadata as u32).to_le_bytes());
        let metadata = &self.encoded.ipc_message;
        let body = PREFIX + self.padded_metadata;
        message[PREFIX..PREFIX + metadata.len()].copy_from_slice(metadata);
        message[PREFIX + metadata.len()..body].fill(0);
        message[body..].copy_from_slice(&self.encoded.arrow_data);
    }

    /// The chunk as bytes of its own.
    pub fn into_bytes(self) -> ChunkBytes {
        let mut bytes = ChunkBytes::new(self.len());
        self.write_to(bytes.as_mut_slice());
        bytes
    }
}

fn encode(batch: &RecordBatch) -> Result<EncodedData, Reason> {
    let mut dictionaries = DictionaryTracker::new(false);
    let options = IpcWriteOptions::default();
    let mut context = IpcWriteContext::default();
    let (_, encoded) = IpcDataGenerator::default()
        .encode(batch, &mut dictionaries, &options, &mut context)
        .map_err(|_| Reason::UnsupportedType)?;
    Ok(encoded)
}

/// A chunk in this backend's own memory, aligned like one in the cache.
pub struct ChunkBytes {
    blocks: Vec<Block>,
    length: usize,
}

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Block([u8; ALIGNMENT]);

impl ChunkBytes {
    fn new(length: usize) -> Self {
        Self { blocks: vec![Block([0; ALIGNMENT]); length.div_ceil(ALIGNMENT)], length }
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: blocks are contiguous plain bytes and at least `length` of them.
        unsafe { std::slice::from_raw_parts(self.blocks.as_ptr().cast(), self.length) }
    }

    fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.blocks.as_mut_ptr().cast(), self.length) }
    }
}

/// A written chunk, read in place.
#[derive(Clone, Copy)]
pub struct Chunk<'a> {
    bytes: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// Reads a chunk.
    ///
    /// # Safety
    /// `bytes` must have been written by `EncodedBatch::write_to`: nothing in them is checked
    /// again. They must start at a multiple of 64.
    pub unsafe fn new(bytes: &'a [u8]) -> Self {
        debug_assert!((bytes.as_ptr() as usize).is_multiple_of(ALIGNMENT));
        Self { bytes }
    }

    fn word(&self, index: usize) -> u32 {
        let start = index * 4;
        u32::from_le_bytes([self.bytes[start], self.bytes[start + 1], self.bytes[start + 2], self.bytes[start + 3]])
    }

    /// Rows in the batch.
    pub fn rows(&self) -> usize {
        self.word(0) as usize
    }

    /// The encapsulated IPC message.
    pub fn message(&self) -> &'a [u8] {
        let start = self.word(2) as usize;
        &self.bytes[start..start + self.word(3) as usize]
    }

    /// The bytes of Arrow buffer number `index`, in the order of the IPC format.
    pub fn buffer(&self, index: usize) -> &'a [u8] {
        let place = HEADER / 4 + index * 2;
        let start = self.word(place) as usize;
        &self.bytes[start..start + self.word(place + 1) as usize]
    }
}
