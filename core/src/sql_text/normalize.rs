//! SQL text brought to one form for the key. Pure functions: nothing here is shared.
//!
//! The text is cut the way PostgreSQL's lexer (scan.l, versions 15 and later) cuts it, because a quote taken for code, or code for a
//! quote, could make two different statements equal.

pub use crate::sql_text::statement::statement_body;

/// Clears `out` and puts the normal form of `sql` there, which is no longer than `sql` at any time: comments and runs of white space become one space, those at both ends and
/// semicolons at the end go, ASCII letters outside quotes are lower-cased; quoted strings, quoted identifiers and dollar-quoted bodies
/// stay byte for byte. What begins and does not end (a quote, a comment) is copied to the end of the text.
///
/// One thing is not a plain space: the gap between two parts of one string (`'a'` newline `'b'`) becomes a newline, since a space would not
/// join them.
pub fn normalize(sql: &[u8], standard_conforming_strings: bool, out: &mut Vec<u8>) {
    out.clear();
    out.reserve(sql.len());
    Normalizer { sql, at: 0, plain_escapes: !standard_conforming_strings, gap: false, protected: 0, out }.run();
}

/// How a quoted construct ends.
#[derive(Clone, Copy)]
struct Quoting {
    mark: u8,
    /// A doubled mark stands for itself.
    doubling: bool,
    /// A backslash takes the next byte with it.
    escapes: bool,
    /// White space with a newline and another mark continue the same string.
    continues: bool,
}

struct Normalizer<'a> {
    sql: &'a [u8],
    at: usize,
    plain_escapes: bool,
    /// White space or a comment was passed since the last byte put out.
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

    /// A quoted construct whose opening mark stands `prefix` bytes ahead; the prefix is put out in lower case.
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

    /// Digits and the letters stuck to them, which begin no quote: `1e'x'` is a number, junk, and a plain string.
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
            // To the lexer N'..' is the word n and a plain string.
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

const STRING: Quoting = Quoting { mark: b'\'', doubling: true, escapes: false, continues: true };
const BITS: Quoting = Quoting { doubling: false, ..STRING };
const IDENTIFIER: Quoting = Quoting { mark: b'"', doubling: true, escapes: false, continues: false };

/// The vertical tab is white space from version 16 on; before, it is an error outside quotes, so no valid statement is affected.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

pub(crate) fn is_ident_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

pub(crate) fn is_ident_part(byte: u8) -> bool {
    is_ident_start(byte) || byte.is_ascii_digit() || byte == b'$'
}

fn is_newline(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}

/// Where the line that `at` is in ends: at its newline, or the end of the text.
pub(crate) fn line_end(sql: &[u8], at: usize) -> usize {
    sql[at..].iter().position(|&b| is_newline(b)).map_or(sql.len(), |found| at + found)
}

/// End of the comment that begins at `at`, with the comments inside it. `None` when it does not end.
pub(crate) fn comment_end(sql: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0usize;
    while at + 1 < sql.len() {
        match (sql[at], sql[at + 1]) {
            (b'/', b'*') => {
                depth += 1;
                at += 2;
            }
            (b'*', b'/') => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => at += 1,
        }
    }
    None
}

/// End (exclusive, mark included) of the quoted construct whose content begins at `at`.
fn quote_end(sql: &[u8], mut at: usize, quoting: Quoting) -> usize {
    while let Some(&byte) = sql.get(at) {
        at += 1;
        if byte == b'\\' && quoting.escapes {
            at += 1;
        } else if byte == quoting.mark {
            if quoting.doubling && sql.get(at) == Some(&quoting.mark) {
                at += 1;
            } else {
                return at;
            }
        }
    }
    sql.len()
}

/// End of the identifier in double quotes that begins at `at`.
pub(crate) fn quoted_identifier_end(sql: &[u8], at: usize) -> usize {
    quote_end(sql, at + 1, IDENTIFIER)
}

/// Where the string that ended before `at` goes on: the next mark, if there is only white space and line comments before it, with a
/// newline among them.
fn continuation(sql: &[u8], mut at: usize) -> Option<usize> {
    let mut newline = false;
    loop {
        match *sql.get(at)? {
            b'\'' => return newline.then_some(at),
            b'-' if sql.get(at + 1) == Some(&b'-') => at = line_end(sql, at),
            byte if is_space(byte) => {
                newline |= is_newline(byte);
                at += 1;
            }
            _ => return None,
        }
    }
}

/// Length of the delimiter (`$$`, `$tag$`) that `text` begins with.
fn dollar_delimiter(text: &[u8]) -> Option<usize> {
    let mut length = 1;
    loop {
        match *text.get(length)? {
            b'$' => return Some(length + 1),
            byte if is_ident_start(byte) || (length > 1 && byte.is_ascii_digit()) => length += 1,
            _ => return None,
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
