//! Normal SQL text, and the statement inside EXPLAIN, PREPARE and DECLARE.

use arrow_cache_core::{normalize, statement_body};
use proptest::prelude::*;

fn with_setting(sql: &str, standard_conforming_strings: bool) -> String {
    let mut out = b"left over".to_vec();
    normalize(sql.as_bytes(), standard_conforming_strings, &mut out);
    String::from_utf8(out).unwrap()
}

fn n(sql: &str) -> String {
    with_setting(sql, true)
}

fn body(sql: &str) -> String {
    String::from_utf8(statement_body(n(sql).as_bytes()).to_vec()).unwrap()
}

#[test]
fn space_comments_and_case() {
    for (sql, expected) in [
        ("", ""),
        ("  \t\n ", ""),
        (";", ""),
        ("SELECT 1", "select 1"),
        ("  Select\n\t 1 \r\n;; ; ", "select 1"),
        ("select\x0b1\x0c", "select 1"),
        ("SELECT/**/a", "select a"),
        ("Select a", "select a"),
        ("select/* x /* nested */ y */a", "select a"),
        ("select /*/**/*/ a", "select a"),
        ("select /***/a/****/", "select a"),
        ("select a -- c\n, b", "select a , b"),
        ("select a -- c\r, b", "select a , b"),
        ("select a -- to the end", "select a"),
        ("select a;-- to the end", "select a"),
        ("/* head */ select 1", "select 1"),
        ("select a+-- c\nb", "select a+ b"),
        ("select a*/*c*/b", "select a* b"),
        ("select a+/*c*/-b", "select a+ -b"),
        ("select a - -b", "select a - -b"),
        ("select a /b", "select a /b"),
        ("select A.B, $1, $12", "select a.b, $1, $12"),
        ("select 1E5, .5E-3, 0XFF, 1..2", "select 1e5, .5e-3, 0xff, 1..2"),
        ("select ÄÉ, É", "select ÄÉ, É"),
        ("select a; select b;", "select a; select b"),
    ] {
        assert_eq!(n(sql), expected, "{sql:?}");
    }
}

#[test]
fn strings_stay_as_they_are() {
    for (sql, expected) in [
        ("SELECT 'A  B'", "select 'A  B'"),
        ("SELECT 'It''s -- NO comment' , X", "select 'It''s -- NO comment' , x"),
        (r"SELECT 'A\', 'B'", r"select 'A\', 'B'"),
        (r"SELECT E'A\' B', C", r"select e'A\' B', c"),
        (r"SELECT E'A\\', C", r"select e'A\\', c"),
        (r"SELECT E'A\'''B''', C", r"select e'A\'''B''', c"),
        ("SELECT B'01', X'aB', N'Q', U&'\\0041'", "select b'01', x'aB', n'Q', u&'\\0041'"),
        (r"SELECT X'A\', 'B'", r"select x'A\', 'B'"),
        (r"SELECT U&'A\', B", r"select u&'A\', b"),
        ("SELECT NAMEE'A\\', 'B'", "select namee'A\\', 'B'"),
        ("SELECT \"Aa  B\", \"x\"\"Y\"", "select \"Aa  B\", \"x\"\"Y\""),
        ("SELECT U&\"Aa\", U & \"B\"", "select u&\"Aa\", u & \"B\""),
        ("SELECT \"a\\\", B", "select \"a\\\", b"),
        ("SELECT 'a;'", "select 'a;'"),
        ("SELECT 'a ' ;", "select 'a '"),
        ("SELECT DATE'A'", "select date'A'"),
    ] {
        assert_eq!(n(sql), expected, "{sql:?}");
    }
}

#[test]
fn backslashes_without_standard_conforming_strings() {
    assert_eq!(with_setting(r"SELECT 'A\' B', C", false), r"select 'A\' B', c");
    assert_eq!(with_setting(r"SELECT N'A\' B', C", false), r"select n'A\' B', c");
    assert_eq!(with_setting(r"SELECT X'A\', C", false), r"select x'A\', c");
    assert_eq!(with_setting("SELECT \"A\\\", C", false), "select \"A\\\", c");
    assert_eq!(with_setting(r"SELECT $$A\$$, C", false), r"select $$A\$$, c");
}

#[test]
fn strings_go_on_after_a_newline() {
    assert_eq!(n("SELECT 'A' \n  'B', C"), "select 'A'\n'B', c");
    assert_eq!(n("SELECT 'A' 'B'"), "select 'A' 'B'");
    assert_ne!(n("SELECT 'A'\n'B'"), n("SELECT 'A' 'B'"));
    // The second part is an escape string like the first.
    assert_eq!(n("SELECT E'A'\n'B\\' C', D"), "select e'A'\n'B\\' C', d");
    assert_eq!(n("SELECT 'A' -- c\n -- d\n 'B\\', D"), "select 'A'\n'B\\', d");
    // A block comment does not continue a string: the second one is a plain string of its own.
    assert_eq!(n("SELECT E'A' /*\n*/ 'B\\', D"), "select e'A' 'B\\', d");
    assert_eq!(n("SELECT 'A'\n- 'B'"), "select 'A' - 'B'");
    assert_eq!(n("SELECT \"A\"\n\"B\""), "select \"A\" \"B\"");
    assert_eq!(n("SELECT X'A'\r'B'"), "select x'A'\n'B'");
}

#[test]
fn dollar_quotes() {
    for (sql, expected) in [
        ("SELECT $$A  'B$$ , C", "select $$A  'B$$ , c"),
        ("SELECT $Tag$ A $tag$ $$ $Tag$ , C", "select $Tag$ A $tag$ $$ $Tag$ , c"),
        ("SELECT $a$x$b$a$ , C", "select $a$x$b$a$ , c"),
        ("SELECT $$a$$$B$X$B$, C", "select $$a$$$B$X$B$, c"),
        ("SELECT A$1 , B$$ , C$$", "select a$1 , b$$ , c$$"),
        ("SELECT $1$$A$$", "select $1$$A$$"),
        ("SELECT $1a$ B", "select $1a$ b"),
        ("SELECT $é$A$é$, B", "select $é$A$é$, b"),
        ("SELECT $ A", "select $ a"),
    ] {
        assert_eq!(n(sql), expected, "{sql:?}");
    }
}

#[test]
fn what_does_not_end_is_copied() {
    for (sql, expected) in [
        ("SELECT 'A ; ", "select 'A ; "),
        ("SELECT E'A\\", "select e'A\\"),
        ("SELECT \"A ;", "select \"A ;"),
        ("SELECT $x$ A ; ", "select $x$ A ; "),
        ("SELECT  /* A /* b */ ; ", "select /* A /* b */ ; "),
        ("SELECT U&'A ", "select u&'A "),
        ("SELECT /*", "select /*"),
        ("SELECT /*/", "select /*/"),
    ] {
        assert_eq!(n(sql), expected, "{sql:?}");
    }
}

#[test]
fn explain_bodies() {
    for (sql, expected) in [
        ("EXPLAIN SELECT 1", "select 1"),
        ("explain analyze select 1", "select 1"),
        ("explain ANALYSE verbose select 1", "select 1"),
        ("explain verbose select 1", "select 1"),
        ("explain (analyze, costs off) select 1", "select 1"),
        ("explain(analyze)select 1", "select 1"),
        ("explain (format 'te)xt', \"x)\" on) select 1", "select 1"),
        ("explain (select 1)", "(select 1)"),
        ("explain ((select 1) union (select 2))", "((select 1) union (select 2))"),
        ("explain (values (1))", "(values (1))"),
        ("explain (values off) select 1", "select 1"),
        ("explain (table t)", "(table t)"),
        ("explain analyze (with x as (select 1) select * from x)", "(with x as (select 1) select * from x)"),
        ("explain analyze declare c cursor for select 1", "select 1"),
        ("explain", "explain"),
        ("explain (analyze", "explain (analyze"),
        ("explaining", "explaining"),
        ("explain execute p(1)", "execute p(1)"),
    ] {
        assert_eq!(body(sql), expected, "{sql:?}");
    }
}

#[test]
fn prepare_bodies() {
    for (sql, expected) in [
        ("PREPARE p AS SELECT 1", "select 1"),
        ("prepare p(int, numeric(10,2), \"my)type\"[]) as select $1", "select $1"),
        ("prepare p (int) as select $1", "select $1"),
        ("prepare \"As is\" as select 1", "select 1"),
        ("prepare \"a\"\"b\"as select 1", "select 1"),
        ("prepare U&\"d!0061t\" UESCAPE '!' as select 1", "select 1"),
        ("prepare u&\"x\" as select 1", "select 1"),
        ("prepare as as select 1", "select 1"),
        ("prepare transaction 'x'", "prepare transaction 'x'"),
        ("prepare p select 1", "prepare p select 1"),
    ] {
        assert_eq!(body(sql), expected, "{sql:?}");
    }
}

#[test]
fn copy_bodies() {
    for (sql, wanted) in [
        ("copy (select 1) to stdout (format arrow)", "select 1"),
        ("copy ( select ')', (2) ) to stdout", "select ')', (2)"),
        ("copy(select 1)to stdout", "select 1"),
        ("copy ((select 1)) to stdout", "(select 1)"),
        ("copy t to stdout", "copy t to stdout"),
        ("copy t (a) to stdout", "copy t (a) to stdout"),
        ("copy (select 1) from stdin", "copy (select 1) from stdin"),
        ("copy (select e'\\')') to stdout", "copy (select e'\\')') to stdout"),
        ("copy () to stdout", "copy () to stdout"),
        ("copy (select 1", "copy (select 1"),
    ] {
        assert_eq!(body(sql), body(wanted), "{sql}");
    }
}

#[test]
fn declare_bodies() {
    for (sql, expected) in [
        ("DECLARE c CURSOR FOR SELECT 1", "select 1"),
        ("declare c binary insensitive no scroll cursor with hold for select 1", "select 1"),
        ("declare \"My C\" scroll cursor without hold for select 1", "select 1"),
        ("declare c asensitive cursor for(select 1)", "(select 1)"),
        ("declare cursor cursor for select 1 for update", "select 1 for update"),
        ("declare c cursor select 1", "declare c cursor select 1"),
        ("declare c no cursor for select 1", "declare c no cursor for select 1"),
        ("select 1", "select 1"),
    ] {
        assert_eq!(body(sql), expected, "{sql:?}");
    }
}

/// Pieces that make quotes, comments and prefixes meet.
fn fragments() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a", "E", "b", "N", "U&", "'", "''", "\\", "\"", "$", "$$", "$t$", "1", "--", "/*", "*/", "\n", " ", ";", "X'",
        "(", "+", "É", "explain ", "prepare ", "declare ", " as ", " cursor ", " for ",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(common_config())]

    #[test]
    fn normal_form_is_its_own(sql in fragments(), standard in any::<bool>()) {
        let once = with_setting(&sql, standard);
        prop_assert_eq!(with_setting(&once, standard), once);
    }

    #[test]
    fn bodies_are_ends(sql in fragments()) {
        let once = n(&sql);
        let inner = statement_body(once.as_bytes());
        prop_assert!(once.as_bytes().ends_with(inner));
    }
}

fn common_config() -> ProptestConfig {
    ProptestConfig { cases: if cfg!(miri) { 8 } else { 2000 }, failure_persistence: None, ..ProptestConfig::default() }
}
