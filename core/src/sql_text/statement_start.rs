//! Where a statement begins in a text of several, with the comments before it. Pure functions: nothing here is shared.

use crate::sql_text::lexer::{Lexeme, Quoting, continuation, lexeme, quote_end};

/// Where the statement begins that holds the word at `word`: behind the semicolon before it, or at 0. PostgreSQL 18 says of a statement where
/// its first word stands, and of a query inside another statement where that of the query does; versions before say what this returns.
#[must_use]
pub fn statement_start(sql: &[u8], word: usize, standard_conforming_strings: bool) -> usize {
    let before = &sql[..word.min(sql.len())];
    let code = before.trim_ascii_end();
    // Nearly always the semicolon is the last thing before, and in no comment: one that ends with it ends with its line. The line is read
    // only if a line ends behind the semicolon, so that a message of many statements on one line is not read again for each of them.
    if code.last() == Some(&b';') {
        let is_newline = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let may_be_in_comment = || {
            let line = code.iter().rposition(is_newline).map_or(0, |newline| newline + 1);
            code[line..].windows(2).any(|pair| pair == b"--")
        };
        if !before[code.len()..].iter().any(is_newline) || !may_be_in_comment() {
            return code.len();
        }
    }
    let (mut at, mut start) = (0, 0);
    while let Some(&byte) = before.get(at) {
        at = match lexeme(before, at, !standard_conforming_strings) {
            Lexeme::Gap(end) | Lexeme::Dollar(end) | Lexeme::Plain(end) => end,
            Lexeme::Quoted(prefix, quoting) => quoted_end(before, at + prefix, quoting),
            Lexeme::Unfinished => before.len(),
        };
        if byte == b';' {
            start = at;
        }
    }
    start
}

/// End of the quoted construct whose mark stands at `mark`, with all parts of a string in parts.
fn quoted_end(sql: &[u8], mut mark: usize, quoting: Quoting) -> usize {
    loop {
        let end = quote_end(sql, mark + 1, quoting);
        match quoting.continues.then(|| continuation(sql, end)).flatten() {
            Some(next) => mark = next,
            None => return end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the statement of the word at `^`, which is taken out, begins at `|`, which is taken out too.
    fn check(marked: &str) {
        let start = marked.find('|').unwrap();
        let sql = marked.replacen('|', "", 1);
        let word = sql.find('^').unwrap();
        let sql = sql.replacen('^', "", 1);
        assert_eq!(statement_start(sql.as_bytes(), word, true), start, "{marked}");
    }

    #[test]
    fn comments_and_white_space_belong_to_the_statement_behind_them() {
        check("|^SELECT 1");
        check("| /*+ x */ -- y\n ^SELECT 1");
        check("SELECT 1;|^SELECT 2");
        check("SELECT 1;| \n ^SELECT 2");
        check("SELECT 1;|/*+ x */^SELECT 2");
        check("SELECT 1;| -- a; b;\n/* ; /* ; */ ; */^SELECT 2; SELECT 3");
        check("SELECT 1 -- first;\n;| -- second;\n^SELECT 2");
        check("SELECT 1;;;| ^SELECT 2");
    }

    #[test]
    fn a_query_inside_a_statement_belongs_to_it() {
        check("SELECT 1;| /*+ x */ EXPLAIN (COSTS OFF) ^SELECT 2");
        check("|PREPARE \"a;b\" AS ^SELECT 2");
    }

    #[test]
    fn semicolons_in_quotes_end_nothing() {
        check("SELECT ';', \";\";| /**/ ^SELECT 2");
        check("|DECLARE \";\" CURSOR FOR /* ' */ ^SELECT 2");
        check("SELECT '--';| /**/ ^SELECT 2");
        check("SELECT $$;'$$, $a$;$$;$a$, a$b$;| /**/ ^SELECT 2");
        check("SELECT E'\\';', '\\';| /**/ ^SELECT 2");
        check("SELECT E'a'\n'\\';';| /**/ ^SELECT 2");
        check("SELECT U&'\\';| /**/ ^SELECT 2");
        check("SELECT 1e';';| /**/ ^SELECT 2");
        check("SELECT b'1;', X'f;', n'\\';| /**/ ^SELECT 2");
        check("SELECT 1 AS u&\"\\;\";| /**/ ^SELECT 2");
    }

    #[test]
    fn backslashes_escape_where_the_setting_says_so() {
        let sql = b"SELECT '\\';'; /**/ SELECT 2";
        assert_eq!(statement_start(sql, 19, false), 13);
    }

    #[test]
    fn any_place_of_a_broken_text_has_a_start() {
        for sql in ["/*", "'", "\"", "$a$", "E'\\", "U&", "a;--", ";"] {
            for word in 0..=sql.len() + 1 {
                assert!(statement_start(sql.as_bytes(), word, true) <= word);
            }
        }
    }
}
