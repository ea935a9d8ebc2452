//! Numerics from text.

use arrow_cache_core::formats::numeric::{from_text, to_text};

/// The characters of numeric texts, and similar ones.
const LETTERS: &[u8; 16] = b"0000123456789.-N";

/// Each byte as one of the letters that numerics have: most texts of those are numerics, or nearly.
pub fn spell(data: &[u8]) -> Vec<u8> {
    data.iter().map(|byte| LETTERS[usize::from(byte % 16)]).collect()
}

/// Reads any bytes as the text of a numeric, as they are and spelled.
///
/// # Panics
/// When a promise is broken.
pub fn check(data: &[u8]) {
    read(data);
    read(&spell(data));
}

fn read(text: &[u8]) {
    let mut out = b"kept".to_vec();
    let good = from_text(text, &mut out);
    let body = out.strip_prefix(b"kept").expect("what was there stays");
    if !good {
        assert!(body.is_empty(), "a refusal leaves nothing");
        return;
    }
    let mut again = Vec::new();
    assert!(to_text(body, &mut again), "every body that is made can be read");
    assert_eq!(again, text, "the text is the same");
}
