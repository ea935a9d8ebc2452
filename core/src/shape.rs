//! The shape of a statement's text: what statements have in common that differ in their numbers and strings only. Pure functions.
//!
//! A guess by the text alone, for deciding what is worth a closer look: two statements of one shape may mean different things, and two that
//! mean the same may differ in shape.

use crate::normalize::is_ident_part;
use xxhash_rust::xxh3::xxh3_64;

/// Longest text that has a shape, in bytes: a longer one takes longer to plan than to be looked at closely.
const LONGEST: usize = 1024;

/// The shape of a text. `None` for a long one.
#[must_use]
pub fn text_shape(text: &[u8]) -> Option<u64> {
    let mut shape = [0u8; LONGEST];
    if text.len() > LONGEST {
        return None;
    }
    let mut length = 0;
    let mut at = 0;
    let mut inside_word = false;
    while at < text.len() {
        let mut byte = text[at];
        at += 1;
        if byte.is_ascii_digit() && !inside_word {
            while at < text.len() && text[at].is_ascii_digit() {
                at += 1;
            }
            byte = b'0';
        } else if byte == b'\'' {
            while at < text.len() && text[at] != b'\'' {
                at += 1;
            }
            at += 1;
        }
        inside_word = is_ident_part(byte) && byte != b'0' || inside_word && byte.is_ascii_digit();
        shape[length] = byte;
        length += 1;
    }
    Some(xxh3_64(&shape[..length]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(one: &str, other: &str) -> bool {
        text_shape(one.as_bytes()).unwrap() == text_shape(other.as_bytes()).unwrap()
    }

    #[test]
    fn numbers_and_strings_do_not_count() {
        assert!(alike("SELECT a FROM t WHERE id = 7", "SELECT a FROM t WHERE id = 12345"));
        assert!(alike(
            "SELECT a FROM t WHERE v = 'x' AND n > 1.5",
            "SELECT a FROM t WHERE v = 'a longer one 12' AND n > 10.25"
        ));
        assert!(alike("SELECT ''", "SELECT 'x'"));
    }

    #[test]
    fn all_else_counts() {
        assert!(!alike("SELECT a FROM t1", "SELECT a FROM t2"));
        assert!(!alike("SELECT a FROM t10", "SELECT a FROM t20"));
        assert!(!alike("SELECT a FROM t WHERE id = 7", "SELECT b FROM t WHERE id = 7"));
        assert!(!alike("SELECT 7", "SELECT '7'"));
    }

    #[test]
    fn unfinished_and_long_texts() {
        assert!(alike("SELECT 'x", "SELECT 'yyy"));
        assert_eq!(text_shape(&[b'x'; LONGEST + 1]), None);
        assert!(text_shape(&[b'7'; LONGEST]).is_some());
        assert!(text_shape(b"").is_some());
    }
}
