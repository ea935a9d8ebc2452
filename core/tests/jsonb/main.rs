//! Images of jsonb and their text, against a builder that follows jsonb_util.c step by step.

mod model;
mod properties;

use arrow_cache_core::formats::jsonb::{DEPTH_MAX, Refusal, to_text};
use model::Value::{Array, Bool, Null, Object};
use model::{assert_printed, image, nested, number, object, printed, store, string, text};

#[test]
fn known_bytes() {
    let words = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    let shown = |image: &[u32]| printed(&words(image)).map(|text| String::from_utf8(text).unwrap());
    assert_eq!(shown(&[0x4000_0000]).as_deref(), Ok("[]"));
    assert_eq!(shown(&[0x5000_0001, 0xC000_0000]).as_deref(), Ok("null"));
    assert_eq!(shown(&[0x5000_0001, 0x8000_0004, u32::from_le_bytes(*b"abcd")]).as_deref(), Ok("\"abcd\""));
}

#[test]
fn documents_are_printed() {
    let many = |count: usize| (0..count).map(|n| number(&n.to_string())).collect::<Vec<_>>();
    let mut keys: Vec<String> = (0..300).map(|n| format!("k{n}")).collect();
    keys.sort_by_key(|key| (key.len(), key.clone()));
    let mixed = |n: usize| if n.is_multiple_of(3) { number(&n.to_string()) } else { string(&"x".repeat(n % 7)) };
    for value in [
        Null,
        Bool(true),
        Bool(false),
        string(""),
        string("a"),
        number("0"),
        number("-1.50"),
        number("0.000"),
        number(&format!("1{}", "0".repeat(1000))),
        number(&format!("0.{}1", "0".repeat(999))),
        Array(vec![]),
        Object(vec![]),
        Array(vec![Array(vec![]), Object(vec![]), string(""), Null]),
        object(&[("", Null)]),
        object(&[
            ("b", number("1")),
            ("aa", string("x")),
            ("ab", Array(vec![number("2")])),
            ("ba", object(&[("", Bool(false))])),
        ]),
        Array(many(31)),
        Array(many(32)),
        Array(many(33)),
        Array(many(65)),
        Array(many(300)),
        Object(keys.iter().enumerate().map(|(n, key)| (key.clone(), mixed(n))).collect()),
        Object(keys.iter().take(16).map(|key| (key.clone(), object(&[("k", number("12345"))]))).collect()),
        Object(keys.iter().take(17).map(|key| (key.clone(), Array(many(2)))).collect()),
        string(&"long ".repeat(10_000)),
        string("\u{1}\u{2}\u{7}\u{8}\t\n\u{b}\u{c}\r\u{e}\u{1f} \"\\/\u{7f}\u{80}äö😀\u{2028}"),
        Array((1..32).map(|n| string(&char::from(n).to_string())).collect()),
        nested(DEPTH_MAX - 1, Array(vec![])),
        nested(DEPTH_MAX, number("1")),
    ] {
        assert_printed(&value);
    }
}

#[test]
fn a_special_character_at_every_place() {
    for length in 0..40 {
        for place in 0..length {
            for special in ["\"", "\\", "\u{1}", "\u{1f}", "\n", "ä", "\u{7f}"] {
                let mut characters = "y".repeat(length);
                characters.replace_range(place..=place, special);
                assert_printed(&string(&characters));
                assert_printed(&object(&[(&characters, Array(vec![string(&characters), string("tail")]))]));
            }
        }
    }
}

#[test]
fn levels_are_bounded() {
    assert_eq!(printed(&image(&nested(DEPTH_MAX + 1, Null))), Err(Refusal::Unknown));
    assert_eq!(printed(&image(&nested(DEPTH_MAX, Array(vec![])))), Err(Refusal::Unknown));
}

#[test]
fn texts_are_bounded() {
    let large = number(&format!("1{}", "0".repeat(100_000)));
    for value in [Array(vec![large; 3]), string(&"\u{1}".repeat(100_000)), string(&"x".repeat(300_000)), string("abc")]
    {
        let (image, text) = (image(&value), text(&value));
        let mut out = Vec::new();
        assert_eq!(to_text(&image, text.len() - 1, &mut out), Err(Refusal::TooLong));
        assert!(out.is_empty());
        assert_eq!(to_text(&image, text.len(), &mut out), Ok(()));
        assert_eq!(out, text.as_bytes());
    }
    // Little may be printed before the limit is noticed: eight bytes can stand for a hundred thousand digits, and one
    // for an escape.
    let digits = image(&Array(vec![number(&format!("1{}", "0".repeat(100_000))); 100]));
    let escapes = image(&string(&"\u{1}".repeat(5_000_000)));
    for image in [digits, escapes] {
        let mut out = Vec::new();
        assert_eq!(to_text(&image, 1_000_000, &mut out), Err(Refusal::TooLong));
        assert!(out.capacity() < 3_000_000);
    }
}

#[test]
fn what_is_no_image_is_refused() {
    let words = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    for (case, bytes) in [
        ("nothing", vec![]),
        ("half a word", vec![0, 0]),
        ("no kind", words(&[0])),
        ("object and array", words(&[0x6000_0000])),
        ("a bare object", words(&[0x3000_0001, 0, 0])),
        ("two bare scalars", words(&[0x5000_0002, 0xC000_0000, 0x4000_0000])),
        ("no bare scalar", words(&[0x5000_0000])),
        ("a bare scalar inside", words(&[0x4000_0001, 0xD000_0008, 0x5000_0001, 0xC000_0000])),
        ("entries missing", words(&[0x4000_0002, 0xC000_0000])),
        ("too many elements to count", words(&[0x4FFF_FFFF, 0xC000_0000])),
        ("too many pairs to count", words(&[0x2FFF_FFFF, 0xC000_0000])),
        ("data missing", words(&[0x4000_0001, 0x8000_0004])),
        ("no such kind", words(&[0x4000_0001, 0xE000_0000])),
        ("an offset backwards", words(&[0x4000_0002, 0x8000_0004, 0x8000_0003, 0x6161_6161])),
        ("a NUL", words(&[0x5000_0001, 0x8000_0001, 0])[..9].to_vec()),
        ("a numeric without bytes", words(&[0x4000_0002, 0x9000_0000, 4, 0])),
        ("a numeric without body", words(&[0x5000_0001, 0x9000_0004, 4 << 2])),
        ("NaN", words(&[0x5000_0001, 0x9000_0006, 6 << 2, 0xC000])[..14].to_vec()),
        ("infinity", words(&[0x5000_0001, 0x9000_0006, 6 << 2, 0xD000])[..14].to_vec()),
    ] {
        assert_eq!(printed(&bytes), Err(Refusal::Unknown), "{case}");
    }
}

#[test]
fn offsets_may_stand_at_other_places() {
    let value = Array((0..40).map(|n| string(&"x".repeat(n))).collect());
    let mut bytes = image(&value);
    let total = (0..=7u32).sum::<u32>();
    store(&mut bytes, 4 + 7 * 4, 0x8000_0000 | total);
    assert_eq!(printed(&bytes), Ok(text(&value).into_bytes()));
}
