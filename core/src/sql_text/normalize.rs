//! Normal SQL text, for the key. Pure functions: nothing here is shared.

use crate::sql_text::lexer::{
    BITS, IDENTIFIER, Quoting, STRING, comment_end, continuation, dollar_delimiter, is_ident_part, is_ident_start,
    is_space, line_end, quote_end,
};

/// Clears `out` and puts the normal text of `sql` there. While it is written, it is never longer than `sql`.
///
/// * Comments and runs of white space become one space.
/// * White space at both ends, and semicolons at the end, are left out.
/// * ASCII letters outside quotes become lower case. Quoted strings, quoted identifiers and dollar-quoted bodies stay byte for byte.
/// * A quote or comment that does not end is copied to the end of the text.
/// * The gap between two parts of one string (`'a'` newline `'b'`) becomes a newline, because a space would not join them.
pub fn normalize(sql: &[u8], standard_conforming_strings: bool, out: &mut Vec<u8>) {
    out.clear();
    out.reserve(sql.len());
    Normalizer { sql, at: 0, plain_escapes: !standard_conforming_strings, gap: false, protected: 0, out }.run();
}

struct Normalizer<'a> {
    sql: &'a [u8],
    at: usize,
    plain_escapes: bool,
    /// White space or a comment was passed since the last byte was written.
    gap: bool,
    /// Length of `out` up to which nothing may be trimmed: it ends in a quoted construct.
    protected: usize,
    out: &'a mut Vec<u8>,
}

impl Normalizer<'_> {
    fn run(mut self) {
        while let Some(&byte) = self.sql.get(self.at) {
            match byte {
                _ if is_space(byte) => {
                    self.gap = true;
                    self.at += 1;
                }
                b'-' if self.next_is(1, b'-') => {
                    self.at = line_end(self.sql, self.at);
                    self.gap = true;
                }
                b'/' if self.next_is(1, b'*') => self.comment(),
                b'\'' => self.quoted(0, self.plain_string()),
                b'"' => self.quoted(0, IDENTIFIER),
                b'$' => self.dollar(),
                b'0'..=b'9' => self.number(),
                _ if is_ident_start(byte) => self.word(),
                _ => {
                    self.emit(byte);
                    self.at += 1;
                }
            }
        }
        while self.out.len() > self.protected && self.out.last().is_some_and(|&b| b == b';' || is_space(b)) {
            self.out.pop();
        }
    }

    fn next_is(&self, offset: usize, byte: u8) -> bool {
        self.sql.get(self.at + offset) == Some(&byte)
    }

    fn plain_string(&self) -> Quoting {
        Quoting { escapes: self.plain_escapes, ..STRING }
    }

    fn emit(&mut self, byte: u8) {
        if self.gap {
            self.gap = false;
            if !self.out.is_empty() {
                self.out.push(b' ');
            }
        }
        self.out.push(byte.to_ascii_lowercase());
    }

    /// Copies `self.at..end` as it stands and protects it from trimming.
    fn copy_to(&mut self, end: usize) {
        if self.gap && !self.out.is_empty() {
            self.out.push(b' ');
        }
        self.gap = false;
        self.out.extend_from_slice(&self.sql[self.at..end]);
        self.protected = self.out.len();
        self.at = end;
    }

    fn comment(&mut self) {
        match comment_end(self.sql, self.at) {
            Some(end) => {
                self.at = end;
                self.gap = true;
            }
            None => self.copy_to(self.sql.len()),
        }
    }

    /// A quoted construct whose opening mark stands `prefix` bytes ahead; the prefix is written in lower case.
    fn quoted(&mut self, prefix: usize, quoting: Quoting) {
        for _ in 0..prefix {
            self.emit(self.sql[self.at]);
            self.at += 1;
        }
        loop {
            let end = quote_end(self.sql, self.at + 1, quoting);
            self.copy_to(end);
            match quoting.continues.then(|| continuation(self.sql, self.at)).flatten() {
                Some(next) => {
                    self.out.push(b'\n');
                    self.at = next;
                }
                None => return,
            }
        }
    }

    fn dollar(&mut self) {
        if let Some(length) = dollar_delimiter(&self.sql[self.at..]) {
            let (delimiter, body) = self.sql[self.at..].split_at(length);
            let end = find(body, delimiter).map_or(self.sql.len(), |found| self.at + length + found + length);
            self.copy_to(end);
            return;
        }
        self.emit(b'$');
        self.at += 1;
        while self.sql.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.emit(self.sql[self.at]);
            self.at += 1;
        }
    }

    /// Digits and the letters that follow them directly, which begin no quote: `1e'x'` is a number, junk, and a plain string.
    fn number(&mut self) {
        while self.sql.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.emit(self.sql[self.at]);
            self.at += 1;
        }
        if self.sql.get(self.at).is_some_and(|&b| is_ident_start(b)) {
            self.ident();
        }
    }

    fn word(&mut self) {
        let quote_follows = self.next_is(1, b'\'');
        match self.sql[self.at] {
            b'e' | b'E' if quote_follows => self.quoted(1, Quoting { escapes: true, ..STRING }),
            b'b' | b'B' | b'x' | b'X' if quote_follows => self.quoted(1, BITS),
            // The lexer reads N'..' as the word n and a plain string.
            b'n' | b'N' if quote_follows => self.quoted(1, self.plain_string()),
            b'u' | b'U' if self.next_is(1, b'&') && self.next_is(2, b'\'') => {
                self.quoted(2, STRING);
            }
            b'u' | b'U' if self.next_is(1, b'&') && self.next_is(2, b'"') => {
                self.quoted(2, IDENTIFIER);
            }
            _ => self.ident(),
        }
    }

    fn ident(&mut self) {
        while let Some(&byte) = self.sql.get(self.at).filter(|&&b| is_ident_part(b)) {
            self.emit(byte);
            self.at += 1;
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
