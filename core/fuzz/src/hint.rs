//! Hints in comments.

use arrow_cache_core::{Hint, hint, unclear_hint};

/// Longest time a hint can ask for: that of the setting it replaces.
const LONGEST_TTL: u32 = i32::MAX as u32;

/// Reads any bytes as a statement with hints.
///
/// # Panics
/// When a promise is broken.
pub fn check(statement: &[u8]) {
    let found = hint(statement);
    assert_eq!(hint(&statement.to_ascii_uppercase()), found, "letter case is free");
    assert_eq!(hint(&[b" -- x\n/* y */\t", statement].concat()), found, "other comments do not matter");
    if let Some(comment) = unclear_hint(statement) {
        assert!(comment.starts_with(b"/*+") && comment.ends_with(b"*/"), "it is a comment");
        assert_eq!(unclear_hint(comment), Some(comment), "it is unclear by itself");
    }
    let Some(found) = found else {
        return;
    };
    if let Hint::Always { ttl: Some(seconds), .. } = found {
        assert!(seconds <= LONGEST_TTL);
    }
    let lower = statement.to_ascii_lowercase();
    assert!(lower.windows(b"arrow_cache".len()).any(|part| part == b"arrow_cache"), "a hint has a name");
    assert_eq!(
        hint(&[statement, b" SELECT '/*+ no_arrow_cache */'"].concat()),
        Some(found),
        "what comes after does not matter"
    );
    assert_eq!(hint(&[b"EXPLAIN ", statement].concat()), Some(found), "EXPLAIN has the hints of its query");
}
