//! numeric in the protocol's binary form (numeric.c, `numeric_send`).

use crate::numeric;

/// Writes the number of digits, the weight, the sign, the scale and the digits. `number` is scratch memory, `out` has
/// room. `None` for a text that stands for no numeric.
pub fn numeric(text: &[u8], number: &mut Vec<u8>, out: &mut [u8]) -> Option<usize> {
    number.clear();
    if !numeric::from_text(text, number) {
        return None;
    }
    let parts = numeric::parts_of(number)?;
    let (digits, _) = parts.digits.as_chunks::<2>();
    for (place, value) in
        out.as_chunks_mut().0.iter_mut().zip([digits.len() as u16, parts.weight as u16, parts.sign, parts.scale])
    {
        *place = value.to_be_bytes();
    }
    let end = 8 + parts.digits.len();
    for (place, digit) in out[8..end].as_chunks_mut().0.iter_mut().zip(digits) {
        *place = [digit[1], digit[0]];
    }
    Some(end)
}
