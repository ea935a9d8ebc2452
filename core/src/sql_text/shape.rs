//! The shape of a statement's text: what statements have in common that differ in their numbers and strings only. Pure functions.
//!
//! A guess by the text alone, for deciding what is worth a closer look: two statements of one shape may mean different things, and two that
//! mean the same may differ in shape.

use xxhash_rust::xxh3::xxh3_64;

/// Longest text that has a shape, in bytes: a longer one takes longer to plan than to be looked at closely.
const LONGEST: usize = 1024;

/// What a byte is in a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Other,
    Digit,
    /// Part of a word, other than a digit.
    Word,
    Quote,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'0'..=b'9' => Class::Digit,
            b'\'' => Class::Quote,
            b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'$' | 0x80..=0xFF => Class::Word,
            _ => Class::Other,
        };
        byte += 1;
    }
    classes
};

/// The shape of a text. `None` for a long one.
#[must_use]
pub fn text_shape(text: &[u8]) -> Option<u64> {
    let mut shape = [0u8; LONGEST];
    if text.len() > LONGEST {
        return None;
    }
    let mut length = 0;
    let mut inside_word = false;
    let mut rest = text.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        let class = CLASSES[byte as usize];
        let mut put = byte;
        if class == Class::Digit && !inside_word {
            while rest.next_if(|byte| CLASSES[*byte as usize] == Class::Digit).is_some() {}
            put = b'0';
        } else {
            inside_word = class == Class::Word || class == Class::Digit;
            if class == Class::Quote {
                // A doubled quote ends one string and begins another.
                let _ = rest.by_ref().find(|byte| *byte == b'\'');
            }
        }
        shape[length] = put;
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
