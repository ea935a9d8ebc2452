//! float4 and float8 as the server prints them while `extra_float_digits` is above 0: the shortest text that reads
//! back as the same value (d2s.c, f2s.c).
//!
//! zmij finds the same digits, with one exception: the server never takes a text that lies exactly in the middle
//! between two floats, even where reading rounds it the right way. Such values are refused; they are rare, and large.

use super::LONGEST;
use super::text::{integer, word};

/// Shortest texts from here on are printed with an exponent.
const FLOAT8_FIXED_END: f64 = 1e15;
const FLOAT4_FIXED_END: f32 = 1e6;
/// So are those below.
const FLOAT8_FIXED_START: f64 = 1e-4;
const FLOAT4_FIXED_START: f32 = 1e-4;

/// What both types of floats have, for the one test of a middle.
struct Exact {
    /// The value is `significand * 2^exponent`.
    significand: u64,
    exponent: i32,
    /// The significand is the lowest with this exponent, so that the next value below is nearer.
    lowest: bool,
}

/// float8
#[inline]
pub fn float8(value: f64, out: &mut [u8; LONGEST]) -> Option<usize> {
    let size = value.abs();
    if (FLOAT8_FIXED_START..FLOAT8_FIXED_END).contains(&size) {
        return Some(fixed(zmij::Buffer::new().format_finite(value), out));
    }
    if let Some(length) = special(value.is_nan(), value.is_infinite(), value == 0.0, value.is_sign_negative(), out) {
        return Some(length);
    }
    let bits = size.to_bits();
    let (raw, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
    let exact = Exact {
        significand: if raw == 0 { fraction } else { fraction | 1 << 52 },
        exponent: raw.max(1) - 1075,
        lowest: fraction == 0 && raw > 1,
    };
    scientific(zmij::Buffer::new().format_finite(value), &exact, out)
}

/// float4
#[inline]
pub fn float4(value: f32, out: &mut [u8; LONGEST]) -> Option<usize> {
    let size = value.abs();
    if (FLOAT4_FIXED_START..FLOAT4_FIXED_END).contains(&size) {
        return Some(fixed(zmij::Buffer::new().format_finite(value), out));
    }
    if let Some(length) = special(value.is_nan(), value.is_infinite(), value == 0.0, value.is_sign_negative(), out) {
        return Some(length);
    }
    let bits = size.to_bits();
    let (raw, fraction) = ((bits >> 23) as i32, bits & ((1 << 23) - 1));
    let exact = Exact {
        significand: u64::from(if raw == 0 { fraction } else { fraction | 1 << 23 }),
        exponent: raw.max(1) - 150,
        lowest: fraction == 0 && raw > 1,
    };
    scientific(zmij::Buffer::new().format_finite(value), &exact, out)
}

/// Values that have a word of their own.
fn special(nan: bool, infinite: bool, zero: bool, negative: bool, out: &mut [u8; LONGEST]) -> Option<usize> {
    match (nan, infinite, zero, negative) {
        (true, ..) => Some(word(b"NaN", out)),
        (_, true, _, false) => Some(word(b"Infinity", out)),
        (_, true, _, true) => Some(word(b"-Infinity", out)),
        (_, _, true, false) => Some(word(b"0", out)),
        (_, _, true, true) => Some(word(b"-0", out)),
        _ => None,
    }
}

/// A text without exponent: zmij's own, but for the fraction of whole numbers.
#[inline]
fn fixed(text: &str, out: &mut [u8; LONGEST]) -> usize {
    let text = text.as_bytes();
    let text = text.strip_suffix(b".0").unwrap_or(text);
    out[..text.len()].copy_from_slice(text);
    text.len()
}

/// A text with an exponent of at least two digits. `None` if it lies in the middle between two values.
fn scientific(text: &str, exact: &Exact, out: &mut [u8; LONGEST]) -> Option<usize> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (decimals, shift) = match text.split_once('e') {
        Some((decimals, exponent)) => (decimals, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = decimals.split_once('.').unwrap_or((decimals, ""));
    let mut digits = whole.bytes().chain(fraction.bytes()).fold(0u64, |all, digit| all * 10 + u64::from(digit - b'0'));
    let mut exponent = shift - fraction.len() as i32;
    while digits > 0 && digits.is_multiple_of(10) {
        digits /= 10;
        exponent += 1;
    }
    if is_middle(digits, exponent, exact) {
        return None;
    }
    let mut shown = [0; LONGEST];
    let count = integer(digits, &mut shown);
    let mut end = 0;
    if negative {
        out[0] = b'-';
        end = 1;
    }
    out[end] = shown[0];
    end += 1;
    if count > 1 {
        out[end] = b'.';
        out[end + 1..end + count].copy_from_slice(&shown[1..count]);
        end += count;
    }
    let exponent = exponent + count as i32 - 1;
    out[end] = b'e';
    out[end + 1] = if exponent < 0 { b'-' } else { b'+' };
    end += 2;
    let size = exponent.unsigned_abs();
    if size < 10 {
        out[end] = b'0';
        end += 1;
    }
    let count = integer(size, &mut shown);
    out[end..end + count].copy_from_slice(&shown[..count]);
    Some(end + count)
}

/// Is `digits * 10^exponent` as far from the value as from one of its neighbours?
fn is_middle(digits: u64, exponent: i32, exact: &Exact) -> bool {
    // Twice as fine as the values: a middle is an odd number there. Below the lowest significand, values are twice as
    // dense.
    let above = (2 * u128::from(exact.significand) + 1, exact.exponent - 1);
    let below = if exact.lowest {
        (4 * u128::from(exact.significand) - 1, exact.exponent - 2)
    } else {
        (2 * u128::from(exact.significand) - 1, exact.exponent - 1)
    };
    // A middle is an odd number of 55 bits at most times a power of two. Five to the 24th has more bits than that; and
    // with so many decimals behind the point there would be more digits than a float is ever printed with.
    if !(-24..=24).contains(&exponent) {
        return false;
    }
    let power = 5u128.pow(exponent.unsigned_abs());
    let equals = |(odd, two): (u128, i32)| {
        let (left, right) =
            if exponent >= 0 { (u128::from(digits) * power, odd) } else { (u128::from(digits), odd * power) };
        let shift = left.trailing_zeros() as i32;
        left >> shift == right && exponent + shift == two
    };
    equals(above) || equals(below)
}
