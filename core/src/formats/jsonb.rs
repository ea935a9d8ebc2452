//! PostgreSQL's `jsonb` to its text, without PostgreSQL. Pure functions: nothing here is shared.
//!
//! An image is what follows the varlena header of a jsonb (jsonb.h): a container, which is
//!
//! * a word with the number of its members and its kind: an array, an object, or the array of one that stands for a
//!   bare scalar;
//! * an entry of one word per element, or per key and then per value: the kind, and where the data of the member ends;
//! * the data of all members in order: characters as they are, a numeric with a varlena header, a container; nothing
//!   for true, false and null.
//!
//! Numerics and containers begin at multiples of four bytes, counted from the beginning of the image. Words are
//! little-endian.

use crate::formats::numeric;
use crate::room::{OutOfMemory, Room, RoomyVec};

/// Levels of containers in a value, at most: the printer calls itself for each, and so does the server when it reads
/// the text.
pub const DEPTH_MAX: usize = 100;

// The first word of a container.
const COUNT_MASK: u32 = 0x0FFF_FFFF;
const SCALAR: u32 = 0x1000_0000;
const OBJECT: u32 = 0x2000_0000;
const ARRAY: u32 = 0x4000_0000;

// A member's entry, which jsonb.h calls JEntry.
const LENGTH_MASK: u32 = 0x0FFF_FFFF;
const KIND_MASK: u32 = 0x7000_0000;
/// The entry says where the data ends, from the beginning of all data; else how long it is.
const HAS_OFFSET: u32 = 0x8000_0000;
const IS_STRING: u32 = 0x0000_0000;
const IS_NUMERIC: u32 = 0x1000_0000;
const IS_FALSE: u32 = 0x2000_0000;
const IS_TRUE: u32 = 0x3000_0000;
const IS_NULL: u32 = 0x4000_0000;
const IS_CONTAINER: u32 = 0x5000_0000;

/// Bytes of a word, and what numerics and containers are aligned to.
const WORD: usize = 4;

/// Why an image has no text here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It is not laid out as the server does it, or has more than [`DEPTH_MAX`] levels.
    Unknown,
    /// The text would be too long: a few bytes of numeric can stand for a hundred thousand digits.
    TooLong,
    /// There is no memory for the text.
    NoMemory,
}

impl From<OutOfMemory> for Refusal {
    fn from(_: OutOfMemory) -> Self {
        Self::NoMemory
    }
}

/// Appends exactly what `jsonb_out` prints for `image`, the server's encoding being UTF-8.
///
/// # Errors
/// Bytes that are no image; a text of more than `limit` bytes, or of more than there is memory for. `out` is unchanged
/// then.
pub fn to_text(image: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let start = out.len();
    // The text of most values is shorter than their image.
    out.make_room(image.len().min(limit))?;
    let printed = Printer { image, end: start.saturating_add(limit), out }.container(0, 1);
    if printed.is_err() {
        out.truncate(start);
    }
    printed
}

struct Printer<'a> {
    image: &'a [u8],
    /// Length that `out` may reach.
    end: usize,
    out: &'a mut Vec<u8>,
}

impl Printer<'_> {
    /// Prints the container that begins at `start`; the root is at depth 1.
    fn container(&mut self, start: usize, depth: usize) -> Result<(), Refusal> {
        let header = word(self.image, start)?;
        let count = (header & COUNT_MASK) as usize;
        let (open, close, keys): (&[u8], &[u8], usize) = match header & !COUNT_MASK {
            ARRAY => (b"[", b"]", 0),
            OBJECT => (b"{", b"}", count),
            flags if flags == ARRAY | SCALAR && depth == 1 && count == 1 => (b"", b"", 0),
            _ => return Err(Refusal::Unknown),
        };
        let first = start + WORD;
        let data = first + (keys + count) * WORD;
        let entries = self.image.get(first..data).filter(|_| depth <= DEPTH_MAX).ok_or(Refusal::Unknown)?;
        let (keys, values) = entries.as_chunks::<WORD>().0.split_at(keys);
        // The keys of an object come before all its values.
        let mut at = keys.iter().fold(data, |at, key| end_of(key, data, at));
        let mut key_at = data;
        self.put(open)?;
        for (index, entry) in values.iter().enumerate() {
            if index > 0 {
                self.put(b", ")?;
            }
            if let Some(key) = keys.get(index) {
                let end = end_of(key, data, key_at);
                self.string(key_at, end)?;
                self.put(b": ")?;
                key_at = end;
            }
            let end = end_of(entry, data, at);
            self.value(u32::from_le_bytes(*entry) & KIND_MASK, at, end, depth)?;
            at = end;
        }
        self.put(close)
    }

    /// Prints a member whose data, with what pads it, takes the bytes from `start` to `end`.
    fn value(&mut self, kind: u32, start: usize, end: usize, depth: usize) -> Result<(), Refusal> {
        match kind {
            IS_STRING => self.string(start, end),
            IS_NUMERIC => self.number(start.next_multiple_of(WORD), end),
            IS_CONTAINER => self.container(start.next_multiple_of(WORD), depth + 1),
            IS_TRUE => self.put(b"true"),
            IS_FALSE => self.put(b"false"),
            IS_NULL => self.put(b"null"),
            _ => Err(Refusal::Unknown),
        }
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        if self.out.len() + bytes.len() > self.end {
            return Err(Refusal::TooLong);
        }
        Ok(self.out.add_all(bytes)?)
    }

    fn number(&mut self, start: usize, end: usize) -> Result<(), Refusal> {
        // A numeric has the header of a plain varlena.
        let body = self.image.get(start + WORD..end).ok_or(Refusal::Unknown)?;
        self.out.make_room(numeric::text_bound(body))?;
        // NaN and the infinities are no JSON.
        if !numeric::to_text(body, self.out) || !self.out.last().is_some_and(u8::is_ascii_digit) {
            return Err(Refusal::Unknown);
        }
        self.put(b"")
    }

    /// Prints the characters from `start` to `end` between quotes.
    fn string(&mut self, start: usize, end: usize) -> Result<(), Refusal> {
        let mut rest = self.image.get(start..end).ok_or(Refusal::Unknown)?;
        self.put(b"\"")?;
        while let Some(plain) = rest.iter().position(|&byte| byte < b' ' || byte == b'"' || byte == b'\\') {
            self.put(&rest[..plain])?;
            let special = rest[plain];
            rest = &rest[plain + 1..];
            let letter = match special {
                // The server's strings end at a NUL.
                0 => return Err(Refusal::Unknown),
                0x08 => b'b',
                0x0C => b'f',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                b'"' | b'\\' => special,
                _ => {
                    let digit = |value: u8| b"0123456789abcdef"[usize::from(value)];
                    self.put(&[b'\\', b'u', b'0', b'0', digit(special >> 4), digit(special & 0x0F)])?;
                    continue;
                }
            };
            self.put(&[b'\\', letter])?;
        }
        self.put(rest)?;
        self.put(b"\"")
    }
}

/// Where the data of a member ends that begins at `start`, in a container whose data begins at `data`.
fn end_of(entry: &[u8; WORD], data: usize, start: usize) -> usize {
    let word = u32::from_le_bytes(*entry);
    let from = if word & HAS_OFFSET == 0 { start } else { data };
    from + (word & LENGTH_MASK) as usize
}

fn word(image: &[u8], at: usize) -> Result<u32, Refusal> {
    let bytes = image.get(at..).and_then(|rest| rest.first_chunk()).ok_or(Refusal::Unknown)?;
    Ok(u32::from_le_bytes(*bytes))
}
