//! Change tokens.

use arrow_cache_core::{ChangeToken, SlotId};

/// Reads any bytes as a token.
///
/// # Panics
/// When a promise is broken.
pub fn check(text: &[u8]) {
    let Some(token) = ChangeToken::of(text) else {
        return;
    };
    let slots: Vec<SlotId> = token.slots().collect();
    assert_eq!(slots.len(), text.iter().filter(|byte| **byte == b'.').count(), "each of its slots counts");
    assert!(!slots.is_empty(), "it rests on something");
    assert_eq!(token.asks_for_time(), text.contains(&b'~'));
    let longer = [text, b".ff"].concat();
    let more = ChangeToken::of(&longer).expect("a token that rests on one slot more");
    assert_eq!(more.slots().collect::<Vec<_>>(), [slots.as_slice(), &[SlotId(0xff)]].concat());
    for wrong in [[b" ", text].concat(), [text, b"."].concat(), [text, b"~"].concat(), text[1..].to_vec()] {
        assert_eq!(ChangeToken::of(&wrong), None, "{wrong:?}");
    }
}
