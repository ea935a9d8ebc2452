//! Decimal text, as [`crate::formats::numeric::to_text`] prints it, to the numbers of fixed size that clients can ask
//! for. A number that the target cannot hold exactly is rounded by the functions alone whose names say so. Pure
//! functions: nothing here is shared.

/// Most digits that a decimal of 128 bits holds.
pub const MAX_PRECISION: u8 = 38;

/// Decimal digits that every float of 64 bits keeps (`DBL_DIG`).
const SAFE_DIGITS: usize = 15;

/// Numbers of fewer digits fit into 64 bits.
const SHORT: usize = 20;

/// Why the target cannot hold a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misfit {
    /// It is NaN or infinite, and the target has no such value.
    NotFinite,
    /// It is too large.
    OutOfRange,
    /// It has more digits than the target keeps.
    NotExact,
}

/// The number that `text` shows, times ten to the power of `scale`. It has at most `precision` digits, of which `scale`
/// stand behind the point.
///
/// # Errors
/// Why there is no such integer.
///
/// # Panics
/// If `precision` is above [`MAX_PRECISION`] or below `scale`.
pub fn to_decimal128(text: &[u8], precision: u8, scale: u8) -> Result<i128, Misfit> {
    let Scaled { negative, value, beyond } = scaled(text, precision, scale)?;
    if beyond.iter().any(|&digit| digit != b'0') {
        return Err(Misfit::NotExact);
    }
    Ok(if negative { -value } else { value })
}

/// As [`to_decimal128`], rounded to the nearest such number, and away from zero between two of them, as PostgreSQL's
/// `round` does.
///
/// # Errors
/// Why there is no such integer.
///
/// # Panics
/// If `precision` is above [`MAX_PRECISION`] or below `scale`.
pub fn to_rounded_decimal128(text: &[u8], precision: u8, scale: u8) -> Result<i128, Misfit> {
    let Scaled { negative, value, beyond } = scaled(text, precision, scale)?;
    let value = value + i128::from(beyond.first().is_some_and(|&digit| digit >= b'5'));
    if value >= 10_i128.pow(u32::from(precision)) {
        return Err(Misfit::OutOfRange);
    }
    Ok(if negative { -value } else { value })
}

/// A number in parts: its sign, its digits up to a scale as a number, and those beyond.
struct Scaled<'a> {
    negative: bool,
    value: i128,
    beyond: &'a [u8],
}

/// The parts of a finite number that has at most `precision - scale` digits before the point.
fn scaled(text: &[u8], precision: u8, scale: u8) -> Result<Scaled<'_>, Misfit> {
    assert!(scale <= precision && precision <= MAX_PRECISION);
    let (negative, magnitude) = sign(text);
    if !magnitude.first().is_some_and(u8::is_ascii_digit) {
        return Err(Misfit::NotFinite);
    }
    let (whole, fraction) = split(magnitude);
    let whole = if whole == b"0" { &whole[1..] } else { whole };
    if whole.len() > usize::from(precision - scale) {
        return Err(Misfit::OutOfRange);
    }
    let kept = fraction.len().min(usize::from(scale));
    let (kept, beyond) = fraction.split_at(kept);
    let mut digits = [b'0'; MAX_PRECISION as usize];
    digits[..whole.len()].copy_from_slice(whole);
    digits[whole.len()..][..kept.len()].copy_from_slice(kept);
    let digits = &digits[..whole.len() + usize::from(scale)];
    // There are none if nothing stands before the point, and nothing is wanted behind it.
    let digits = str::from_utf8(digits).unwrap_or_default();
    let value = if digits.len() < SHORT { digits.parse::<u64>().map(i128::from).ok() } else { digits.parse().ok() };
    Ok(Scaled { negative, value: value.unwrap_or(0), beyond })
}

/// The float whose shortest decimal text stands for the same number as `text`.
///
/// # Errors
/// `OutOfRange` beyond the largest float, `NotExact` when the nearest float stands for another number.
pub fn to_float64(text: &[u8]) -> Result<f64, Misfit> {
    let value = to_nearest_float64(text)?;
    if !value.is_finite() || text.len() <= SAFE_DIGITS {
        return Ok(value);
    }
    let text = str::from_utf8(text).map_err(|_| Misfit::NotExact)?;
    if significant(text) == significant(&value.to_string()) { Ok(value) } else { Err(Misfit::NotExact) }
}

/// The float that is nearest to the number.
///
/// # Errors
/// `OutOfRange` beyond the largest float.
pub fn to_nearest_float64(text: &[u8]) -> Result<f64, Misfit> {
    match text {
        b"NaN" => Ok(f64::NAN),
        b"Infinity" => Ok(f64::INFINITY),
        b"-Infinity" => Ok(f64::NEG_INFINITY),
        _ => {
            let text = str::from_utf8(text).map_err(|_| Misfit::NotExact)?;
            let value: f64 = text.parse().map_err(|_| Misfit::NotExact)?;
            if value.is_finite() { Ok(value) } else { Err(Misfit::OutOfRange) }
        }
    }
}

/// A number without the zeros behind its last decimal.
fn significant(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

fn sign(text: &[u8]) -> (bool, &[u8]) {
    match text.strip_prefix(b"-") {
        Some(magnitude) => (true, magnitude),
        None => (false, text),
    }
}

/// The digits before and behind the point.
fn split(magnitude: &[u8]) -> (&[u8], &[u8]) {
    match magnitude.iter().position(|&byte| byte == b'.') {
        Some(point) => (&magnitude[..point], &magnitude[point + 1..]),
        None => (magnitude, &[]),
    }
}
