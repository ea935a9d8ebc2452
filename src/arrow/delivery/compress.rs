//! Compression of the buffers of a message, as the IPC format defines it: the length comes first, then a frame of the codec.

use std::io::Write;

use arrow_cache_core::{Compression, OutOfMemory, RoomyVec};
use arrow_ipc::CompressionType;
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use zstd_safe::{CCtx, CParameter, compress_bound};

use crate::pg::allocator::headroom;

/// Stands in the place of a length before a buffer that is not compressed.
const PLAIN: i64 = -1;
/// The level that Arrow's own writers use.
const ZSTD_LEVEL: i32 = 3;
/// Bytes of a block of lz4 before it is compressed. Its window is no larger than that.
const LZ4_BLOCK: usize = 64 * 1024;
/// Bytes that an encoder of lz4 takes besides its output: a block before compression, a block after it, which may be longer by a 255th, and a
/// table of 16 kB (`FrameEncoder::init`, `HashTable4K`).
const LZ4_ENCODER: usize = 4 * LZ4_BLOCK;
/// Capacity that is kept for the next buffer.
const KEPT: usize = 1024 * 1024;

/// Compresses one buffer after another.
pub struct Compressor {
    codec: Codec,
    /// What was compressed last.
    frame: Vec<u8>,
}

enum Codec {
    Lz4,
    /// Takes memory from the C library, and reports when there is none.
    Zstd(CCtx<'static>),
}

impl Compressor {
    /// A compressor of this kind, if one is wanted.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new(compression: Compression) -> Result<Option<Self>, OutOfMemory> {
        let codec = match compression {
            Compression::None => return Ok(None),
            Compression::Lz4 => Codec::Lz4,
            Compression::Zstd => {
                let mut context = CCtx::try_create().ok_or(OutOfMemory)?;
                context.set_parameter(CParameter::CompressionLevel(ZSTD_LEVEL)).map_err(|_| OutOfMemory)?;
                Codec::Zstd(context)
            }
        };
        Ok(Some(Self { codec, frame: Vec::new() }))
    }

    /// What a message calls the codec.
    pub fn kind(&self) -> CompressionType {
        match self.codec {
            Codec::Lz4 => CompressionType::LZ4_FRAME,
            Codec::Zstd(_) => CompressionType::ZSTD,
        }
    }

    /// Compresses a buffer, unless that would make it longer.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn compress(&mut self, bytes: &[u8]) -> Result<Vec<u8>, OutOfMemory> {
        if bytes.is_empty() {
            return Ok(Vec::new());
        }
        if self.frame.capacity() > KEPT {
            self.frame = Vec::new();
        }
        self.frame.clear();
        match &mut self.codec {
            Codec::Lz4 => lz4(bytes, &mut self.frame)?,
            Codec::Zstd(context) => {
                self.frame.make_exact_room(compress_bound(bytes.len()))?;
                // With that much room, only a lack of memory makes it fail.
                context.compress2(&mut self.frame, bytes).map_err(|_| OutOfMemory)?;
            }
        }
        let (length, frame) = match self.frame.as_slice() {
            frame if size_of::<i64>() + frame.len() <= bytes.len() => (bytes.len() as i64, frame),
            _ => (PLAIN, bytes),
        };
        let mut buffer = Vec::with_room(size_of::<i64>() + frame.len())?;
        buffer.add_all(&length.to_le_bytes())?;
        buffer.add_all(frame)?;
        Ok(buffer)
    }
}

fn lz4(bytes: &[u8], frame: &mut Vec<u8>) -> Result<(), OutOfMemory> {
    // Each block has a length in front, and is not compressed if that would make it longer. A header and an end take the rest.
    frame.make_exact_room(bytes.len() + 4 * bytes.len().div_ceil(LZ4_BLOCK) + 64)?;
    let _headroom = headroom(LZ4_ENCODER)?;
    let info = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Independent);
    let mut encoder = FrameEncoder::with_frame_info(info, frame);
    // Writing to memory that is there cannot fail.
    let written = encoder.write_all(bytes).is_ok() && encoder.finish().is_ok();
    if written { Ok(()) } else { Err(OutOfMemory) }
}
