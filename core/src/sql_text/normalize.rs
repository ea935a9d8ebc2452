//! Normal SQL text, for the key. Pure functions: nothing here is shared.

use crate::sql_text::lexer::{Lexeme, Quoting, continuation, is_space, lexeme, quote_end};

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
        while self.at < self.sql.len() {
            match lexeme(self.sql, self.at, self.plain_escapes) {
                Lexeme::Gap(end) => {
                    self.gap = true;
                    self.at = end;
                }
                Lexeme::Plain(end) => self.emit_to(end),
                Lexeme::Quoted(prefix, quoting) => {
                    self.emit_to(self.at + prefix);
                    self.quoted(quoting);
                }
                Lexeme::Dollar(end) => self.copy_to(end),
                Lexeme::Unfinished => self.copy_to(self.sql.len()),
            }
        }
        while self.out.len() > self.protected && self.out.last().is_some_and(|&b| b == b';' || is_space(b)) {
            self.out.pop();
        }
    }

    /// Writes what stands before `end` in lower case.
    fn emit_to(&mut self, end: usize) {
        if self.at < end && std::mem::take(&mut self.gap) && !self.out.is_empty() {
            self.out.push(b' ');
        }
        self.out.extend(self.sql[self.at..end].iter().map(u8::to_ascii_lowercase));
        self.at = end;
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

    /// A quoted construct, from its opening mark on.
    fn quoted(&mut self, quoting: Quoting) {
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
}
