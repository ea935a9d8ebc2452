//! Where a statement begins in a text of several.

use arrow_cache_core::statement_start;

use super::lexer::{Token, tokens};

/// Reads any bytes as what stands before a word; the first says whether a backslash is an escape in plain strings.
///
/// # Panics
/// When a promise is broken.
pub fn check(data: &[u8]) {
    let Some((first, before)) = data.split_first() else {
        return;
    };
    let plain_backslashes = first % 2 == 0;
    let start = statement_start(before, before.len(), plain_backslashes);
    assert!(start <= before.len(), "it begins before its word");
    assert!(start == 0 || before[start - 1] == b';', "it begins behind a semicolon");
    let read = |part: &[u8]| tokens(&[part, b"\nx"].concat(), plain_backslashes);
    let is_word = |token: &Token| *token == Token::Code(b"x".to_vec());
    // A word stands in no quote and in no comment.
    if read(before).last().is_some_and(is_word) {
        assert!(!read(&before[start..]).contains(&Token::Code(b";".to_vec())), "no statement ends in it");
    }
}
