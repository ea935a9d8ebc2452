//! Values other than floats, dates and times as text: numbers, hexadecimal digits. Pure functions.

use super::format::LONGEST;

/// Both hexadecimal digits of every byte.
const HEX: [[u8; 2]; 256] = {
    let digits = *b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    pairs
};

/// Writes a few bytes and returns their number.
#[inline]
pub fn word<const N: usize>(bytes: &[u8; N], out: &mut [u8; LONGEST]) -> usize {
    out[..N].copy_from_slice(bytes);
    N
}

/// An integer, decimal.
#[inline]
pub fn integer(value: impl itoa::Integer, out: &mut [u8; LONGEST]) -> usize {
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(value).as_bytes();
    out[..text.len()].copy_from_slice(text);
    text.len()
}

/// Where the hyphens of a uuid stand.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];
/// Characters of a uuid.
const UUID: usize = 36;

/// A uuid in groups of 8, 4, 4, 4 and 12 digits.
pub fn uuid(bytes: [u8; 16], out: &mut [u8; LONGEST]) -> usize {
    let mut at = 0;
    for byte in bytes {
        if HYPHENS.contains(&at) {
            out[at] = b'-';
            at += 1;
        }
        out[at..at + 2].copy_from_slice(&HEX[usize::from(byte)]);
        at += 2;
    }
    debug_assert_eq!(at, UUID);
    UUID
}

/// bytea in its hex form. `out` has room for it.
pub fn bytea(bytes: &[u8], out: &mut [u8]) -> usize {
    let length = 2 + bytes.len() * 2;
    out[..2].copy_from_slice(b"\\x");
    for (pair, &byte) in out[2..length].as_chunks_mut().0.iter_mut().zip(bytes) {
        *pair = HEX[usize::from(byte)];
    }
    length
}
