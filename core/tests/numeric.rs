//! Numeric bodies and their text, compared with the words that numeric.c writes.

use arrow_cache_core::formats::numeric::{from_text, to_text};
use proptest::prelude::*;

fn body(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn text_of(body: &[u8]) -> Option<String> {
    let mut out = b"kept".to_vec();
    let good = to_text(body, &mut out);
    let rest = out.strip_prefix(b"kept").expect("what was there stays");
    assert!(good || rest.is_empty());
    good.then(|| String::from_utf8(rest.to_vec()).unwrap())
}

fn body_of(text: &str) -> Option<Vec<u8>> {
    let mut out = b"kept".to_vec();
    let good = from_text(text.as_bytes(), &mut out);
    let rest = out.strip_prefix(b"kept").expect("what was there stays");
    assert!(good || rest.is_empty());
    good.then(|| rest.to_vec())
}

/// A short header as `make_result` builds it.
fn short(negative: bool, scale: u16, weight: i16) -> u16 {
    let sign = if negative { 0x2000 } else { 0 };
    let below_zero = if weight < 0 { 0x40 } else { 0 };
    0x8000 | sign | (scale << 7) | below_zero | (weight as u16 & 0x3F)
}

#[test]
fn known_values_both_ways() {
    for (words, text) in [
        (vec![short(false, 0, 0)], "0"),
        (vec![short(false, 3, 0)], "0.000"),
        (vec![short(false, 63, 0)], &format!("0.{}", "0".repeat(63))),
        (vec![64, 0], &format!("0.{}", "0".repeat(64))),
        (vec![short(false, 0, 0), 1], "1"),
        (vec![short(true, 0, 0), 1], "-1"),
        (vec![short(false, 2, 0), 1, 5000], "1.50"),
        (vec![short(false, 1, 0), 1, 5000], "1.5"),
        (vec![short(false, 0, 1), 1], "10000"),
        (vec![short(false, 0, 1), 12, 3456], "123456"),
        (vec![short(false, 0, 2), 1, 0, 1], "100000001"),
        (vec![short(false, 5, 1), 1, 0, 0, 1000], "10000.00001"),
        (vec![short(true, 4, -1), 1], "-0.0001"),
        (vec![short(false, 5, -2), 1000], "0.00001"),
        (vec![short(false, 10, -2), 12, 3400], "0.0000001234"),
        (vec![short(false, 6, -1), 12, 3400], "0.001234"),
        (vec![short(false, 0, 1), 9999, 9999], "99999999"),
        (vec![short(false, 8, 1), 1234, 5678, 8765, 4321], "12345678.87654321"),
        (vec![short(false, 9, 1), 1234, 5678, 8765, 4321, 1000], "12345678.876543211"),
        (vec![short(false, 8, -2), 1], "0.00000001"),
        (vec![short(true, 8, -1), 1], "-0.00010000"),
        (vec![short(false, 1, 1), 1000], "10000000.0"),
        (vec![short(true, 8, 1), 1, 0, 0, 1], "-10000.00000001"),
        (vec![0xC000], "NaN"),
        (vec![0xD000], "Infinity"),
        (vec![0xF000], "-Infinity"),
        (vec![64, 0, 1], &format!("1.{}", "0".repeat(64))),
        (vec![0x4000 | 64, 0, 1], &format!("-1.{}", "0".repeat(64))),
        (vec![0, 64, 1], &format!("1{}", "0000".repeat(64))),
        (vec![short(false, 0, 63), 1], &format!("1{}", "0000".repeat(63))),
        (vec![0, 32767, 1], &format!("1{}", "0000".repeat(32767))),
        (vec![0, 32767, 9999], &format!("9999{}", "0000".repeat(32767))),
        (vec![16383, 0xFFFF, 1], &format!("0.0001{}", "0".repeat(16379))),
        (vec![16383, (-4096i16) as u16, 10], &format!("0.{}1", "0".repeat(16382))),
    ] {
        if cfg!(miri) && text.len() > 1000 {
            continue;
        }
        let body = body(&words);
        assert_eq!(text_of(&body).as_deref(), Some(text), "{words:x?}");
        assert_eq!(body_of(text), Some(body), "{text}");
    }
}

#[test]
fn short_weights_reach_down_to_minus_64() {
    // A scale that fits into a short header cannot reach this far. numeric.c would write it only for a value whose
    // digits the scale hides.
    assert_eq!(text_of(&body(&[short(false, 63, -64), 1])), None);
    assert_eq!(text_of(&body(&[short(false, 63, -15), 1])), Some(format!("0.{}1000", "0".repeat(59))));
    assert_eq!(text_of(&body(&[short(false, 63, -16), 10])), Some(format!("0.{}1", "0".repeat(62))));
}

#[test]
fn older_layouts_are_read() {
    assert_eq!(text_of(&body(&[0xC000, 0])).as_deref(), Some("NaN"));
    assert_eq!(text_of(&body(&[2, 0, 1, 5000])).as_deref(), Some("1.50"));
    assert_eq!(text_of(&body(&[0x4000 | 2, 0, 1, 5000])).as_deref(), Some("-1.50"));
}

#[test]
fn malformed_bodies_are_refused() {
    for words in [
        vec![],
        vec![0xC001],
        vec![0xE000],
        vec![0xD000, 0],
        vec![0xC000, 0, 0],
        vec![0x0000],
        vec![short(false, 0, 0), 10_000],
        vec![short(false, 0, 2), 1, 10_000, 1],
        vec![short(false, 0, 0), 0xFFFF],
        vec![short(false, 0, 1), 0, 1],
        vec![short(false, 0, 1), 1, 0],
        vec![short(true, 0, 0)],
        vec![short(false, 0, 1)],
        vec![short(false, 1, 0), 1, 5500],
        vec![short(false, 0, 0), 1, 5000],
        vec![short(false, 8, 1), 1, 10_000, 1],
        vec![short(false, 7, -2), 1],
    ] {
        assert_eq!(text_of(&body(&words)), None, "{words:x?}");
    }
    assert_eq!(text_of(&[0]), None);
    assert_eq!(text_of(&[0x00, 0x80, 1]), None);
    assert_eq!(text_of(&[0x00, 0x00, 0, 0, 1]), None);
}

#[test]
fn other_texts_are_refused() {
    let deep = format!("0.{}", "0".repeat(16384));
    let high = format!("1{}", "0".repeat(131_072));
    for text in [
        "",
        "-",
        ".",
        "-.",
        "+1",
        " 1",
        "1 ",
        "01",
        "00",
        "-0",
        "-0.00",
        "1.",
        ".5",
        "-.5",
        "1e5",
        "1.2.3",
        "1,5",
        "nan",
        "NAN",
        "infinity",
        "+Infinity",
        "inf",
        "--1",
        "0x1",
        "1a",
        "1.a",
        "12345a789",
        "1.2345a",
        "0.0a",
        &deep,
        &high,
    ] {
        assert_eq!(body_of(text), None, "{text:.20}");
    }
}

/// What numeric.c's `make_result` lays out for a value, from a plain reading of its text.
fn reference_body(text: &str) -> Vec<u8> {
    let (negative, magnitude) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = magnitude.split_once('.').unwrap_or((magnitude, ""));
    let scale = fraction.len();
    let groups = whole.len().div_ceil(4);
    let padded = format!("{whole:0>width$}{fraction}", width = groups * 4);
    let padded = format!("{padded}{}", "0".repeat((4 - padded.len() % 4) % 4));
    let mut digits: Vec<u16> = (0..padded.len() / 4).map(|i| padded[i * 4..i * 4 + 4].parse().unwrap()).collect();
    let mut weight = groups as i32 - 1;
    while digits.first() == Some(&0) {
        digits.remove(0);
        weight -= 1;
    }
    while digits.last() == Some(&0) {
        digits.pop();
    }
    if digits.is_empty() {
        weight = 0;
    }
    let mut words = if scale <= 63 && (-64..=63).contains(&weight) {
        vec![short(negative, scale as u16, weight as i16)]
    } else {
        vec![(if negative { 0x4000 } else { 0 }) | scale as u16, weight as u16]
    };
    words.extend(digits);
    body(&words)
}

fn texts() -> impl Strategy<Value = String> {
    let digits = |range| prop::collection::vec(prop::sample::select(b"000012589".to_vec()), range);
    (any::<bool>(), digits(0..300), digits(0..300), 0..5u8).prop_map(|(negative, whole, fraction, shape)| {
        let keep = |digits: Vec<u8>| {
            let short = digits.len() % 12;
            let digits = if shape < 3 { &digits[..short] } else { &digits };
            String::from_utf8(digits.to_vec()).unwrap()
        };
        let (whole, fraction) = (keep(whole), keep(fraction));
        let whole = whole.trim_start_matches('0');
        let whole = if whole.is_empty() { "0" } else { whole };
        let point = if fraction.is_empty() { "" } else { "." };
        let zero = whole == "0" && fraction.bytes().all(|b| b == b'0');
        let sign = if negative && !zero { "-" } else { "" };
        format!("{sign}{whole}{point}{fraction}")
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 8 } else { 2000 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn text_to_body_and_back(text in texts()) {
        let body = body_of(&text).unwrap();
        prop_assert_eq!(&body, &reference_body(&text));
        prop_assert_eq!(text_of(&body), Some(text));
    }

    #[test]
    fn any_bytes_are_refused_or_come_back(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
        if let Some(text) = text_of(&bytes) {
            let back = body_of(&text).unwrap();
            prop_assert_eq!(text_of(&back), Some(text));
        }
    }

    #[test]
    fn likely_words_are_refused_or_come_back(
        header in any::<u16>(),
        words in prop::collection::vec(0u16..10_001, 0..5),
    ) {
        let mut all = vec![header];
        all.extend(words);
        if let Some(text) = text_of(&body(&all)) {
            let back = body_of(&text).unwrap();
            prop_assert_eq!(text_of(&back), Some(text));
        }
    }

    #[test]
    fn any_text_is_refused_or_comes_back(text in "[-+]?[0-9.]{0,12}[eE0-9]?") {
        if let Some(body) = body_of(&text) {
            prop_assert_eq!(text_of(&body), Some(text));
        }
    }
}
