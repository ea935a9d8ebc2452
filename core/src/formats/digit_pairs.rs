//! Two decimal digits at a time. Pure function.

const DIGIT_PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Both decimal digits of the last two of a number.
#[inline]
pub(crate) fn digit_pair(number: usize) -> [u8; 2] {
    DIGIT_PAIRS[number % 100]
}
