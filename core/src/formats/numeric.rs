//! PostgreSQL's `numeric` to decimal text and back, without PostgreSQL. Pure functions: nothing here is shared.
//!
//! A body is what follows the varlena header of a numeric (numeric.c, `NumericChoice`): a short header of one word, or
//! a long one of two, then digits of base 10000, most significant first, without zero digits at either end. Words are
//! little-endian.

use crate::formats::digit_pairs::digit_pair;

pub(crate) const SIGN_MASK: u16 = 0xC000;
pub(crate) const NEGATIVE: u16 = 0x4000;
const SHORT: u16 = 0x8000;
pub(crate) const SPECIAL: u16 = 0xC000;
const NAN: u16 = 0xC000;
const INFINITY: u16 = 0xD000;
const MINUS_INFINITY: u16 = 0xF000;
const SHORT_NEGATIVE: u16 = 0x2000;
pub(crate) const SHORT_SCALE_SHIFT: u16 = 7;
pub(crate) const SHORT_SCALE_MAX: usize = 63;
const SHORT_WEIGHT_BITS: u16 = 0x007F;
const SHORT_WEIGHT_MIN: i32 = -64;
const SHORT_WEIGHT_MAX: i32 = 63;
const LONG_SCALE_MASK: u16 = 0x3FFF;

/// Decimal digits in one digit of base 10000.
const GROUP: usize = 4;

/// The parts of a finite body.
pub(crate) struct Parts<'a> {
    pub negative: bool,
    /// Decimal digits to show after the point.
    pub scale: usize,
    /// Power of 10000 of the first digit.
    pub weight: i32,
    /// Two bytes each.
    pub digits: &'a [u8],
}

/// Most bytes that [`to_text`] appends while it writes the text of `body`. A caller that makes room for as many before
/// is sure that there is memory.
#[must_use]
#[inline]
pub fn text_bound(body: &[u8]) -> usize {
    match word(body, 0) {
        Some(header) if header & SIGN_MASK != SHORT && header & SIGN_MASK != SPECIAL => {
            let weight = word(body, 2).map_or(0, |weight| i32::from(weight.cast_signed()));
            longest_text(weight, usize::from(header & LONG_SCALE_MASK))
        }
        _ => LONGEST_SHORT,
    }
}

/// The same for [`from_text`] and `text`.
#[must_use]
pub fn body_bound(text: &[u8]) -> usize {
    // One digit per four characters, a few more at both ends and around the point, and a header.
    text.len() / 2 + 16
}

/// Sign, digits, point, and decimals behind the last that is shown.
fn longest_text(weight: i32, scale: usize) -> usize {
    2 + (weight + 1).max(1) as usize * GROUP + scale + GROUP
}

/// The longest text of a body with a short header: weight and scale have few bits.
const LONGEST_SHORT: usize = 2 + (SHORT_WEIGHT_MAX as usize + 1) * GROUP + SHORT_SCALE_MAX + GROUP;

/// Appends exactly what `numeric_out` prints for `body`.
///
/// Returns false, with `out` unchanged, when the bytes are no numeric as the server makes them: then the text would not
/// stand for them. (A long header where a short one would do is accepted: such values survive from old servers.)
pub fn to_text(body: &[u8], out: &mut Vec<u8>) -> bool {
    let Some(header) = word(body, 0) else {
        return false;
    };
    if header & SIGN_MASK == SPECIAL {
        let text: &[u8] = match (header, body.len()) {
            // Servers before 9.1 stored NaN with a long header.
            (NAN, 2 | 4) => b"NaN",
            (INFINITY, 2) => b"Infinity",
            (MINUS_INFINITY, 2) => b"-Infinity",
            _ => return false,
        };
        out.extend_from_slice(text);
        return true;
    }
    let start = out.len();
    let printed = parts(header, body).is_some_and(|parts| print(&parts, out).is_some());
    if !printed {
        out.truncate(start);
    }
    printed
}

/// Appends the body of the value that `text` shows, exactly as `make_result` lays it out.
///
/// Returns false, with `out` unchanged, for any text that [`to_text`] does not produce.
pub fn from_text(text: &[u8], out: &mut Vec<u8>) -> bool {
    let special = match text {
        b"NaN" => Some(NAN),
        b"Infinity" => Some(INFINITY),
        b"-Infinity" => Some(MINUS_INFINITY),
        _ => None,
    };
    if let Some(header) = special {
        push_word(out, header);
        return true;
    }
    let start = out.len();
    let parsed = parse(text, out).is_some();
    if !parsed {
        out.truncate(start);
    }
    parsed
}

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let pair = bytes.get(at..at + 2)?;
    Some(u16::from_le_bytes([pair[0], pair[1]]))
}

fn push_word(out: &mut Vec<u8>, word: u16) {
    out.extend_from_slice(&word.to_le_bytes());
}

/// Takes a finite body apart and checks that the server would make it: no zero digits at either end, none hidden by the
/// scale, no negative zero.
pub(crate) fn parts(header: u16, body: &[u8]) -> Option<Parts<'_>> {
    let parts = if header & SIGN_MASK == SHORT {
        // Seven bits of two's complement, sign bit included.
        let weight = ((header & SHORT_WEIGHT_BITS) << 9).cast_signed() >> 9;
        Parts {
            negative: header & SHORT_NEGATIVE != 0,
            scale: usize::from(header >> SHORT_SCALE_SHIFT) & SHORT_SCALE_MAX,
            weight: i32::from(weight),
            digits: &body[2..],
        }
    } else {
        Parts {
            negative: header & SIGN_MASK == NEGATIVE,
            scale: usize::from(header & LONG_SCALE_MASK),
            weight: i32::from(word(body, 2)?.cast_signed()),
            digits: &body[4..],
        }
    };
    if !parts.digits.len().is_multiple_of(2) {
        return None;
    }
    let count = parts.digits.len() / 2;
    if count == 0 {
        return (parts.weight == 0 && !parts.negative).then_some(parts);
    }
    let first = word(parts.digits, 0)?;
    let last = word(parts.digits, parts.digits.len() - 2)?;
    if first == 0 || last == 0 {
        return None;
    }
    let fraction_groups = count as i32 - (parts.weight + 1);
    if fraction_groups > 0 {
        let shown = fraction_groups as usize * GROUP - trailing_zeros(last);
        if shown > parts.scale {
            return None;
        }
    }
    Some(parts)
}

/// Decimal zeros at the end of a digit that is not zero.
fn trailing_zeros(digit: u16) -> usize {
    match digit {
        _ if digit.is_multiple_of(1000) => 3,
        _ if digit.is_multiple_of(100) => 2,
        _ if digit.is_multiple_of(10) => 1,
        _ => 0,
    }
}

fn print(parts: &Parts<'_>, out: &mut Vec<u8>) -> Option<()> {
    let start = out.len();
    out.resize(start + longest_text(parts.weight, parts.scale), 0);
    let length = print_into(parts, &mut out[start..])?;
    out.truncate(start + length);
    Some(())
}

/// Writes the text to the start of `out`, which is long enough, and returns its length.
fn print_into(parts: &Parts<'_>, out: &mut [u8]) -> Option<usize> {
    let count = parts.digits.len() / 2;
    // Groups before the first digit and behind the last are zero.
    let digit = |position: i32| -> Option<u16> {
        match usize::try_from(position) {
            Ok(position) if position < count => word(parts.digits, position * 2).filter(|&value| value <= 9999),
            _ => Some(0),
        }
    };
    let mut end = 0;
    if parts.negative {
        out[0] = b'-';
        end = 1;
    }
    if parts.weight < 0 {
        out[end] = b'0';
        end += 1;
    } else {
        let first = digit(0)?;
        let leading = usize::from(first < 10) + usize::from(first < 100) + usize::from(first < 1000);
        // Writing a whole group, and the next one over what is too much, is quicker than copying the exact number of
        // bytes.
        let shown = u32::from_le_bytes(decimal(first)) >> (8 * leading);
        out[end..end + GROUP].copy_from_slice(&shown.to_le_bytes());
        end += GROUP - leading;
        for position in 1..=parts.weight {
            out[end..end + GROUP].copy_from_slice(&decimal(digit(position)?));
            end += GROUP;
        }
    }
    if parts.scale > 0 {
        out[end] = b'.';
        let mut group = end + 1;
        end = group + parts.scale;
        let mut position = parts.weight + 1;
        while group < end {
            out[group..group + GROUP].copy_from_slice(&decimal(digit(position)?));
            group += GROUP;
            position += 1;
        }
    }
    Some(end)
}

/// The four decimals of a digit below 10000.
fn decimal(digit: u16) -> [u8; GROUP] {
    let high = digit_pair(usize::from(digit / 100));
    let low = digit_pair(usize::from(digit));
    [high[0], high[1], low[0], low[1]]
}

fn parse(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (negative, magnitude) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let point = magnitude.iter().position(|&b| b == b'.');
    let (whole, fraction) = match point {
        Some(at) if at + 1 < magnitude.len() => (&magnitude[..at], &magnitude[at + 1..]),
        Some(_) => return None,
        None => (magnitude, &magnitude[..0]),
    };
    let scale = fraction.len();
    if scale > usize::from(LONG_SCALE_MASK) {
        return None;
    }
    let (weight, whole, fraction) = match whole {
        b"0" => {
            let zeros = fraction.iter().take_while(|&&b| b == b'0').count();
            if zeros == scale {
                return (!negative).then(|| push_header(out, false, scale, 0));
            }
            let skipped = zeros / GROUP;
            let weight = -1 - skipped as i32;
            (weight, &whole[..0], &fraction[skipped * GROUP..])
        }
        [b'1'..=b'9', ..] => {
            let weight = i16::try_from(whole.len().div_ceil(GROUP) - 1).ok()?;
            (i32::from(weight), whole, fraction)
        }
        _ => return None,
    };
    out.reserve(4 + whole.len() / 2 + fraction.len() / 2 + 4);
    push_header(out, negative, scale, weight);
    let partial = whole.len() % GROUP;
    if partial > 0 {
        let mut padded = [b'0'; GROUP];
        padded[GROUP - partial..].copy_from_slice(&whole[..partial]);
        push_word(out, group(padded)?);
    }
    let mut end = out.len();
    push_groups(&whole[partial..], out, &mut end)?;
    push_groups(fraction, out, &mut end)?;
    out.truncate(end);
    Some(())
}

fn push_header(out: &mut Vec<u8>, negative: bool, scale: usize, weight: i32) {
    if scale <= SHORT_SCALE_MAX && (SHORT_WEIGHT_MIN..=SHORT_WEIGHT_MAX).contains(&weight) {
        let sign = if negative { SHORT_NEGATIVE } else { 0 };
        let weight = weight as u16 & SHORT_WEIGHT_BITS;
        push_word(out, SHORT | sign | ((scale as u16) << SHORT_SCALE_SHIFT) | weight);
    } else {
        let sign = if negative { NEGATIVE } else { 0 };
        push_word(out, sign | scale as u16);
        push_word(out, weight as u16);
    }
}

/// Appends the digits of `decimals`, the last padded with zeros; `end` follows the last one that is not zero.
fn push_groups(decimals: &[u8], out: &mut Vec<u8>, end: &mut usize) -> Option<()> {
    let (full, rest) = decimals.as_chunks::<GROUP>();
    let mut push = |chunk: [u8; GROUP]| -> Option<()> {
        let value = group(chunk)?;
        push_word(out, value);
        if value != 0 {
            *end = out.len();
        }
        Some(())
    };
    for &chunk in full {
        push(chunk)?;
    }
    if !rest.is_empty() {
        let mut padded = [b'0'; GROUP];
        padded[..rest.len()].copy_from_slice(rest);
        push(padded)?;
    }
    Some(())
}

/// The number that four decimals stand for.
fn group(decimals: [u8; GROUP]) -> Option<u16> {
    decimals.iter().try_fold(0u16, |value, &byte| byte.is_ascii_digit().then(|| value * 10 + u16::from(byte - b'0')))
}
