//! Random documents, and arbitrary bytes, which must cause no panic.

use super::model::Value::{self, Array, Bool, Null, Number, Object};
use super::model::{assert_printed, image, printed};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

/// Any bytes: no panic, and no text without characters.
fn assert_sound_image(bytes: &[u8]) {
    assert!(printed(bytes).is_ok_and(|text| !text.is_empty()) || printed(bytes).is_err());
}

fn any_string() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        8 => proptest::char::range('a', 'e'),
        1 => proptest::char::range('\u{1}', '\u{20}'),
        1 => prop_oneof![Just('"'), Just('\\'), Just('/'), Just('\u{7f}'), Just('ä'), Just('€'), Just('😀')],
    ];
    vec(character, 0..20).prop_map(String::from_iter)
}

fn any_number() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => any::<i16>().prop_map(|n| n.to_string()),
        2 => any::<i64>().prop_map(|n| n.to_string()),
        1 => any::<u128>().prop_map(|n| n.to_string()),
        2 => (any::<i32>(), "[0-9]{1,30}").prop_map(|(whole, fraction)| format!("{whole}.{fraction}")),
        1 => "0\\.0{0,80}[1-9]",
        1 => "[1-9]0{0,300}",
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Null),
        any::<bool>().prop_map(Bool),
        any_number().prop_map(Number),
        any_string().prop_map(Value::String)
    ];
    scalar.prop_recursive(6, 200, 40, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..70).prop_map(Array),
            btree_map(any_string(), inner, 0..40).prop_map(|pairs| {
                let mut pairs: Vec<_> = pairs.into_iter().collect();
                pairs.sort_by_key(|(key, _)| (key.len(), key.clone()));
                Object(pairs)
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_document_is_printed(value in any_value()) {
        assert_printed(&value);
    }

    #[test]
    fn changed_images_do_no_harm(value in any_value(), changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), cut in 0..9usize) {
        let mut bytes = image(&value);
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        assert_sound_image(&bytes);
        assert_sound_image(&bytes[..bytes.len().saturating_sub(cut)]);
    }

    #[test]
    fn images_in_words_do_no_harm(words in vec(prop_oneof![
        0..8u32, (0..8u32, 0..40u32).prop_map(|(kind, low)| kind << 28 | low), (8..14u32, 0..40u32).prop_map(|(kind, low)| kind << 28 | low),
        any::<u32>(),
    ], 0..20)) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_sound_image(&bytes);
    }

    #[test]
    fn any_bytes_do_no_harm(bytes in vec(any::<u8>(), 0..100)) {
        assert_sound_image(&bytes);
    }
}
