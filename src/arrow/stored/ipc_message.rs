//! The Arrow IPC message of a stored batch, laid out from the buffers of its columns. The body is copied once, into its
//! place.

use arrow_cache_core::{OutOfMemory, RoomyVec};
use arrow_ipc::{Buffer, FieldNode, MessageBuilder, MessageHeader, MetadataVersion, RecordBatchBuilder};
use flatbuffers::FlatBufferBuilder;

use crate::pg::allocator::headroom;

/// Alignment of messages, bodies and the buffers in them.
pub const ALIGNMENT: usize = 64;
/// Bytes in front of a message's metadata: continuation marker and length.
const PREFIX: usize = 8;

/// The buffers of a batch, column by column.
pub struct Body<'a> {
    rows: usize,
    parts: Vec<&'a [u8]>,
    nodes: Vec<FieldNode>,
}

impl<'a> Body<'a> {
    /// The body of a batch of `rows` rows, without columns yet, with room for `columns` of them.
    ///
    /// # Errors
    /// There is no memory for that.
    pub fn new(rows: usize, columns: usize) -> Result<Self, OutOfMemory> {
        Ok(Self { rows, parts: Vec::with_room(3 * columns)?, nodes: Vec::with_room(columns)? })
    }

    /// Begins a column. Its buffers follow, the bitmap of those that are not NULL first, which is empty without NULLs.
    ///
    /// # Errors
    /// There is no memory for more.
    pub fn column(&mut self, nulls: usize, validity: &'a [u8]) -> Result<(), OutOfMemory> {
        self.nodes.add(FieldNode::new(self.rows as i64, nulls as i64))?;
        self.parts.add(validity)
    }

    /// Adds a buffer to the last column.
    ///
    /// # Errors
    /// As `column`.
    pub fn buffer(&mut self, bytes: &'a [u8]) -> Result<(), OutOfMemory> {
        self.parts.add(bytes)
    }

    /// Rows of the batch.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of the body.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.len().next_multiple_of(ALIGNMENT)).sum()
    }

    /// Offset and length of every buffer.
    pub fn places(&self) -> impl ExactSizeIterator<Item = (usize, usize)> {
        let mut end = 0;
        self.parts.iter().map(move |part| {
            let start = end;
            end += part.len().next_multiple_of(ALIGNMENT);
            (start, part.len())
        })
    }

    /// The metadata of the message.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn metadata(&self) -> Result<Vec<u8>, OutOfMemory> {
        // Sixteen bytes for each buffer and node. The builder doubles its memory as it grows, and copies what it has. A
        // list of them is made before, and the copy that is returned after it.
        let words = 16 * (self.parts.len() + self.nodes.len());
        let _headroom = headroom(8 * words + 8192)?;
        let buffers: Vec<Buffer> =
            self.places().map(|(offset, length)| Buffer::new(offset as i64, length as i64)).collect();
        let mut builder = FlatBufferBuilder::new();
        let buffers = builder.create_vector(&buffers);
        let nodes = builder.create_vector(&self.nodes);
        let mut batch = RecordBatchBuilder::new(&mut builder);
        batch.add_length(self.rows as i64);
        batch.add_nodes(nodes);
        batch.add_buffers(buffers);
        let batch = batch.finish();
        let mut message = MessageBuilder::new(&mut builder);
        message.add_version(MetadataVersion::V5);
        message.add_header_type(MessageHeader::RecordBatch);
        message.add_bodyLength(self.len() as i64);
        message.add_header(batch.as_union_value());
        let message = message.finish();
        builder.finish(message, None);
        Ok(builder.finished_data().to_vec())
    }

    /// Writes the body; `out` must be `len()` bytes long.
    pub fn write_to(&self, mut out: &mut [u8]) {
        for part in &self.parts {
            let (place, rest) = out.split_at_mut(part.len().next_multiple_of(ALIGNMENT));
            let (bytes, padding) = place.split_at_mut(part.len());
            bytes.copy_from_slice(part);
            padding.fill(0);
            out = rest;
        }
    }
}

/// What comes in front of the body: prefix, metadata, padding.
///
/// # Errors
/// There is no memory for it.
pub fn head(metadata: &[u8]) -> Result<Vec<u8>, OutOfMemory> {
    // The body begins at a multiple of `ALIGNMENT`.
    let length = (PREFIX + metadata.len()).next_multiple_of(ALIGNMENT) - PREFIX;
    let mut head = Vec::with_room(PREFIX + length)?;
    head.add_all(&[0xFF; 4])?;
    head.add_all(&(length as u32).to_le_bytes())?;
    head.add_all(metadata)?;
    head.lengthen(PREFIX + length, 0)?;
    Ok(head)
}
