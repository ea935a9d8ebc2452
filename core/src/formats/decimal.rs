//! Decimal text, as [`crate::formats::numeric::to_text`] prints it, to the numbers of fixed size that clients can ask for. A number that
//! the target cannot hold exactly is never rounded. Pure functions: nothing here is shared.

use std::fmt::Write;

/// Most digits that a decimal of 128 bits holds.
pub const MAX_PRECISION: u8 = 38;

/// Decimal digits that every float of 64 bits keeps (`DBL_DIG`), if the number is far from both ends of its range.
const SAFE_DIGITS: usize = 15;
/// A number is near an end of the range if it has more digits than this before or behind the point. It is then compared digit by digit.
const SAFE_PLACES: usize = 290;
/// Any number of this many decimal digits fits in 64 bits.
const BLOCK: usize = 19;

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

/// The number that `text` shows, times ten to the power of `scale`. It has at most `precision` digits, of which `scale` stand behind the
/// point.
///
/// # Errors
/// Why there is no such integer.
///
/// # Panics
/// If `precision` is above [`MAX_PRECISION`] or below `scale`.
pub fn to_decimal128(text: &[u8], precision: u8, scale: u8) -> Result<i128, Misfit> {
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
    if beyond.iter().any(|&digit| digit != b'0') {
        return Err(Misfit::NotExact);
    }
    // At most `precision` digits in all, so this stays below ten to the power of 38.
    let digits = append(append(0, whole), kept);
    let value = (digits * power_of_ten(usize::from(scale) - kept.len())).cast_signed();
    Ok(if negative { -value } else { value })
}

/// The float whose shortest decimal text stands for the same number as `text`.
///
/// # Errors
/// `OutOfRange` beyond the largest float, `NotExact` when the nearest float stands for another number.
pub fn to_float64(text: &[u8]) -> Result<f64, Misfit> {
    let value: f64 = match text {
        b"NaN" => return Ok(f64::NAN),
        b"Infinity" => return Ok(f64::INFINITY),
        b"-Infinity" => return Ok(f64::NEG_INFINITY),
        _ => str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or(Misfit::NotExact)?,
    };
    let (_, magnitude) = sign(text);
    let (whole, fraction) = split(magnitude);
    if whole.len() + fraction.len() <= SAFE_DIGITS {
        return Ok(value);
    }
    if value.is_infinite() {
        return Err(Misfit::OutOfRange);
    }
    let number = Digits::of(whole, fraction);
    if number.count() == 0 {
        return Ok(value);
    }
    if number.count() <= SAFE_DIGITS && whole.len() < SAFE_PLACES && fraction.len() < SAFE_PLACES {
        return Ok(value);
    }
    let mut shortest = Shortest::default();
    // The text of a float never outgrows its place, see `Shortest`.
    write!(shortest, "{:e}", value.abs()).map_err(|_| Misfit::NotExact)?;
    if number.stands_for(&shortest) { Ok(value) } else { Err(Misfit::NotExact) }
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

/// `value` with more digits at its end.
fn append(value: u128, digits: &[u8]) -> u128 {
    digits.chunks(BLOCK).fold(value, |value, block| {
        let number = block.iter().fold(0u64, |number, digit| number * 10 + u64::from(digit - b'0'));
        value * power_of_ten(block.len()) + u128::from(number)
    })
}

fn power_of_ten(exponent: usize) -> u128 {
    const POWERS: [u128; MAX_PRECISION as usize + 1] = {
        let mut powers = [1; MAX_PRECISION as usize + 1];
        let mut exponent = 1;
        while exponent < powers.len() {
            powers[exponent] = powers[exponent - 1] * 10;
            exponent += 1;
        }
        powers
    };
    POWERS[exponent]
}

/// A number's digits from the first to the last that is not zero.
struct Digits<'a> {
    whole: &'a [u8],
    fraction: &'a [u8],
    /// Power of ten of the first.
    exponent: i32,
}

impl<'a> Digits<'a> {
    fn of(whole: &'a [u8], fraction: &'a [u8]) -> Self {
        let is_zero = |&&byte: &&u8| byte == b'0';
        let ending = |digits: &[u8]| digits.len() - digits.iter().rev().take_while(is_zero).count();
        let fraction = &fraction[..ending(fraction)];
        if whole != b"0" {
            let exponent = whole.len() as i32 - 1;
            let whole = if fraction.is_empty() { &whole[..ending(whole)] } else { whole };
            return Self { whole, fraction, exponent };
        }
        let zeros = fraction.iter().take_while(is_zero).count();
        Self { whole: &[], fraction: &fraction[zeros..], exponent: -1 - zeros as i32 }
    }

    fn count(&self) -> usize {
        self.whole.len() + self.fraction.len()
    }

    fn stands_for(&self, shortest: &Shortest) -> bool {
        let (mantissa, exponent) = shortest.parts();
        let digits = mantissa.iter().filter(|&&byte| byte != b'.');
        self.exponent == exponent && self.whole.iter().chain(self.fraction).eq(digits)
    }
}

/// The shortest scientific text of a float that is not zero: at most 17 digits, a point, and `e-324`.
#[derive(Default)]
struct Shortest {
    text: [u8; 32],
    length: usize,
}

impl Shortest {
    fn parts(&self) -> (&[u8], i32) {
        let text = &self.text[..self.length];
        let end = text.iter().position(|&byte| byte == b'e').unwrap_or(self.length);
        let exponent = str::from_utf8(text.get(end + 1..).unwrap_or_default()).ok().and_then(|text| text.parse().ok());
        (&text[..end], exponent.unwrap_or_default())
    }
}

impl Write for Shortest {
    fn write_str(&mut self, more: &str) -> std::fmt::Result {
        let end = self.length + more.len();
        self.text.get_mut(self.length..end).ok_or(std::fmt::Error)?.copy_from_slice(more.as_bytes());
        self.length = end;
        Ok(())
    }
}
