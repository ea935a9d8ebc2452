//! The parts of an image: how words of containers and entries are made up, the order of keys, the characters that are escaped. Pure
//! functions.

/// Levels of containers in a value, at most. Both ways recurse once per level.
pub const DEPTH_MAX: usize = 1000;
/// Bytes of text, at most: as many as the server allows for an image.
pub const TEXT_MAX: usize = 0x0FFF_FFFF;

// The first word of a container.
pub const COUNT_MASK: u32 = 0x0FFF_FFFF;
pub const SCALAR: u32 = 0x1000_0000;
pub const OBJECT: u32 = 0x2000_0000;
pub const ARRAY: u32 = 0x4000_0000;

// A member's entry, which jsonb.h calls JEntry.
pub const LENGTH_MASK: u32 = 0x0FFF_FFFF;
pub const KIND_MASK: u32 = 0x7000_0000;
/// The entry says where the data ends, from the beginning of all data; else how long it is.
pub const HAS_OFFSET: u32 = 0x8000_0000;
pub const IS_STRING: u32 = 0x0000_0000;
pub const IS_NUMERIC: u32 = 0x1000_0000;
pub const IS_FALSE: u32 = 0x2000_0000;
pub const IS_TRUE: u32 = 0x3000_0000;
pub const IS_NULL: u32 = 0x4000_0000;
pub const IS_CONTAINER: u32 = 0x5000_0000;

/// Bytes of a word, and what numerics and containers are aligned to.
pub const WORD: usize = 4;
/// Characters that are examined together.
pub const STEP: usize = 8;

/// Does `right` come after `left` in the order that an object's keys have? Shorter keys come first.
pub fn in_order(left: &[u8], right: &[u8]) -> bool {
    // Keys are short and differ soon, so a call of memcmp would take longer.
    let differing = || left.iter().zip(right).find(|(left, right)| left != right);
    left.len() < right.len() || (left.len() == right.len() && differing().is_some_and(|(left, right)| left < right))
}

/// Is the character written with an escape? These are the control characters, `"` and `\`.
pub fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// The number of characters before the first special one, if there is one among these eight.
pub fn first_special(characters: [u8; STEP]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // The upper bit of each byte that is smaller than the bound. Subtracting borrows from the next byte only where a byte was smaller, so
    // the lowest mark is right, whatever the bytes above it hold.
    let below = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word & (ONES << 7);
    let equal = |word: u64, byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let word = u64::from_le_bytes(characters);
    let marks = below(word, b' ') | equal(word, b'"') | equal(word, b'\\');
    (marks != 0).then(|| marks.trailing_zeros() as usize / 8)
}

/// The number of characters before the first special one.
pub fn plain_length(characters: &[u8]) -> usize {
    let (steps, rest) = characters.as_chunks::<STEP>();
    for (index, step) in steps.iter().enumerate() {
        if let Some(special) = first_special(*step) {
            return index * STEP + special;
        }
    }
    steps.len() * STEP + rest.iter().take_while(|&&byte| !is_special(byte)).count()
}
