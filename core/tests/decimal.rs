//! Decimal text to 128-bit decimals and to floats: exact, or refused.

use arrow_cache_core::formats::decimal::{
    Misfit, to_decimal128, to_float64, to_nearest_float64, to_rounded_decimal128,
};
use proptest::prelude::*;

fn decimal(text: &str, precision: u8, scale: u8) -> Result<i128, Misfit> {
    to_decimal128(text.as_bytes(), precision, scale)
}

/// The bits of the float, so that NaN and the sign of zero are compared.
fn float(text: &str) -> Result<u64, Misfit> {
    to_float64(text.as_bytes()).map(f64::to_bits)
}

#[test]
fn decimals_at_the_edges() {
    let most = "9".repeat(38);
    let all_fraction = format!("0.{most}");
    for (text, precision, scale, expected) in [
        ("0", 1, 0, Ok(0)),
        ("0.000", 1, 0, Ok(0)),
        ("0.000", 38, 38, Ok(0)),
        ("1.5", 2, 1, Ok(15)),
        ("-1.5", 3, 2, Ok(-150)),
        ("1.500", 2, 1, Ok(15)),
        ("1.501", 2, 1, Err(Misfit::NotExact)),
        ("0.0001", 4, 4, Ok(1)),
        ("0.00001", 4, 4, Err(Misfit::NotExact)),
        ("9.9", 2, 1, Ok(99)),
        ("10.0", 2, 1, Err(Misfit::OutOfRange)),
        ("10", 2, 1, Err(Misfit::OutOfRange)),
        ("12300", 5, 0, Ok(12300)),
        ("1", 38, 38, Err(Misfit::OutOfRange)),
        (&most, 38, 0, Ok(10i128.pow(38) - 1)),
        (&all_fraction, 38, 38, Ok(10i128.pow(38) - 1)),
        (&format!("-{most}"), 38, 0, Ok(1 - 10i128.pow(38))),
        (&format!("{most}0"), 38, 0, Err(Misfit::OutOfRange)),
        (&format!("{most}.0"), 38, 0, Ok(10i128.pow(38) - 1)),
        (&format!("12345678901234567890123456789.{}", "0".repeat(100)), 38, 9, {
            Ok(12_345_678_901_234_567_890_123_456_789_000_000_000)
        }),
        ("NaN", 38, 9, Err(Misfit::NotFinite)),
        ("Infinity", 38, 9, Err(Misfit::NotFinite)),
        ("-Infinity", 38, 9, Err(Misfit::NotFinite)),
    ] {
        assert_eq!(decimal(text, precision, scale), expected, "{text} in ({precision}, {scale})");
    }
}

#[test]
fn floats_at_the_edges() {
    let third = "0.3333333333333333"; // sixteen digits, and the shortest text of 1/3
    let largest = format!("17976931348623157{}", "0".repeat(292));
    let least = format!("0.{}5", "0".repeat(323));
    let zeros = format!("0.{}", "0".repeat(400));
    for (text, expected) in [
        ("0", Ok(0.0)),
        (&*zeros, Ok(0.0)),
        ("1.50", Ok(1.5)),
        ("-0.1", Ok(-0.1)),
        ("0.1000000000000000000000000000", Ok(0.1)),
        ("100000000000000000000000", Ok(1e23)),
        ("123456789012345", Ok(123_456_789_012_345.0)),
        ("9007199254740992", Ok(9_007_199_254_740_992.0)),
        ("9007199254740993", Err(Misfit::NotExact)),
        (third, Ok(1.0 / 3.0)),
        ("0.33333333333333333", Err(Misfit::NotExact)),
        // The exact value of the float 0.1 differs from its shortest text.
        ("0.1000000000000000055511151231257827021181583404541015625", Err(Misfit::NotExact)),
        (&largest, Ok(f64::MAX)),
        (&format!("{largest}0"), Err(Misfit::OutOfRange)),
        (&least, Ok(5e-324)),
        (&format!("0.{}4", "0".repeat(323)), Err(Misfit::NotExact)),
        (&format!("0.{}1", "0".repeat(16_000)), Err(Misfit::NotExact)),
        (&format!("1{}", "0".repeat(131_071)), Err(Misfit::OutOfRange)),
        ("NaN", Ok(f64::NAN)),
        ("Infinity", Ok(f64::INFINITY)),
        ("-Infinity", Ok(f64::NEG_INFINITY)),
    ] {
        assert_eq!(float(text), expected.map(f64::to_bits), "{text:.40}");
    }
}

#[test]
fn decimals_are_rounded_away_from_zero() {
    for (text, precision, scale, expected) in [
        ("0.5", 1, 0, Ok(1)),
        ("-0.5", 1, 0, Ok(-1)),
        ("0.4999999", 1, 0, Ok(0)),
        ("-0.04", 3, 1, Ok(0)),
        ("1333333.833333333333", 38, 2, Ok(133_333_383)),
        ("2.675", 3, 2, Ok(268)),
        ("9.5", 1, 0, Err(Misfit::OutOfRange)),
        ("-9.5", 1, 0, Err(Misfit::OutOfRange)),
        ("9.4", 1, 0, Ok(9)),
        ("0.99", 2, 2, Ok(99)),
        ("0.995", 2, 2, Err(Misfit::OutOfRange)),
        (&format!("{}.5", "9".repeat(38)), 38, 0, Err(Misfit::OutOfRange)),
        ("NaN", 38, 9, Err(Misfit::NotFinite)),
        ("-Infinity", 38, 9, Err(Misfit::NotFinite)),
    ] {
        assert_eq!(
            to_rounded_decimal128(text.as_bytes(), precision, scale),
            expected,
            "{text} in ({precision}, {scale})"
        );
    }
}

/// Digits with zeros before and behind, of every length that matters.
fn texts() -> impl Strategy<Value = String> {
    let digits = |most: usize| prop::collection::vec(prop::sample::select(b"000012589".to_vec()), 0..most);
    (any::<bool>(), digits(45), digits(45)).prop_map(|(negative, whole, fraction)| {
        let text = |digits: Vec<u8>| String::from_utf8(digits).unwrap();
        let (whole, fraction) = (text(whole), text(fraction));
        let whole = whole.trim_start_matches('0');
        let whole = if whole.is_empty() { "0" } else { whole };
        let point = if fraction.is_empty() { "" } else { "." };
        let zero = whole == "0" && fraction.bytes().all(|b| b == b'0');
        let sign = if negative && !zero { "-" } else { "" };
        format!("{sign}{whole}{point}{fraction}")
    })
}

/// A number as sign, digits without zeros at either end, and the power of ten of the last digit.
fn canonical(text: &str) -> (bool, String, i32) {
    let (text, exponent) = text.split_once('e').map_or((text, 0), |(text, e)| (text, e.parse().unwrap()));
    let magnitude = text.trim_start_matches('-');
    let (whole, fraction) = magnitude.split_once('.').unwrap_or((magnitude, ""));
    let all = format!("{whole}{fraction}");
    let ended = all.trim_end_matches('0');
    let digits = ended.trim_start_matches('0').to_owned();
    if digits.is_empty() {
        return (false, digits, 0);
    }
    let last = exponent - fraction.len() as i32 + (all.len() - ended.len()) as i32;
    (text.starts_with('-'), digits, last)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 8 } else { 4000 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_decimal_is_the_number_or_refused(text in texts(), precision in 1u8..=38, scale in 0u8..=38) {
        let scale = scale.min(precision);
        let (negative, digits, last) = canonical(&text);
        let places = last + i32::from(scale);
        match decimal(&text, precision, scale) {
            Ok(value) => {
                prop_assert_eq!(canonical(&format!("{value}e-{scale}")), (negative, digits, last));
                prop_assert!(value.unsigned_abs() < 10u128.pow(u32::from(precision)));
            }
            Err(Misfit::NotExact) => prop_assert!(places < 0),
            Err(Misfit::OutOfRange) => prop_assert!(digits.len() as i32 + places > i32::from(precision)),
            Err(Misfit::NotFinite) => prop_assert!(false),
        }
    }

    #[test]
    fn a_float_has_the_same_shortest_text_or_is_refused(text in texts()) {
        let nearest: f64 = text.parse().unwrap();
        let same = canonical(&format!("{nearest:e}")) == canonical(&text);
        prop_assert_eq!(float(&text), if same { Ok(nearest.to_bits()) } else { Err(Misfit::NotExact) });
    }

    /// What is exact is the same, and no other one of that scale is nearer.
    #[test]
    fn a_rounded_decimal_is_the_nearest(text in texts(), scale in 0u8..=9) {
        let rounded = to_rounded_decimal128(text.as_bytes(), 38, scale);
        if let Ok(exact) = decimal(&text, 38, scale) {
            prop_assert_eq!(rounded, Ok(exact));
        }
        // With ten digits more the number lies within half a unit, and on its own side if it lies between two.
        if let (Ok(rounded), Ok(finer)) = (rounded, to_rounded_decimal128(text.as_bytes(), 38, scale + 10)) {
            let unit = 10_i128.pow(10);
            let error = finer - rounded * unit;
            prop_assert!(error.abs() <= unit / 2);
            prop_assert!(error.abs() < unit / 2 || (error > 0) != (rounded > 0));
        }
    }

    #[test]
    fn the_nearest_float_is_that_of_rust(text in texts()) {
        prop_assert_eq!(to_nearest_float64(text.as_bytes()), Ok(text.parse::<f64>().unwrap()));
    }

    #[test]
    fn the_text_of_every_float_is_accepted(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        if value.is_finite() && bits != (-0.0f64).to_bits() {
            prop_assert_eq!(float(&format!("{value}")), Ok(bits));
        }
    }
}
