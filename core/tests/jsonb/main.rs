//! Images of jsonb and their text, against a builder that follows jsonb_util.c step by step.

mod model;
mod properties;

use arrow_cache_core::formats::jsonb::{DEPTH_MAX, Parser, Refusal, to_text};
use model::Value::{Array, Bool, Null, Object};
use model::{assert_both_ways, image, nested, number, object, parsed, printed, store, string, text};

#[test]
fn known_bytes() {
    let words = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    assert_eq!(parsed(b"[]"), Some(words(&[0x4000_0000])));
    assert_eq!(parsed(b"{}"), Some(words(&[0x2000_0000])));
    assert_eq!(parsed(b"null"), Some(words(&[0x5000_0001, 0xC000_0000])));
    assert_eq!(parsed(b"true"), Some(words(&[0x5000_0001, 0xB000_0000])));
    assert_eq!(parsed(b"\"abcd\""), Some(words(&[0x5000_0001, 0x8000_0004, u32::from_le_bytes(*b"abcd")])));
    // One key of one byte, three bytes of padding, then a numeric of ten: header, sign and scale, digit.
    let expected = [0x2000_0001, 0x8000_0001, 0x1000_000B, u32::from_le_bytes(*b"k\0\0\0"), 8 << 2, 7 << 16 | 0x8000];
    assert_eq!(parsed(b"{\"k\": 7}"), Some(words(&expected)));
}

#[test]
fn documents_both_ways() {
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
        assert_both_ways(&value);
    }
}

#[test]
fn a_special_character_at_every_place() {
    for length in 0..40 {
        for place in 0..length {
            for special in ["\"", "\\", "\u{1}", "\u{1f}", "\n", "ä", "\u{7f}"] {
                let mut characters = "y".repeat(length);
                characters.replace_range(place..=place, special);
                assert_both_ways(&string(&characters));
                assert_both_ways(&object(&[(&characters, Array(vec![string(&characters), string("tail")]))]));
            }
        }
    }
}

#[test]
fn levels_are_bounded_both_ways() {
    assert_eq!(printed(&image(&nested(DEPTH_MAX + 1, Null))), Err(Refusal::Unknown));
    assert_eq!(printed(&image(&nested(DEPTH_MAX, Array(vec![])))), Err(Refusal::Unknown));
    assert_eq!(parsed(text(&nested(DEPTH_MAX + 1, Null)).as_bytes()), None);
    assert_eq!(parsed(text(&nested(DEPTH_MAX, Object(vec![]))).as_bytes()), None);
    assert_eq!(parsed(&b"[".repeat(1_000_000)), None);
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
    // Little may be printed before the limit is noticed: eight bytes can stand for a hundred thousand digits, and one for an escape.
    let digits = image(&Array(vec![number(&format!("1{}", "0".repeat(100_000))); 100]));
    let escapes = image(&string(&"\u{1}".repeat(5_000_000)));
    for image in [digits, escapes] {
        let mut out = Vec::new();
        assert_eq!(to_text(&image, 1_000_000, &mut out), Err(Refusal::TooLong));
        assert!(out.capacity() < 3_000_000);
    }
}

#[test]
fn only_the_canonical_text_is_read() {
    for text in [
        "",
        " ",
        "1 ",
        " 1",
        "[1,2]",
        "[1,  2]",
        "[1, 2",
        "[1, ]",
        "[, 1]",
        "[1 , 2]",
        "{\"a\":1}",
        "{\"a\" : 1}",
        "{\"a\": 1,\"b\": 2}",
        "{\"a\": }",
        "{\"a\"}",
        "{1: 2}",
        "{a: 1}",
        "{\"a\": 1]",
        "[1}",
        "]",
        "}",
        "[[]",
        "[]]",
        "[] ",
        "{} {}",
        "1, 2",
        // keys out of order, or twice
        "{\"b\": 1, \"a\": 2}",
        "{\"aa\": 1, \"b\": 2}",
        "{\"a\": 1, \"a\": 2}",
        "{\"b\\n\": 1, \"aaa\": 1, \"a\\n\": 1}",
        // other ways to write a character
        "\"\\/\"",
        "\"\\u0041\"",
        "\"\\u000a\"",
        "\"\\u001F\"",
        "\"\\u0000\"",
        "\"\\u00e4\"",
        "\"\\u0020\"",
        "\"\\v\"",
        "\"\\u001\"",
        "\"\\\"",
        "\"\\",
        "\"",
        "\"a",
        "\"a\"b",
        "\"\n\"",
        "\"\u{1}\"",
        "'a'",
        "\"\0\"",
        // other ways to write a number
        "01",
        "+1",
        "1.",
        ".5",
        "-",
        "-0",
        "1e5",
        "--1",
        "1-1",
        "1.2.3",
        "-01",
        "0x1",
        "NaN",
        "Infinity",
        "-Infinity",
        "[NaN]",
        "nan",
        "True",
        "TRUE",
        "nul",
        "nulll",
        "truefalse",
        "tru",
        "undefined",
    ] {
        assert_eq!(parsed(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn only_images_of_the_server_are_printed() {
    let words = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    let seven = |header: u32| [header, 7 << 16 | 0x8000];
    for (case, bytes) in [
        ("nothing", vec![]),
        ("half a word", vec![0, 0]),
        ("no kind", words(&[0])),
        ("object and array", words(&[0x6000_0000])),
        ("a bare object", words(&[0x3000_0001, 0, 0])),
        ("a bare array", words(&[0x5000_0001, 0xD000_0004, 0x4000_0000])),
        ("two bare scalars", words(&[0x5000_0002, 0xC000_0000, 0x4000_0000])),
        ("no bare scalar", words(&[0x5000_0000])),
        ("a bare scalar inside", words(&[0x4000_0001, 0xD000_0008, 0x5000_0001, 0xC000_0000])),
        ("entries missing", words(&[0x4000_0002, 0xC000_0000])),
        ("too many elements to count", words(&[0x4FFF_FFFF, 0xC000_0000])),
        ("too many pairs to count", words(&[0x2FFF_FFFF, 0xC000_0000])),
        ("data missing", words(&[0x4000_0001, 0x8000_0004])),
        ("data left over", words(&[0x4000_0001, 0xC000_0000, 0])),
        ("data left over in an object", words(&[0x2000_0000, 0])),
        ("null with data", words(&[0x4000_0001, 0xC000_0004, 0])),
        ("no such kind", words(&[0x4000_0001, 0xE000_0000])),
        ("an offset backwards", words(&[0x4000_0002, 0x8000_0004, 0x8000_0003, 0x6161_6161])),
        ("a key that is no string", words(&[0x2000_0001, 0xC000_0000, 0x4000_0000])),
        ("keys out of order", words(&[0x2000_0002, 0x8000_0001, 1, 0x4000_0000, 0x4000_0000, 0x6162])[..22].to_vec()),
        ("a key twice", words(&[0x2000_0002, 0x8000_0001, 1, 0x4000_0000, 0x4000_0000, 0x6161])[..22].to_vec()),
        ("a NUL", words(&[0x5000_0001, 0x8000_0001, 0])[..9].to_vec()),
        ("a numeric of another length", words(&[0x5000_0001, 0x9000_0008, seven(7 << 2)[0], seven(0)[1]])),
        ("a compressed numeric", words(&[0x5000_0001, 0x9000_0008, 8 << 2 | 2, seven(0)[1]])),
        ("a numeric without bytes", words(&[0x4000_0002, 0x9000_0000, 4, 0])),
        ("a numeric without body", words(&[0x5000_0001, 0x9000_0004, 4 << 2])),
        ("NaN", words(&[0x5000_0001, 0x9000_0006, 6 << 2, 0xC000])[..14].to_vec()),
        ("infinity", words(&[0x5000_0001, 0x9000_0006, 6 << 2, 0xD000])[..14].to_vec()),
        ("padding that is not zero", words(&[0x4000_0002, 0x8000_0001, 0x1000_000B, 0x0100_0061, 8 << 2, seven(0)[1]])),
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

#[test]
fn a_parser_can_be_used_again() {
    let mut parser = Parser::default();
    for (text, good) in
        [("[1, {\"a\": []}]", true), ("[1, {\"a\": []", false), ("{\"a\": [1, 2, 3]}", true), ("7", true)]
    {
        let mut out = Vec::new();
        assert_eq!(parser.parse(text.as_bytes(), &mut out), Ok(good));
        assert_eq!(out, parsed(text.as_bytes()).unwrap_or_default());
    }
}
