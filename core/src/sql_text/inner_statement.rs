//! The statement inside a statement: the query of EXPLAIN, PREPARE, DECLARE CURSOR and COPY. Pure functions: nothing here is shared.

use crate::sql_text::lexer::{end_of, is_ident_part, is_ident_start, quoted_identifier_end};

/// The query inside a normal text (see `normalize`): the text without a leading `explain …`, `prepare name … as` or
/// `declare name … cursor … for`, or what stands between the parentheses of `copy (…) to …`. Returns the text itself when it begins with
/// none of these, or with one that does not parse. Of a cursor declared under EXPLAIN, both beginnings are left out.
#[must_use]
pub fn statement_body(normalized: &[u8]) -> &[u8] {
    // Nearly all statements begin with SELECT or WITH, so the first letter decides.
    if !matches!(normalized.first(), Some(b'e' | b'p' | b'd' | b'c')) {
        return normalized;
    }
    let words = Words { text: normalized, at: 0 };
    let body = words
        .explained()
        .map(|body| Words { text: body, at: 0 }.declared().unwrap_or(body))
        .or_else(|| words.prepared())
        .or_else(|| words.declared())
        .or_else(|| words.copied());
    body.unwrap_or(normalized)
}

/// A position in a normal text, where any gap is at most one space.
#[derive(Clone, Copy)]
struct Words<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Words<'a> {
    fn explained(mut self) -> Option<&'a [u8]> {
        self.expect(b"explain")?;
        if self.peek() == Some(b'(') && self.options_follow() {
            self.parentheses()?;
        } else {
            let _ = self.accept(b"analyze") || self.accept(b"analyse");
            self.accept(b"verbose");
        }
        self.rest()
    }

    fn prepared(mut self) -> Option<&'a [u8]> {
        self.expect(b"prepare")?;
        self.name()?;
        if self.peek() == Some(b'(') {
            self.parentheses()?;
        }
        self.expect(b"as")?;
        self.rest()
    }

    fn declared(mut self) -> Option<&'a [u8]> {
        self.expect(b"declare")?;
        self.name()?;
        loop {
            match self.word()? {
                b"binary" | b"insensitive" | b"asensitive" | b"scroll" => {}
                b"no" => self.expect(b"scroll")?,
                b"cursor" => break,
                _ => return None,
            }
        }
        if self.accept(b"with") || self.accept(b"without") {
            self.expect(b"hold")?;
        }
        self.expect(b"for")?;
        self.rest()
    }

    fn copied(mut self) -> Option<&'a [u8]> {
        self.expect(b"copy")?;
        // A string with these characters may end at another place than the next quote. Such a text is taken whole.
        if self.text.iter().any(|byte| matches!(byte, b'\\' | b'$')) {
            return None;
        }
        self.skip_space();
        let start = self.at + 1;
        if self.peek() != Some(b'(') {
            return None;
        }
        self.parentheses()?;
        let query = self.text.get(start..self.at - 1)?.trim_ascii();
        self.expect(b"to")?;
        (!query.is_empty()).then_some(query)
    }

    /// Whether a parenthesis holds options of EXPLAIN and not a query. No option has the name of a word that a query can begin with, except
    /// `values`, which begins a query only before another parenthesis.
    fn options_follow(&self) -> bool {
        let mut inside = *self;
        inside.skip_space();
        inside.at += 1;
        match inside.word() {
            None | Some(b"select" | b"with" | b"table") => false,
            Some(b"values") => inside.peek() != Some(b'('),
            Some(_) => true,
        }
    }

    fn skip_space(&mut self) {
        self.at = end_of(self.text, self.at, |byte| byte == b' ');
    }

    /// The next byte that is no space, without passing it.
    fn peek(&self) -> Option<u8> {
        let mut ahead = *self;
        ahead.skip_space();
        ahead.text.get(ahead.at).copied()
    }

    /// Passes an unquoted word and returns it.
    fn word(&mut self) -> Option<&'a [u8]> {
        self.skip_space();
        let rest = &self.text[self.at..];
        if !is_ident_start(*rest.first()?) {
            return None;
        }
        let word = &rest[..end_of(rest, 0, is_ident_part)];
        self.at += word.len();
        Some(word)
    }

    fn accept(&mut self, wanted: &[u8]) -> bool {
        let mut ahead = *self;
        let found = ahead.word() == Some(wanted);
        if found {
            *self = ahead;
        }
        found
    }

    fn expect(&mut self, wanted: &[u8]) -> Option<()> {
        self.accept(wanted).then_some(())
    }

    /// Passes a name: a word, `"…"`, or `u&"…"` with an optional escape clause.
    fn name(&mut self) -> Option<()> {
        self.skip_space();
        let rest = &self.text[self.at..];
        if rest.starts_with(b"\"") {
            self.at = quoted_identifier_end(self.text, self.at);
        } else if rest.starts_with(b"u&\"") {
            self.at = quoted_identifier_end(self.text, self.at + 2);
            if self.accept(b"uescape") {
                self.skip_space();
                self.at = string_end(self.text, self.at)?;
            }
        } else {
            self.word()?;
        }
        Some(())
    }

    /// Passes a parenthesis and everything to the one that closes it.
    fn parentheses(&mut self) -> Option<()> {
        self.skip_space();
        let mut depth = 0usize;
        loop {
            match *self.text.get(self.at)? {
                b'(' => depth += 1,
                b')' => depth -= 1,
                b'"' => {
                    self.at = quoted_identifier_end(self.text, self.at);
                    continue;
                }
                b'\'' => {
                    self.at = string_end(self.text, self.at)?;
                    continue;
                }
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn rest(mut self) -> Option<&'a [u8]> {
        self.skip_space();
        let rest = &self.text[self.at..];
        (!rest.is_empty()).then_some(rest)
    }
}

/// End of the plain string that begins at `at`. Backslashes mean nothing in options, type modifiers and escape clauses.
fn string_end(text: &[u8], at: usize) -> Option<usize> {
    if text.get(at) != Some(&b'\'') {
        return None;
    }
    let length = text[at + 1..].iter().position(|&b| b == b'\'')?;
    Some(at + 1 + length + 1)
}
