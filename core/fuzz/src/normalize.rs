//! Normal SQL text, and the statement inside EXPLAIN, PREPARE and DECLARE.

use arrow_cache_core::{normalize, statement_body};

use super::lexer::tokens;

/// Statements around a query that do not change which query it is.
const WRAPPERS: &[&str] = &[
    "EXPLAIN ",
    "explain analyze verbose\n",
    "EXPLAIN (COSTS off, FORMAT 'te)xt') ",
    "PREPARE \"p as \" (numeric(3, 2), text[]) AS ",
    "DECLARE c NO SCROLL CURSOR WITH HOLD FOR ",
];

/// Reads any bytes as SQL; the first says whether a backslash is an escape in plain strings.
///
/// # Panics
/// When a promise is broken.
pub fn check(data: &[u8]) {
    let Some((first, sql)) = data.split_first() else {
        return;
    };
    let plain_backslashes = first % 2 == 0;
    let once = normal(sql, plain_backslashes);
    assert_eq!(normal(&once, plain_backslashes), once, "a normal form is its own");
    assert!(once.len() <= sql.len(), "nothing is added");
    assert_eq!(tokens(&once, plain_backslashes), tokens(sql, plain_backslashes), "the statement is still the same");
    let behind = [b"-- x'\n/* \" /* */ */ ", sql].concat();
    assert_eq!(normal(&behind, plain_backslashes), once, "comments before it do not matter");
    assert!(once.ends_with(statement_body(&once)), "the statement inside is the end of the statement");

    let query = [b"SELECT ", sql].concat();
    let bare = normal(&query, plain_backslashes);
    assert_eq!(statement_body(&bare), bare, "a query is its own statement");
    for wrapper in WRAPPERS {
        let wrapped = normal(&[wrapper.as_bytes(), &query].concat(), plain_backslashes);
        assert_eq!(statement_body(&wrapped), bare, "behind {wrapper}");
    }
}

fn normal(sql: &[u8], plain_backslashes: bool) -> Vec<u8> {
    let mut out = b"left over".to_vec();
    normalize(sql, plain_backslashes, &mut out);
    out
}
