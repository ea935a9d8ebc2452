//! The fingerprint of a statement: a hash of its text without its numbers and strings. Pure functions: nothing here is
//! shared.
//!
//! It is only a guess at which statements belong together: two statements with one fingerprint may mean different
//! things, and two that mean the same may have different ones.

/// Longest text that has a fingerprint, in bytes: planning a longer one takes longer than a lookup.
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

/// Odd, with its bits spread evenly: the multiplier of PCG's generators (O'Neill, "PCG", 2014).
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;

/// The fingerprint of a text. `None` for one of more than 1 kB.
#[must_use]
pub fn text_fingerprint(text: &[u8]) -> Option<u64> {
    if text.len() > LONGEST {
        return None;
    }
    let mut hash = 0u64;
    let mut inside_word = false;
    let mut place = 0;
    while let Some(&byte) = text.get(place) {
        // Which bytes are put together depends on those alone that count: whatever begins a number or a string stands
        // apart.
        if let Some(eight) = text.get(place..place + 8).and_then(plain_bytes) {
            hash = mixed(hash, eight);
            inside_word = CLASSES[text[place + 7] as usize] == Class::Word;
            place += 8;
            continue;
        }
        place += 1;
        let class = CLASSES[byte as usize];
        let mut put = byte;
        if class == Class::Digit && !inside_word {
            while text.get(place).is_some_and(|byte| CLASSES[*byte as usize] == Class::Digit) {
                place += 1;
            }
            put = b'0';
        } else {
            inside_word = class == Class::Word || class == Class::Digit;
            if class == Class::Quote {
                // A doubled quote ends one string and begins another.
                let rest = &text[place..];
                place += rest.iter().position(|byte| *byte == b'\'').map_or(rest.len(), |end| end + 1);
            }
        }
        hash = mixed(hash, u64::from(put));
    }
    // All of the result is used, its last bits by tables.
    Some((hash ^ (hash >> 32)).wrapping_mul(MULTIPLIER))
}

#[inline]
fn mixed(hash: u64, put: u64) -> u64 {
    (hash ^ put).wrapping_mul(MULTIPLIER).rotate_left(29)
}

/// Eight bytes as one number, if none of them is a digit or a quote.
#[inline]
fn plain_bytes(bytes: &[u8]) -> Option<u64> {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let all = u64::from_le_bytes(bytes.try_into().ok()?);
    // The high bit of a byte of a sum is set where the other seven bits of the byte of the text are no less than a
    // character.
    let no_less = |character: u8| (all & !HIGH) + ONES * u64::from(0x80 - character);
    let digits = no_less(b'0') & !no_less(b'9' + 1) & !all & HIGH;
    let zero_where_quoted = all ^ (ONES * u64::from(b'\''));
    let quotes = zero_where_quoted.wrapping_sub(ONES) & !zero_where_quoted & HIGH;
    (digits | quotes == 0).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(one: &str, other: &str) -> bool {
        text_fingerprint(one.as_bytes()).unwrap() == text_fingerprint(other.as_bytes()).unwrap()
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

    /// The same wherever they stand among the eight bytes that are put together.
    #[test]
    fn numbers_and_strings_do_not_count_at_any_place() {
        for before in 0..20 {
            for after in 0..20 {
                let text = |value: &str| format!("{} {value} {}", "é+".repeat(before), "b~".repeat(after));
                assert!(alike(&text("7"), &text("1234567890123")));
                assert!(alike(&text("''"), &text("'it is'")));
                assert!(!alike(&text("7"), &text("a7")));
                assert!(!alike(&text("a7"), &text("a8")));
                assert!(!alike(&text("/"), &text(":")));
            }
        }
    }

    #[test]
    fn unfinished_and_long_texts() {
        assert!(alike("SELECT 'x", "SELECT 'yyy"));
        assert_eq!(text_fingerprint(&[b'x'; LONGEST + 1]), None);
        assert!(text_fingerprint(&[b'7'; LONGEST]).is_some());
        assert!(text_fingerprint(b"").is_some());
    }
}
