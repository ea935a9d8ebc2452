//! How a user's text is shown in an error. Pure functions.

/// Most bytes of a text that are shown: a user's text may be much longer, and errors copy their texts without asking
/// for memory.
pub const LONGEST_SHOWN: usize = 4 * 1024;

/// The beginning of a user's text, cut before it is copied. Bytes that are not UTF-8 are replaced.
pub fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(LONGEST_SHOWN)]).into_owned()
}

/// The beginning of several texts, with commas between them: at most twice [`LONGEST_SHOWN`] bytes.
pub fn shown_list<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut list = String::new();
    for text in texts {
        if !list.is_empty() {
            list.push_str(", ");
        }
        list.push_str(&shown(text.as_bytes()));
        if list.len() > LONGEST_SHOWN {
            break;
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_texts_are_shown_whole() {
        assert_eq!(shown("größer".as_bytes()), "größer");
        assert_eq!(shown(b"a\xE9b"), "a\u{FFFD}b");
        assert_eq!(shown_list([]), "");
        assert_eq!(shown_list(["a", "b"]), "a, b");
    }

    #[test]
    fn long_ones_are_cut() {
        assert_eq!(shown(&[b'x'; 10_000]), "x".repeat(LONGEST_SHOWN));
        // A character that is cut in two takes no more than it would.
        assert!(shown(format!("x{}", "é".repeat(5_000)).as_bytes()).len() <= LONGEST_SHOWN + 3);
        let endless = std::iter::repeat("name");
        assert!((LONGEST_SHOWN..LONGEST_SHOWN + 8).contains(&shown_list(endless).len()));
    }
}
