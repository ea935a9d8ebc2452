//! The IPC message of a stored batch, laid out from the columns' own memory: no arrays in between
//! and no copy of the body but the one into its place.

use arrow_ipc::{Buffer, FieldNode, MessageBuilder, MessageHeader, MetadataVersion, RecordBatchBuilder};
use flatbuffers::FlatBufferBuilder;

/// Alignment of messages, bodies and the buffers in them.
pub const ALIGNMENT: usize = 64;

/// The buffers of a batch, column by column.
pub struct Body<'a> {
    rows: usize,
    parts: Vec<&'a [u8]>,
    nodes: Vec<FieldNode>,
}

impl<'a> Body<'a> {
    /// The body of a batch of so many rows, without columns yet.
    pub fn new(rows: usize, columns: usize) -> Self {
        Self { rows, parts: Vec::with_capacity(3 * columns), nodes: Vec::with_capacity(columns) }
    }

    /// Begins a column. Its buffers follow, `validity` first, which is empty without NULLs.
    pub fn column(&mut self, nulls: usize, validity: &'a [u8]) {
        self.nodes.push(FieldNode::new(self.rows as i64, nulls as i64));
        self.parts.push(validity);
    }

    /// Adds a buffer to the last column.
    pub fn buffer(&mut self, bytes: &'a [u8]) {
        self.parts.push(bytes);
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
    pub fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        self.parts.iter().scan(0, |end, part| {
            let start = *end;
            *end += part.len().next_multiple_of(ALIGNMENT);
            Some((start, part.len()))
        })
    }

    /// The metadata of the message.
    pub fn metadata(&self) -> Vec<u8> {
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
        builder.finished_data().to_vec()
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
