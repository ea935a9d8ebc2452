//! The parts of SQL text that hints stand among: white space, comments, identifiers. Pure functions: nothing here is
//! shared.
//!
//! The text is cut the way PostgreSQL's lexer (scan.l, versions 15 and later) cuts it.

/// The vertical tab is white space from version 16 on; before, it is an error outside quotes, so no valid statement is
/// affected.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

pub(crate) fn is_ident_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

pub(crate) fn is_ident_part(byte: u8) -> bool {
    is_ident_start(byte) || byte.is_ascii_digit() || byte == b'$'
}

/// Where the bytes end that belong together, from `at` on.
pub(crate) fn end_of(sql: &[u8], at: usize, belongs: fn(u8) -> bool) -> usize {
    sql[at..].iter().position(|byte| !belongs(*byte)).map_or(sql.len(), |length| at + length)
}

/// End of the line that holds `at`: its newline, or the end of the text.
pub(crate) fn line_end(sql: &[u8], at: usize) -> usize {
    end_of(sql, at, |byte| !matches!(byte, b'\n' | b'\r'))
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

/// End of the identifier in double quotes that begins at `at`. A doubled quotation mark ends one and begins another.
pub(crate) fn quoted_identifier_end(sql: &[u8], at: usize) -> usize {
    let length = sql[at + 1..].iter().position(|byte| *byte == b'"');
    length.map_or(sql.len(), |length| at + 1 + length + 1)
}
