//! Rows of stored columns as DataRow messages, text or binary, byte for byte as the server's output functions give
//! them. Pure functions over the bytes of a chunk; nothing here is shared.
//!
//! A [`Form`] says how the values of one column become bytes. What has no form here is a [`Form::Piece`]: its bytes
//! come from outside. Some values are refused (a float whose shortest text the server sees differently, a date beyond
//! all dates): the row is then for somebody else to send.

mod binary;
mod float;
mod moment;
mod text;
mod zone;

pub use zone::{Span, Zone, stretch};

use crate::formats::epoch;
use crate::room::{OutOfMemory, RoomyVec};

/// How the values of a column become bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// bool: `t` or `f`
    BoolText,
    /// int2
    Int16Text,
    /// int4
    Int32Text,
    /// int8
    Int64Text,
    /// oid and the like
    UInt32Text,
    /// xid8
    UInt64Text,
    /// pg_lsn: two hexadecimal numbers
    LsnText,
    /// float4, in its shortest exact form
    Float32Text,
    /// float8, in its shortest exact form
    Float64Text,
    /// date, ISO
    DateText,
    /// time
    TimeText,
    /// timestamp, ISO
    TimestampText,
    /// timestamptz, ISO, at the offset of the session's zone
    TimestampTzText,
    /// uuid, with hyphens
    UuidText,
    /// bytea as `\x` and hexadecimal digits
    ByteaText,
    /// The stored bytes, which vary in length
    Bytes,
    /// bool as a byte
    BoolBinary,
    /// Two bytes, most significant first
    Word2,
    /// Four bytes, most significant first
    Word4,
    /// Eight bytes, most significant first
    Word8,
    /// date as days since 2000
    DateBinary,
    /// timestamp as microseconds since 2000
    TimestampBinary,
    /// The sixteen stored bytes
    Bytes16,
    /// numeric: header and digits of base 10000
    NumericBinary,
    /// jsonb: version and text
    JsonbBinary,
    /// Bytes that somebody else has made of the value
    Piece,
}

/// No text or binary form of a value whose stored form has a fixed length is longer.
const LONGEST: usize = 64;

impl Form {
    /// Bytes of the longest value, or for those that vary in length the bytes that there may be beside their own.
    fn room(self) -> usize {
        match self {
            Self::Bytes | Self::Piece => 0,
            Self::BoolText | Self::BoolBinary | Self::JsonbBinary => 1,
            Self::Word2 | Self::ByteaText => 2,
            Self::Word4 | Self::DateBinary => 4,
            Self::Int16Text => 6,
            Self::Word8 | Self::TimestampBinary => 8,
            Self::Int32Text | Self::UInt32Text => 11,
            Self::Float32Text | Self::TimeText | Self::DateText | Self::Bytes16 | Self::NumericBinary => 16,
            Self::LsnText => 17,
            Self::Int64Text | Self::UInt64Text => 20,
            Self::Float64Text => 24,
            Self::UuidText | Self::TimestampText => 36,
            Self::TimestampTzText => 48,
        }
    }
}

/// A column of a chunk: its Arrow buffers.
#[derive(Clone, Copy)]
pub struct Column<'a> {
    /// One bit per value, 0 for NULL; empty without NULLs.
    pub validity: &'a [u8],
    /// Where values of varying length end; else empty.
    pub offsets: &'a [u8],
    /// The values.
    pub values: &'a [u8],
}

impl<'a> Column<'a> {
    fn is_null(&self, row: usize) -> bool {
        self.validity.get(row / 8).is_some_and(|byte| byte >> (row % 8) & 1 == 0)
    }

    fn fixed<const N: usize>(&self, row: usize) -> [u8; N] {
        let mut value = [0; N];
        value.copy_from_slice(&self.values[row * N..row * N + N]);
        value
    }

    /// Start and end of a value among the values.
    fn place(&self, row: usize) -> (usize, usize) {
        let [a, b, c, d, e, f, g, h] = *self.offsets[row * 4..].first_chunk().expect("a value has two offsets");
        (u32::from_le_bytes([a, b, c, d]) as usize, u32::from_le_bytes([e, f, g, h]) as usize)
    }

    fn bytes(&self, row: usize) -> &'a [u8] {
        let (start, end) = self.place(row);
        &self.values[start..end]
    }
}

/// Bytes that were made outside, for the columns of [`Form::Piece`].
pub trait Pieces {
    /// Those of a column of the current row, where it is not NULL.
    fn piece(&self, column: usize) -> &[u8];
}

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

/// Messages on their way, in memory of fixed size.
pub struct Block {
    bytes: Vec<u8>,
    used: usize,
}

impl Block {
    /// An empty block of this size.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new(size: usize) -> Result<Self, OutOfMemory> {
        let mut bytes = Vec::new();
        bytes.lengthen(size, 0)?;
        Ok(Self { bytes, used: 0 })
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
    forms: Vec<Form>,
    /// Room for a row, without its values of varying length.
    room: usize,
    zone: Zone,
    /// Reused for the body of a numeric.
    number: Vec<u8>,
}

/// Bytes in front of a message's body: type and length.
const HEADER: usize = 5;
/// Bytes of the length in front of a value.
const LENGTH: usize = 4;
/// The length of NULL.
const NULL: [u8; LENGTH] = [0xFF; LENGTH];
/// Short values are copied so many bytes at once: quicker than to copy as many as are wanted.
const STRIDE: usize = 32;

impl Encoder {
    /// An encoder for rows of columns of these forms. `zone` is asked for the offsets of timestamptz.
    pub fn new(forms: Vec<Form>, zone: Zone) -> Self {
        let values: usize = forms.iter().map(|form| LENGTH + form.room()).sum();
        Self { room: HEADER + 2 + values + LONGEST, forms, zone, number: Vec::new() }
    }

    /// The forms of the columns.
    pub fn forms(&self) -> &[Form] {
        &self.forms
    }

    /// Gives the zone back.
    pub fn into_zone(self) -> Zone {
        self.zone
    }

    /// Appends row number `row` of these columns to a block.
    pub fn append(&mut self, columns: &[Column<'_>], row: usize, pieces: &impl Pieces, block: &mut Block) -> Outcome {
        let out = &mut block.bytes[block.used..];
        if out.len() < self.room {
            return Outcome::Full;
        }
        // What the values of varying length may take together.
        let mut spare = out.len() - self.room;
        let mut at = HEADER;
        out[at..at + 2].copy_from_slice(&(self.forms.len() as u16).to_be_bytes());
        at += 2;
        for (index, (&form, column)) in self.forms.iter().zip(columns).enumerate() {
            if column.is_null(row) {
                out[at..at + LENGTH].copy_from_slice(&NULL);
                at += LENGTH;
                continue;
            }
            let start = at + LENGTH;
            let length = match form {
                Form::Bytes => {
                    let (from, to) = column.place(row);
                    let length = to - from;
                    if length > spare {
                        return Outcome::Full;
                    }
                    spare -= length;
                    copy(column.values, from, length, out, start);
                    length
                }
                Form::Piece => {
                    let piece = pieces.piece(index);
                    if piece.len() > spare {
                        return Outcome::Full;
                    }
                    spare -= piece.len();
                    out[start..start + piece.len()].copy_from_slice(piece);
                    piece.len()
                }
                Form::ByteaText => {
                    let bytes = column.bytes(row);
                    if bytes.len() * 2 > spare {
                        return Outcome::Full;
                    }
                    spare -= bytes.len() * 2;
                    text::bytea(bytes, &mut out[start..])
                }
                Form::NumericBinary => {
                    // Four bytes of text make two, but for those at both ends and around the point.
                    let text = column.bytes(row);
                    if text.len() > spare {
                        return Outcome::Full;
                    }
                    spare -= text.len();
                    match binary::numeric(text, &mut self.number, &mut out[start..]) {
                        Some(length) => length,
                        None => return Outcome::Refused,
                    }
                }
                Form::JsonbBinary => {
                    let text = column.bytes(row);
                    if text.len() > spare {
                        return Outcome::Full;
                    }
                    spare -= text.len();
                    out[start] = 1;
                    out[start + 1..start + 1 + text.len()].copy_from_slice(text);
                    1 + text.len()
                }
                fixed => {
                    let room = out[start..].first_chunk_mut().expect("the room was counted");
                    match write_fixed(fixed, column, row, &mut self.zone, room) {
                        Some(length) => length,
                        None => return Outcome::Refused,
                    }
                }
            };
            out[at..start].copy_from_slice(&(length as u32).to_be_bytes());
            at = start + length;
        }
        out[0] = b'D';
        out[1..HEADER].copy_from_slice(&((at - 1) as u32).to_be_bytes());
        block.used += at;
        Outcome::Appended
    }
}

/// How far ahead values of varying length are fetched: there are more columns than a processor foresees by itself.
const AHEAD: usize = 512;

/// Copies a value of varying length. There are at least `STRIDE` bytes behind it in `out`.
#[inline]
fn copy(values: &[u8], from: usize, length: usize, out: &mut [u8], at: usize) {
    fetch(values.as_ptr().wrapping_add(from + AHEAD));
    let wide = values.get(from..from + STRIDE);
    match (wide, length <= STRIDE) {
        (Some(wide), true) => out[at..at + STRIDE].copy_from_slice(wide),
        _ => out[at..at + length].copy_from_slice(&values[from..from + length]),
    }
}

/// Has the processor read an address that will be wanted soon.
#[inline]
fn fetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which reads nothing and is ignored for an address that cannot be read.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Writes a value whose stored form has a fixed length; `None` if it is refused.
#[inline]
fn write_fixed(form: Form, column: &Column<'_>, row: usize, zone: &mut Zone, out: &mut [u8; LONGEST]) -> Option<usize> {
    let micros = || epoch::timestamp_from_arrow(i64::from_le_bytes(column.fixed(row)));
    let days = || epoch::date_from_arrow(i32::from_le_bytes(column.fixed(row)));
    let truth = || column.values[row / 8] >> (row % 8) & 1 == 1;
    Some(match form {
        Form::BoolText => text::word(if truth() { b"t" } else { b"f" }, out),
        Form::Int16Text => text::integer(i16::from_le_bytes(column.fixed(row)), out),
        Form::Int32Text => text::integer(i32::from_le_bytes(column.fixed(row)), out),
        Form::Int64Text => text::integer(i64::from_le_bytes(column.fixed(row)), out),
        Form::UInt32Text => text::integer(u32::from_le_bytes(column.fixed(row)), out),
        Form::UInt64Text => text::integer(u64::from_le_bytes(column.fixed(row)), out),
        Form::LsnText => text::lsn(u64::from_le_bytes(column.fixed(row)), out),
        Form::Float32Text => return float::float4(f32::from_le_bytes(column.fixed(row)), out),
        Form::Float64Text => return float::float8(f64::from_le_bytes(column.fixed(row)), out),
        Form::DateText => return moment::date(days(), out),
        Form::TimeText => return moment::time(i64::from_le_bytes(column.fixed(row)), out),
        Form::TimestampText => return moment::timestamp(micros(), out),
        Form::TimestampTzText => return moment::timestamptz(micros(), zone, out),
        Form::UuidText => text::uuid(column.fixed(row), out),
        Form::BoolBinary => text::word(&[u8::from(truth())], out),
        Form::Word2 => text::word(&reversed::<2>(column.fixed(row)), out),
        Form::Word4 => text::word(&reversed::<4>(column.fixed(row)), out),
        Form::Word8 => text::word(&reversed::<8>(column.fixed(row)), out),
        Form::DateBinary => text::word(&days().to_be_bytes(), out),
        Form::TimestampBinary => text::word(&micros().to_be_bytes(), out),
        Form::Bytes16 => text::word(&column.fixed::<16>(row), out),
        Form::Bytes | Form::ByteaText | Form::NumericBinary | Form::JsonbBinary | Form::Piece => return None,
    })
}

fn reversed<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    bytes.reverse();
    bytes
}
