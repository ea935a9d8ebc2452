//! The parts of SQL text: white space, comments, identifiers, quotes. Pure functions: nothing here is shared.
//!
//! The text is cut the way PostgreSQL's lexer (scan.l, versions 15 and later) cuts it. To take a quote for code, or code for a quote, could
//! make two different statements equal.

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

pub(crate) const STRING: Quoting = Quoting { mark: b'\'', doubling: true, escapes: false, continues: true };
pub(crate) const BITS: Quoting = Quoting { doubling: false, ..STRING };
pub(crate) const IDENTIFIER: Quoting = Quoting { mark: b'"', doubling: true, escapes: false, continues: false };

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
pub(crate) fn dollar_delimiter(text: &[u8]) -> Option<usize> {
    let mut length = 1;
    loop {
        match *text.get(length)? {
            b'$' => return Some(length + 1),
            byte if is_ident_start(byte) || (length > 1 && byte.is_ascii_digit()) => length += 1,
            _ => return None,
        }
    }
}
