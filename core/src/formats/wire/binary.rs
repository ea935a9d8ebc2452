//! numeric in the protocol's binary form (numeric.c, `numeric_send`). Pure function.

use crate::formats::numeric::{
    NEGATIVE, SHORT_SCALE_MAX, SHORT_SCALE_SHIFT, SIGN_MASK, SPECIAL, from_text, parts, word,
};

/// Writes the number of digits, the weight, the sign, the scale and the digits. `number` is scratch memory; `out` has
/// room. `None` for a text that is no numeric.
pub fn numeric(text: &[u8], number: &mut Vec<u8>, out: &mut [u8]) -> Option<usize> {
    number.clear();
    if !from_text(text, number) {
        return None;
    }
    let header = word(number, 0)?;
    let (digits, weight, sign, scale): (&[u8], _, _, _) = if header & SIGN_MASK == SPECIAL {
        // NaN and the infinities. The server reads a scale even where there is none.
        (&[], 0, header, header >> SHORT_SCALE_SHIFT & SHORT_SCALE_MAX as u16)
    } else {
        let parts = parts(header, number)?;
        (parts.digits, parts.weight as u16, if parts.negative { NEGATIVE } else { 0 }, parts.scale as u16)
    };
    let words = [(digits.len() / 2) as u16, weight, sign, scale];
    for (place, value) in out.as_chunks_mut().0.iter_mut().zip(words) {
        *place = value.to_be_bytes();
    }
    let end = HEADER + digits.len();
    for (place, digit) in out[HEADER..end].as_chunks_mut().0.iter_mut().zip(digits.as_chunks::<2>().0) {
        *place = [digit[1], digit[0]];
    }
    Some(end)
}

/// Bytes in front of the digits.
const HEADER: usize = 8;
