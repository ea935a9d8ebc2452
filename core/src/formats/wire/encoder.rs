//! Rows as DataRow or CopyData messages, in a buffer that grows for a row alone. Each process has its own encoder and
//! buffer.

use super::copied_row::RowShape;
use super::fixed::write_fixed;
use super::format::{LONGEST, WireFormat};
use super::server::Server;
use super::stored_value::{ChunkValue, StoredValue};
use super::zone::Zone;
use super::{binary, text};
use crate::formats::column_buffers::ColumnBuffers;
use crate::prefetch::prefetch;
use crate::room::{OutOfMemory, RoomyVec};

/// What became of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was appended.
    Appended,
    /// It needs more room than is left; nothing was appended.
    Full,
    /// It has a value that is not printed here; nothing was appended.
    Refused,
}

/// Messages on their way to a client.
pub struct MessageBuffer {
    bytes: Vec<u8>,
    used: usize,
}

impl MessageBuffer {
    /// An empty buffer of this size.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new(size: usize) -> Result<Self, OutOfMemory> {
        let mut bytes = Vec::new();
        bytes.lengthen(size, 0)?;
        Ok(Self { bytes, used: 0 })
    }

    /// Bytes that it holds.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Makes it hold so many bytes.
    ///
    /// # Errors
    /// There is no memory for them, or the server sends no message of that size.
    pub fn grow(&mut self, size: usize) -> Result<(), OutOfMemory> {
        if size > LONGEST_MESSAGE { Err(OutOfMemory) } else { self.bytes.lengthen(size, 0) }
    }

    /// The messages in it.
    pub fn messages(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.used = 0;
    }
}

/// Makes messages of rows.
pub struct Encoder {
    formats: Vec<WireFormat>,
    shape: RowShape,
    /// Bytes of the longest row, without its values of varying length.
    room: usize,
    scratch: Scratch,
}

/// What writing a value needs beside the value.
struct Scratch {
    zone: Zone,
    /// Reused for the body of a numeric.
    number: Vec<u8>,
    /// Reused for a line.
    line: Vec<u8>,
}

/// Where a value goes.
struct Place<'a> {
    /// The rest of the buffer, from the start of the row on.
    out: &'a mut [u8],
    /// Where in it the value begins.
    start: usize,
    /// Bytes that the values of varying length of this row may still take together.
    spare: usize,
}

impl Place<'_> {
    /// Takes bytes from what is spare.
    #[inline(always)]
    fn take(&mut self, bytes: usize) -> Result<(), Outcome> {
        if bytes > self.spare {
            return Err(Outcome::Full);
        }
        self.spare -= bytes;
        Ok(())
    }
}

/// Bytes in front of a message's body: type and length.
const HEADER: usize = 5;
/// Bytes of the length in front of a value.
const LENGTH: usize = 4;
/// The length of NULL.
const NULL: [u8; LENGTH] = [0xFF; LENGTH];
/// Bytes of the longest message that the server sends: what a StringInfo holds (`MaxAllocSize` in utils/memutils.h).
const LONGEST_MESSAGE: usize = 0x3FFF_FFFF;
/// Bytes that are copied at once for a short value: one copy of a constant size is quicker than one of the exact size.
const STRIDE: usize = 32;
/// How many bytes ahead values of varying length are fetched: there are more columns than a processor foresees by
/// itself.
const AHEAD: usize = 512;

impl Encoder {
    /// An encoder for rows of columns of these formats. `zone` is asked for the offsets of timestamptz.
    pub fn new(formats: Vec<WireFormat>, zone: Zone) -> Self {
        let values: usize = formats.iter().map(|format| LENGTH + format.room()).sum();
        Self {
            shape: RowShape::DataRow,
            room: HEADER + 2 + values + LONGEST,
            formats,
            scratch: Scratch { zone, number: Vec::new(), line: Vec::new() },
        }
    }

    /// The formats of the columns.
    pub fn formats(&self) -> &[WireFormat] {
        &self.formats
    }

    /// Goes on with rows of columns of other formats.
    ///
    /// # Errors
    /// There is no memory for them. The encoder is then good for nothing.
    pub fn set_formats(&mut self, formats: impl Iterator<Item = WireFormat>) -> Result<(), OutOfMemory> {
        self.formats.clear();
        let mut values = 0;
        for format in formats {
            self.formats.add(format)?;
            values += LENGTH + format.room();
        }
        self.room = HEADER + 2 + values + LONGEST;
        Ok(())
    }

    /// Goes on with rows of another shape. Those that are lines need columns in formats of text.
    pub fn set_shape(&mut self, shape: RowShape) {
        self.shape = shape;
    }

    /// Goes on in another zone.
    pub fn set_zone(&mut self, zone: Zone) {
        self.scratch.zone = zone;
    }

    /// Bytes that a buffer holds in which row number `row` of these columns fits.
    pub fn size(&self, columns: &[ColumnBuffers<'_>], row: usize, server: &impl Server) -> usize {
        self.size_of_values(values_of(columns, row), server)
    }

    /// Bytes that a buffer holds in which a row with these values fits.
    pub fn size_of_values<V: StoredValue>(
        &self,
        values: impl Iterator<Item = Option<V>>,
        server: &impl Server,
    ) -> usize {
        let varying = |(index, (&format, value)): (usize, (&WireFormat, Option<V>))| {
            value.map_or(0, |value| varying_bytes(format, &value, index, server))
        };
        self.shape.longest(self.room + self.formats.iter().zip(values).enumerate().map(varying).sum::<usize>())
    }

    /// Appends row number `row` of these columns to a buffer.
    pub fn append(
        &mut self,
        columns: &[ColumnBuffers<'_>],
        row: usize,
        server: &impl Server,
        buffer: &mut MessageBuffer,
    ) -> Outcome {
        self.append_values(values_of(columns, row), server, buffer)
    }

    /// Appends a row with these values, one for each format, `None` for NULL.
    #[inline]
    pub fn append_values<V: StoredValue>(
        &mut self,
        values: impl Iterator<Item = Option<V>>,
        server: &impl Server,
        buffer: &mut MessageBuffer,
    ) -> Outcome {
        let out = &mut buffer.bytes[buffer.used..];
        if out.len() < self.room {
            return Outcome::Full;
        }
        let spare = out.len() - self.room;
        let mut place = Place { out, start: 0, spare };
        let mut at = HEADER;
        place.out[at..at + 2].copy_from_slice(&(self.formats.len() as u16).to_be_bytes());
        at += 2;
        for (index, (&format, value)) in self.formats.iter().zip(values).enumerate() {
            let Some(value) = value else {
                place.out[at..at + LENGTH].copy_from_slice(&NULL);
                at += LENGTH;
                continue;
            };
            place.start = at + LENGTH;
            let length = match self.scratch.write(format, &value, index, server, &mut place) {
                Ok(length) => length,
                Err(outcome) => return outcome,
            };
            place.out[at..at + LENGTH].copy_from_slice(&(length as u32).to_be_bytes());
            at += LENGTH + length;
        }
        if self.shape.is_line() {
            let line = &mut self.scratch.line;
            line.clear();
            if self.shape.append_line(self.formats.len(), &place.out[HEADER + 2..at], line).is_err() {
                return Outcome::Refused;
            }
            at = HEADER + line.len();
            let Some(out) = place.out.get_mut(HEADER..at) else { return Outcome::Full };
            out.copy_from_slice(line);
        }
        place.out[0] = self.shape.message_type();
        place.out[1..HEADER].copy_from_slice(&((at - 1) as u32).to_be_bytes());
        buffer.used += at;
        Outcome::Appended
    }
}

/// How many messages these are, which are whole.
pub fn count_messages(mut messages: &[u8]) -> u64 {
    let mut count = 0;
    while let Some((header, _)) = messages.split_first_chunk::<HEADER>() {
        let [_, length @ ..] = *header;
        messages = messages.get(1 + u32::from_be_bytes(length) as usize..).unwrap_or_default();
        count += 1;
    }
    count
}

/// The values of a row of these columns, `None` for NULL.
fn values_of<'a>(columns: &'a [ColumnBuffers<'a>], row: usize) -> impl Iterator<Item = Option<ChunkValue<'a>>> {
    columns.iter().map(move |column| (!column.is_null(row)).then_some(ChunkValue { column, row }))
}

/// Bytes that a value in column number `index` takes at most, beside what its format takes for each value.
#[inline(always)]
fn varying_bytes(format: WireFormat, value: &impl StoredValue, index: usize, server: &impl Server) -> usize {
    match format {
        WireFormat::Bytes => {
            let (_, from, to) = value.place();
            to - from
        }
        WireFormat::ByServer => server.value(index).len(),
        WireFormat::ByteaText => value.bytes().len() * 2,
        // Four bytes of text become two, except those at both ends and around the point.
        WireFormat::NumericBinary => value.bytes().len(),
        _ => 0,
    }
}

impl Scratch {
    /// Writes a value that is not NULL, in column number `index`, and returns the bytes of it. The error is the outcome
    /// of its row.
    #[inline(always)]
    fn write(
        &mut self,
        format: WireFormat,
        value: &impl StoredValue,
        index: usize,
        server: &impl Server,
        place: &mut Place<'_>,
    ) -> Result<usize, Outcome> {
        let start = place.start;
        place.take(varying_bytes(format, value, index, server))?;
        match format {
            WireFormat::Bytes => {
                let (values, from, to) = value.place();
                copy(values, from, to - from, place.out, start);
                Ok(to - from)
            }
            WireFormat::ByServer => {
                let bytes = server.value(index);
                place.out[start..start + bytes.len()].copy_from_slice(bytes);
                Ok(bytes.len())
            }
            WireFormat::ByteaText => Ok(text::bytea(value.bytes(), &mut place.out[start..])),
            WireFormat::NumericBinary => {
                binary::numeric(value.bytes(), &mut self.number, &mut place.out[start..]).ok_or(Outcome::Refused)
            }
            fixed => {
                let out = place.out[start..].first_chunk_mut().expect("the room was counted");
                write_fixed(fixed, value, &mut self.zone, server, out).ok_or(Outcome::Refused)
            }
        }
    }
}

/// Copies a value of varying length. There are at least `STRIDE` bytes behind it in `out`.
#[inline]
fn copy(values: &[u8], from: usize, length: usize, out: &mut [u8], at: usize) {
    prefetch(values.as_ptr().wrapping_add(from + AHEAD));
    let wide = values.get(from..from + STRIDE);
    match (wide, length <= STRIDE) {
        (Some(wide), true) => out[at..at + STRIDE].copy_from_slice(wide),
        _ => out[at..at + length].copy_from_slice(&values[from..from + length]),
    }
}
