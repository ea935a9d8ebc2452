//! Numerics as the server lays them out, into text.

use arrow_cache_core::formats::numeric::{from_text, to_text};

/// Reads any bytes as the body of a numeric.
///
/// # Panics
/// When a promise is broken.
pub fn check(body: &[u8]) {
    let mut out = b"kept".to_vec();
    let good = to_text(body, &mut out);
    let text = out.strip_prefix(b"kept").expect("what was there stays");
    if !good {
        assert!(text.is_empty(), "a refusal leaves nothing");
        return;
    }
    assert!(text.is_ascii() && !text.is_empty());
    let mut again = Vec::new();
    assert!(from_text(text, &mut again), "every text that is made can be read");
    assert!(again.len() <= body.len(), "the layout that is made is the shortest");
    let mut second = Vec::new();
    assert!(to_text(&again, &mut second));
    assert_eq!(second, text, "the value is the same");
    if again.len() == body.len() {
        assert_eq!(again, body, "and so are its bytes");
    }
}
