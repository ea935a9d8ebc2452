//! An image as text.

use super::image::{
    ARRAY, COUNT_MASK, DEPTH_MAX, HAS_OFFSET, IS_CONTAINER, IS_FALSE, IS_NULL, IS_NUMERIC, IS_STRING, IS_TRUE,
    KIND_MASK, LENGTH_MASK, OBJECT, SCALAR, STEP, TEXT_MAX, WORD, first_special, in_order, plain_length,
};
use crate::formats::numeric;
use crate::room::{OutOfMemory, Room, RoomyVec};

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

/// Appends exactly what `jsonb_out` prints for `image`, the server's encoding being UTF-8.
///
/// # Errors
/// Bytes that are no image as the server makes them, since the text would not stand for them; a text of more than `limit` bytes or
/// [`TEXT_MAX`], or of more than there is memory for. `out` is unchanged then.
pub fn to_text(image: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), Refusal> {
    let start = out.len();
    let end = start + limit.min(TEXT_MAX);
    // The text of most values is shorter than their image.
    out.make_room(image.len().min(limit))?;
    let mut printer = Printer { image, end, out };
    let printed = printer.container(0, image.len(), 1).and_then(|()| printer.check_room());
    if printed.is_err() {
        out.truncate(start);
    }
    printed
}

impl From<OutOfMemory> for Refusal {
    fn from(_: OutOfMemory) -> Self {
        Self::NoMemory
    }
}

struct Printer<'a> {
    image: &'a [u8],
    /// Length that `out` may reach.
    end: usize,
    out: &'a mut Vec<u8>,
}

impl<'a> Printer<'a> {
    /// Prints the container that takes all the bytes from `start` to `end`; the root is at depth 1.
    fn container(&mut self, start: usize, end: usize, depth: usize) -> Result<(), Refusal> {
        if depth > DEPTH_MAX {
            return Err(Refusal::Unknown);
        }
        let header = word(self.image, start)?;
        let count = (header & COUNT_MASK) as usize;
        let members = start + WORD;
        match header & !COUNT_MASK {
            ARRAY => {
                self.put(b"[")?;
                self.elements(members, count, end, depth)?;
                self.put(b"]")?;
            }
            OBJECT => {
                self.put(b"{")?;
                self.pairs(members, count, end, depth)?;
                self.put(b"}")?;
            }
            // A bare scalar. A container in its place would print as if it stood alone.
            flags if flags == ARRAY | SCALAR && depth == 1 && count == 1 => {
                if word(self.image, members)? & KIND_MASK == IS_CONTAINER {
                    return Err(Refusal::Unknown);
                }
                self.elements(members, count, end, depth)?;
            }
            _ => return Err(Refusal::Unknown),
        }
        Ok(())
    }

    /// The `count` entries from `start` on, and where their data begins.
    fn entries(&self, start: usize, count: usize, end: usize) -> Result<(&'a [[u8; WORD]], usize), Refusal> {
        let data = start + count * WORD;
        let bytes = self.image.get(start..data).filter(|_| data <= end).ok_or(Refusal::Unknown)?;
        Ok((bytes.as_chunks().0, data))
    }

    fn elements(&mut self, start: usize, count: usize, end: usize, depth: usize) -> Result<(), Refusal> {
        let (entries, data) = self.entries(start, count, end)?;
        let mut at = data;
        for (index, entry) in entries.iter().enumerate() {
            let entry = JEntry::new(entry, data, at, end)?;
            if index > 0 {
                self.put(b", ")?;
            }
            self.value(entry.kind, at, entry.end, depth)?;
            at = entry.end;
        }
        if at == end { Ok(()) } else { Err(Refusal::Unknown) }
    }

    fn pairs(&mut self, start: usize, count: usize, end: usize, depth: usize) -> Result<(), Refusal> {
        let (entries, data) = self.entries(start, count * 2, end)?;
        let (keys, values) = entries.split_at(count);
        let mut value_at = data;
        for key in keys {
            value_at = JEntry::new(key, data, value_at, end)?.end;
        }
        let mut key_at = data;
        let mut last_key: &[u8] = &[];
        for (index, (key, value)) in keys.iter().zip(values).enumerate() {
            let key = JEntry::new(key, data, key_at, end)?;
            let value = JEntry::new(value, data, value_at, end)?;
            let characters = &self.image[key_at..key.end];
            if key.kind != IS_STRING || (index > 0 && !in_order(last_key, characters)) {
                return Err(Refusal::Unknown);
            }
            if index > 0 {
                self.put(b", ")?;
            }
            self.string(key_at, key.end)?;
            self.put(b": ")?;
            self.value(value.kind, value_at, value.end, depth)?;
            last_key = characters;
            key_at = key.end;
            value_at = value.end;
        }
        if value_at == end { Ok(()) } else { Err(Refusal::Unknown) }
    }

    fn value(&mut self, kind: u32, start: usize, end: usize, depth: usize) -> Result<(), Refusal> {
        match kind {
            IS_STRING => self.string(start, end)?,
            IS_NUMERIC => {
                let start = self.aligned(start, end)?;
                self.number(start, end)?;
            }
            IS_CONTAINER => {
                let start = self.aligned(start, end)?;
                self.container(start, end, depth + 1)?;
            }
            _ if start != end => return Err(Refusal::Unknown),
            IS_TRUE => self.put(b"true")?,
            IS_FALSE => self.put(b"false")?,
            IS_NULL => self.put(b"null")?,
            _ => return Err(Refusal::Unknown),
        }
        self.check_room()
    }

    // Not inlined into the functions that call themselves, whose frames would grow.
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        Ok(self.out.add_all(bytes)?)
    }

    fn check_room(&self) -> Result<(), Refusal> {
        if self.out.len() > self.end { Err(Refusal::TooLong) } else { Ok(()) }
    }

    /// Where the data of a numeric or container begins whose entry has the bytes from `start` to `end`.
    fn aligned(&self, start: usize, end: usize) -> Result<usize, Refusal> {
        let aligned = start.next_multiple_of(WORD);
        let is_padding = aligned <= end && self.image[start..aligned].iter().all(|&byte| byte == 0);
        if is_padding { Ok(aligned) } else { Err(Refusal::Unknown) }
    }

    fn number(&mut self, start: usize, end: usize) -> Result<(), Refusal> {
        let length = end - start;
        // The header of a plain varlena. NaN and the infinities are no JSON.
        if length <= WORD || word(self.image, start)? as usize != length << 2 {
            return Err(Refusal::Unknown);
        }
        let body = &self.image[start + WORD..end];
        self.out.make_room(numeric::text_bound(body))?;
        if numeric::is_finite(body) && numeric::to_text(body, self.out) { Ok(()) } else { Err(Refusal::Unknown) }
    }

    /// Prints the characters from `start` to `end` between quotes.
    fn string(&mut self, start: usize, end: usize) -> Result<(), Refusal> {
        let length = end - start;
        // Eight characters at once: a short string is the first few of them, and those behind it in the image are cut off.
        if length <= STEP
            && let Some(characters) = self.image[start..].first_chunk::<STEP>()
            && first_special(*characters).is_none_or(|special| special >= length)
        {
            const QUOTE: u128 = b'"' as u128;
            let behind = 8 * (length + 1);
            let characters = u128::from(u64::from_le_bytes(*characters)) << 8 & ((1 << behind) - 1);
            let printed = self.out.len() + length + 2;
            self.put(&(QUOTE | characters | QUOTE << behind).to_le_bytes())?;
            self.out.truncate(printed);
            return Ok(());
        }
        self.put(b"\"")?;
        self.escaped(start, end)?;
        self.put(b"\"")?;
        Ok(())
    }

    fn escaped(&mut self, start: usize, end: usize) -> Result<(), Refusal> {
        let mut rest = &self.image[start..end];
        loop {
            let plain = plain_length(rest);
            if self.out.len() + plain > self.end {
                return Err(Refusal::TooLong);
            }
            self.put(&rest[..plain])?;
            let Some(&special) = rest.get(plain) else { return Ok(()) };
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
                    self.put(b"\\u00")?;
                    self.put(&[digit(special >> 4), digit(special & 0x0F)])?;
                    continue;
                }
            };
            self.put(&[b'\\', letter])?;
        }
    }
}

/// A member's entry, taken apart.
struct JEntry {
    kind: u32,
    /// Where in the image the data ends.
    end: usize,
}

impl JEntry {
    /// Reads the entry of the data that begins at `start`, in a container that has its first data at `data` and its last before `end`.
    fn new(entry: &[u8; WORD], data: usize, start: usize, end: usize) -> Result<Self, Refusal> {
        let word = u32::from_le_bytes(*entry);
        let from = if word & HAS_OFFSET == 0 { start } else { data };
        let own_end = from + (word & LENGTH_MASK) as usize;
        if !(start..=end).contains(&own_end) {
            return Err(Refusal::Unknown);
        }
        Ok(Self { kind: word & KIND_MASK, end: own_end })
    }
}

fn word(image: &[u8], at: usize) -> Result<u32, Refusal> {
    let bytes = image.get(at..).and_then(|rest| rest.first_chunk()).ok_or(Refusal::Unknown)?;
    Ok(u32::from_le_bytes(*bytes))
}
