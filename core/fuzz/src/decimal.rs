//! Numerics as the numbers of fixed size that clients can ask for.

use arrow_cache_core::formats::decimal::{MAX_PRECISION, Misfit, to_decimal128, to_float64};
use arrow_cache_core::formats::numeric::from_text;

use super::numeric_text::spell;

/// Reads any bytes as a precision, a scale and the text of a numeric, as it is and spelled; other texts never come
/// here.
///
/// # Panics
/// When a promise is broken.
pub fn check(data: &[u8]) {
    let [precision, scale, rest @ ..] = data else {
        return;
    };
    let precision = 1 + precision % MAX_PRECISION;
    let scale = scale % (precision + 1);
    for text in [rest.to_vec(), spell(rest)] {
        if from_text(&text, &mut Vec::new()) {
            let text = str::from_utf8(&text).expect("numerics are ASCII");
            check_decimal(text, precision, scale);
            check_float(text);
        }
    }
}

fn check_decimal(text: &str, precision: u8, scale: u8) {
    let outcome = to_decimal128(text.as_bytes(), precision, scale);
    let Some(number) = Number::of(text) else {
        assert_eq!(outcome, Err(Misfit::NotFinite));
        return;
    };
    let places = number.last + i64::from(scale);
    match outcome {
        Ok(value) => {
            assert_eq!(Number::of(&format!("{value}e-{scale}")), Some(number), "the value is the same");
            assert!(value.unsigned_abs() < 10u128.pow(u32::from(precision)), "and has no more digits than it may");
        }
        Err(Misfit::NotExact) => assert!(places < 0, "{text} has no digit too many"),
        Err(Misfit::OutOfRange) => {
            assert!(number.digits.len() as i64 + places > i64::from(precision), "{text} has room")
        }
        Err(Misfit::NotFinite) => panic!("{text} is finite"),
    }
}

fn check_float(text: &str) {
    let outcome = to_float64(text.as_bytes());
    let nearest: f64 = text.parse().expect("Rust reads what numeric_out prints");
    let Some(number) = Number::of(text) else {
        assert_eq!(outcome.map(f64::to_bits), Ok(nearest.to_bits()), "every value that is not finite has a float");
        return;
    };
    let shown = Number::of(&format!("{nearest:e}"));
    match outcome {
        Ok(value) => {
            assert_eq!(value.to_bits(), nearest.to_bits());
            assert_eq!(shown, Some(number), "the float stands for the same number");
        }
        Err(Misfit::OutOfRange) => assert!(nearest.is_infinite(), "{text} has room"),
        Err(Misfit::NotExact) => assert_ne!(shown, Some(number), "{text} is a float's own text"),
        Err(Misfit::NotFinite) => panic!("{text} is finite"),
    }
}

/// A finite number as its digits from the first to the last that is not zero.
#[derive(PartialEq, Debug)]
struct Number {
    negative: bool,
    digits: String,
    /// Power of ten of the last digit.
    last: i64,
}

impl Number {
    fn of(text: &str) -> Option<Self> {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let magnitude = mantissa.trim_start_matches('-');
        let (whole, fraction) = magnitude.split_once('.').unwrap_or((magnitude, ""));
        let all = [whole, fraction].concat();
        if !all.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let ended = all.trim_end_matches('0');
        let digits = ended.trim_start_matches('0').to_owned();
        if digits.is_empty() {
            return Some(Self { negative: false, digits, last: 0 });
        }
        let last = exponent.parse::<i64>().ok()? + (all.len() - ended.len()) as i64 - fraction.len() as i64;
        Some(Self { negative: mantissa.starts_with('-'), digits, last })
    }
}
