//! Images of jsonb.

use arrow_cache_core::formats::jsonb::to_text;

/// Bytes that a text may take: a few bytes of numeric can stand for very many digits.
const LIMIT: usize = 1 << 16;

/// Reads any bytes as an image, as they are and with a root that has as many elements or pairs as there could be.
///
/// # Panics
/// When a promise is broken.
pub fn check(data: &[u8]) {
    read(data);
    let Some((&count, rest)) = data.split_first() else { return };
    for kind in [0x4000_0000u32, 0x2000_0000, 0x5000_0000] {
        let header = kind | u32::from(count % 8);
        read(&[&header.to_le_bytes(), rest].concat());
    }
}

fn read(image: &[u8]) {
    let mut out = b"kept".to_vec();
    let printed = to_text(image, LIMIT, &mut out);
    let text = out.strip_prefix(b"kept").expect("what was there stays");
    if printed.is_err() {
        assert!(text.is_empty(), "a refusal leaves nothing");
        return;
    }
    assert!(text.len() <= LIMIT, "no text is longer than asked for");
}
