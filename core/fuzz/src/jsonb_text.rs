//! jsonb from text.

use arrow_cache_core::formats::jsonb::{TEXT_MAX, from_text, to_text};

/// The characters of jsonb texts, in addition to the words of the dictionary.
const LETTERS: &[u8; 16] = b"{}[]\"\",,:: 01-a\\";

/// Reads any bytes as the text of a jsonb, as they are and spelled with the letters that such texts have.
///
/// # Panics
/// When a promise is broken.
pub fn check(data: &[u8]) {
    read(data);
    let spelled: Vec<u8> = data.iter().map(|byte| LETTERS[usize::from(byte % 16)]).collect();
    read(&spelled);
}

fn read(text: &[u8]) {
    let mut out = b"kept".to_vec();
    let good = from_text(text, &mut out) == Ok(true);
    let image = out.strip_prefix(b"kept").expect("what was there stays");
    if !good {
        assert!(image.is_empty(), "a refusal leaves nothing");
        return;
    }
    let mut again = Vec::new();
    assert_eq!(to_text(image, TEXT_MAX, &mut again), Ok(()), "every image that is made can be read");
    assert_eq!(again, text, "the text is the same");
}
