//! Words for the present time in texts that become dates and times.

/// Those that the server's date and time types know (utils/adt/datetime.c). It looks a word up in lower case.
const WORDS: [&[u8]; 4] = [b"now", b"today", b"tomorrow", b"yesterday"];

/// Returns true if one of the words is in a text, even as a part of another word.
pub fn has_clock_word(text: &[u8]) -> bool {
    WORDS.iter().any(|word| text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word)))
}

#[cfg(test)]
mod tests {
    use super::has_clock_word;

    #[test]
    fn words_are_found_in_any_case_and_place() {
        for text in ["now", "NOW", " Today", "tomorrow 10:00", "2026-01-01 yEsTerday", "knowing"] {
            assert!(has_clock_word(text.as_bytes()), "{text}");
        }
        for text in ["", "no", "n ow", "2026-01-01T00:00:00.000", "epoch", "infinity", "to day", "nov"] {
            assert!(!has_clock_word(text.as_bytes()), "{text}");
        }
    }
}
