//! The layout of a stored batch, a chunk: a header of ours, a directory of its buffers, and the encapsulated Arrow IPC
//! message (prefix, metadata, body) exactly as it goes out to a client. A chunk is written once and then only read.
//!
//! ```text
//! offset 0    ChunkHeader
//!        32   directory: one (offset, length) pair per Arrow buffer, offsets from the chunk's start
//!        *    IPC message, starting at a multiple of 64; its body starts at a multiple of 64 too
//! ```
//!
//! Readers take the places of the columns from the directory, so a hit parses no flatbuffer.
//! They trust it without validation, because only `EncodedBatch::write_to` writes chunks.

use arrow_cache_core::{OutOfMemory, Reason, RoomyVec};

use super::ipc_message::{ALIGNMENT, Body, head};

/// Bytes of the header in front of the directory.
const HEADER: usize = 32;

#[repr(C)]
#[derive(Clone, Copy)]
struct ChunkHeader {
    rows: u32,
    buffers: u32,
    message: u32,
    message_length: u32,
    flags: u32,
    reserved: [u32; 3],
}

/// Flag of a chunk with a timestamp that Arrow would misread.
const UNREPRESENTABLE: u32 = 1;

const _: () = assert!(std::mem::size_of::<ChunkHeader>() == HEADER);

/// Where one Arrow buffer lies in its chunk. The validity bitmap of a column without NULLs has no
/// bytes.
#[repr(C)]
#[derive(Clone, Copy)]
struct BufferPlace {
    offset: u32,
    length: u32,
}

/// A batch that is encoded but not written yet.
pub struct EncodedBatch<'a> {
    header: ChunkHeader,
    directory: Vec<BufferPlace>,
    /// What comes in front of the body.
    head: Vec<u8>,
    body: Body<'a>,
}

impl<'a> EncodedBatch<'a> {
    /// A batch of finished columns. `unrepresentable` says whether Arrow would misread a timestamp
    /// among them.
    ///
    /// # Errors
    /// `TooLarge` past 4 GB, `OutOfMemory`.
    pub fn new(body: Body<'a>, unrepresentable: bool) -> Result<Self, Reason> {
        let head = head(&body.metadata()?)?;
        let buffers = body.places().len();
        let directory_end = HEADER + buffers * std::mem::size_of::<BufferPlace>();
        let message_start = directory_end.next_multiple_of(ALIGNMENT);
        let body_start = message_start + head.len();
        let message_length = head.len() + body.len();
        if message_start + message_length > u32::MAX as usize {
            return Err(Reason::TooLarge);
        }
        let place = |(offset, length)| BufferPlace { offset: (body_start + offset) as u32, length: length as u32 };
        let directory = Vec::collected(body.places().map(place))?;
        let header = ChunkHeader {
            rows: body.rows() as u32,
            buffers: buffers as u32,
            message: message_start as u32,
            message_length: message_length as u32,
            flags: if unrepresentable { UNREPRESENTABLE } else { 0 },
            reserved: [0; 3],
        };
        Ok(Self { header, directory, head, body })
    }

    /// Bytes that `write_to` needs.
    pub fn len(&self) -> usize {
        (self.header.message + self.header.message_length) as usize
    }

    /// Writes the chunk; `out` must be `len()` bytes long.
    pub fn write_to(&self, out: &mut [u8]) {
        let (directory, message) = out.split_at_mut(self.header.message as usize);
        directory.fill(0);
        let ChunkHeader { rows, buffers, message: start, message_length, flags, .. } = self.header;
        for (place, word) in directory.chunks_exact_mut(4).zip([rows, buffers, start, message_length, flags]) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        for (place, buffer) in directory[HEADER..].chunks_exact_mut(8).zip(&self.directory) {
            place[..4].copy_from_slice(&buffer.offset.to_le_bytes());
            place[4..].copy_from_slice(&buffer.length.to_le_bytes());
        }
        let (head, body) = message.split_at_mut(self.head.len());
        head.copy_from_slice(&self.head);
        self.body.write_to(body);
    }

    /// The chunk as bytes of its own.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn into_bytes(self) -> Result<ChunkBytes, OutOfMemory> {
        let mut bytes = ChunkBytes::new(self.len())?;
        self.write_to(bytes.as_mut_slice());
        Ok(bytes)
    }
}

/// A chunk in this backend's own memory, aligned like one in the cache.
pub struct ChunkBytes {
    lines: Vec<CacheLine>,
    length: usize,
}

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct CacheLine([u8; ALIGNMENT]);

impl ChunkBytes {
    /// So many bytes, which are zero.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn new(length: usize) -> Result<Self, OutOfMemory> {
        let mut lines = Vec::new();
        lines.lengthen(length.div_ceil(ALIGNMENT), CacheLine([0; ALIGNMENT]))?;
        Ok(Self { lines, length })
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the lines are contiguous plain bytes, at least `length` of them.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.length) }
    }

    /// The bytes, to be written.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above; the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.length) }
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
    /// `bytes` must have been written by `EncodedBatch::write_to`, since nothing in them is checked
    /// again, and be read as the columns that they were encoded from. They must start at a multiple of 64.
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

    /// Returns true if there is a timestamp that Arrow would misread (`epoch::is_representable`).
    pub fn has_unrepresentable(&self) -> bool {
        self.word(4) & UNREPRESENTABLE != 0
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
