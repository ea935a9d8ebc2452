//! PostgreSQL's `jsonb` to its text and back, without PostgreSQL. Pure functions: nothing here is shared.
//!
//! An image is what follows the varlena header of a jsonb (jsonb.h): a container, which is
//!
//! * a word with the number of its members and what it is: an array, an object, or the array of one that stands for a bare scalar;
//! * an entry of one word per element, or per key and then per value: the kind, and where the data of the member ends;
//! * the data, one after the other: characters as they are, a numeric with a varlena header, a container; nothing for true, false and null.
//!
//! Numerics and containers begin at multiples of four bytes, zeroes being put in front. The server counts from the varlena header, which
//! has four bytes itself, and so counting from the beginning of the image comes to the same. Words are little-endian.
//!
//! The text is the one that jsonb_out prints, and no other: keys in the order that the image has them in, one blank after commas and
//! colons, each character written in one way. That is what makes it possible to build the same image again.

mod parse;
mod print;
mod tokens;

pub use parse::{Parser, from_text};
pub use print::{Refusal, to_text};

/// Levels of containers in a value, at most. Both ways recurse once per level.
pub const DEPTH_MAX: usize = 1000;
/// Bytes of text, at most: as many as the server allows for an image.
pub const TEXT_MAX: usize = 0x0FFF_FFFF;

// The first word of a container.
const COUNT_MASK: u32 = 0x0FFF_FFFF;
const SCALAR: u32 = 0x1000_0000;
const OBJECT: u32 = 0x2000_0000;
const ARRAY: u32 = 0x4000_0000;

// An entry.
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
/// Characters that are looked at together.
const STEP: usize = 8;

/// Does `right` come after `left` in the order that an object's keys have? Shorter keys come first.
fn in_order(left: &[u8], right: &[u8]) -> bool {
    // Keys are short and differ soon: no call is worth it.
    let differing = || left.iter().zip(right).find(|(left, right)| left != right);
    left.len() < right.len() || (left.len() == right.len() && differing().is_some_and(|(left, right)| left < right))
}

/// The characters that are not written as they are: the control characters, `"` and `\`.
fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// How many characters stand in front of the first special one, if there is one among these eight.
fn first_special(characters: [u8; STEP]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // The upper bit of each byte that is smaller than the bound. Subtracting borrows from the next byte only where one was smaller, so that
    // the lowest mark is right, whatever stands above it.
    let below = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word & (ONES << 7);
    let equal = |word: u64, byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let word = u64::from_le_bytes(characters);
    let marks = below(word, b' ') | equal(word, b'"') | equal(word, b'\\');
    (marks != 0).then(|| marks.trailing_zeros() as usize / 8)
}

/// Characters in front of the first special one.
fn plain_length(characters: &[u8]) -> usize {
    let (steps, rest) = characters.as_chunks::<STEP>();
    for (index, step) in steps.iter().enumerate() {
        if let Some(special) = first_special(*step) {
            return index * STEP + special;
        }
    }
    steps.len() * STEP + rest.iter().take_while(|&&byte| !is_special(byte)).count()
}
