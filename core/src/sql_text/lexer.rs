//! The parts of SQL text: white space, comments, identifiers, quotes. Pure functions: nothing here is shared.
//!
//! The text is cut the way PostgreSQL's lexer (scan.l, versions 15 and later) cuts it.

/// How a quoted construct ends.
#[derive(Clone, Copy)]
pub(crate) struct Quoting {
    pub mark: u8,
    /// A doubled mark stands for itself.
    pub doubling: bool,
    /// A backslash takes the next byte with it.
    pub escapes: bool,
    /// White space with a newline and another mark continue the same string.
    pub continues: bool,
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

/// What begins at a place of a text.
pub(crate) enum Lexeme {
    /// White space or a comment, up to there.
    Gap(usize),
    /// A comment that does not end.
    Unfinished,
    /// A quoted construct, behind so many bytes that belong to it.
    Quoted(usize, Quoting),
    /// A body in dollar quotes, up to there.
    Dollar(usize),
    /// A word, a number, a parameter or another character, up to there.
    Plain(usize),
}

/// What begins at `at`, which lies in the text. `plain_escapes` tells that a backslash escapes in plain strings.
pub(crate) fn lexeme(sql: &[u8], at: usize, plain_escapes: bool) -> Lexeme {
    let plain = Quoting { escapes: plain_escapes, ..STRING };
    let next = |offset: usize| sql.get(at + offset).copied();
    let quote_follows = next(1) == Some(b'\'');
    match sql[at] {
        byte if is_space(byte) => Lexeme::Gap(end_of(sql, at, is_space)),
        b'-' if next(1) == Some(b'-') => Lexeme::Gap(line_end(sql, at)),
        b'/' if next(1) == Some(b'*') => comment_end(sql, at).map_or(Lexeme::Unfinished, Lexeme::Gap),
        b'\'' => Lexeme::Quoted(0, plain),
        b'"' => Lexeme::Quoted(0, IDENTIFIER),
        b'$' => match dollar_delimiter(&sql[at..]) {
            Some(length) => {
                let (delimiter, body) = sql[at..].split_at(length);
                let end = body.windows(length).position(|window| window == delimiter);
                Lexeme::Dollar(end.map_or(sql.len(), |end| at + length + end + length))
            }
            None => Lexeme::Plain(end_of(sql, at + 1, |byte| byte.is_ascii_digit())),
        },
        // Letters that follow a number directly begin no quote: `1e'x'` is a number, junk, and a plain string.
        b'0'..=b'9' => {
            let end = end_of(sql, at, |byte| byte.is_ascii_digit());
            let has_junk = sql.get(end).is_some_and(|&byte| is_ident_start(byte));
            Lexeme::Plain(if has_junk { end_of(sql, end, is_ident_part) } else { end })
        }
        b'e' | b'E' if quote_follows => Lexeme::Quoted(1, Quoting { escapes: true, ..STRING }),
        b'b' | b'B' | b'x' | b'X' if quote_follows => Lexeme::Quoted(1, BITS),
        // The server reads N'..' as the word n and a plain string.
        b'n' | b'N' if quote_follows => Lexeme::Quoted(1, plain),
        b'u' | b'U' if next(1) == Some(b'&') && next(2) == Some(b'\'') => Lexeme::Quoted(2, STRING),
        b'u' | b'U' if next(1) == Some(b'&') && next(2) == Some(b'"') => Lexeme::Quoted(2, IDENTIFIER),
        byte if is_ident_start(byte) => Lexeme::Plain(end_of(sql, at, is_ident_part)),
        _ => Lexeme::Plain(at + 1),
    }
}

/// Where the bytes end that belong together, from `at` on.
pub(crate) fn end_of(sql: &[u8], at: usize, belongs: fn(u8) -> bool) -> usize {
    sql[at..].iter().position(|byte| !belongs(*byte)).map_or(sql.len(), |length| at + length)
}

fn is_newline(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}

/// End of the line that holds `at`: its newline, or the end of the text.
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
pub(crate) fn quote_end(sql: &[u8], mut at: usize, quoting: Quoting) -> usize {
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

/// Where the string that ended before `at` continues: at the next mark, if only white space and line comments stand before it, with a
/// newline among them.
pub(crate) fn continuation(sql: &[u8], mut at: usize) -> Option<usize> {
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
