//! Hints in the comments before a statement.

use arrow_cache_core::{Hint, hint, unclear_hint};
use proptest::prelude::*;

const PLAIN: Option<Hint> = Some(Hint::Always { ttl: None, fragments: true, max_stale: None });
const WHOLE: Option<Hint> = Some(Hint::Always { ttl: None, fragments: false, max_stale: None });

fn lasting(seconds: u32) -> Option<Hint> {
    Some(Hint::Always { ttl: Some(seconds), fragments: true, max_stale: None })
}

fn lasting_whole(seconds: u32) -> Option<Hint> {
    Some(Hint::Always { ttl: Some(seconds), fragments: false, max_stale: None })
}

fn check(cases: &[(&str, Option<Hint>)]) {
    for (statement, expected) in cases {
        assert_eq!(hint(statement.as_bytes()), *expected, "{statement:?}");
    }
}

#[test]
fn each_hint_is_read() {
    check(&[
        ("/*+ arrow_cache */ SELECT 1", PLAIN),
        ("/*+ no_arrow_cache */ SELECT 1", Some(Hint::Never)),
        ("/*+ arrow_cache(ttl=30) */ SELECT 1", lasting(30)),
        ("/*+ arrow_cache(ttl=0) */ SELECT 1", lasting(0)),
        ("/*+ arrow_cache(ttl=2147483647) */ SELECT 1", lasting(2_147_483_647)),
        ("/*+ arrow_cache(fragments=off) */ SELECT 1", WHOLE),
        ("/*+ arrow_cache(ttl=30, fragments=off) */ SELECT 1", lasting_whole(30)),
        ("/*+ arrow_cache(fragments=off,ttl=30) */ SELECT 1", lasting_whole(30)),
    ]);
}

#[test]
fn staleness_has_units_of_time() {
    let stale = |milliseconds| Some(Hint::Always { ttl: None, fragments: true, max_stale: Some(milliseconds) });
    check(&[
        ("/*+ arrow_cache(max_stale=5s) */ SELECT 1", stale(5000)),
        ("/*+ arrow_cache(max_stale = 250 ms) */ SELECT 1", stale(250)),
        ("/*+ arrow_cache(max_stale=250) */ SELECT 1", stale(250)),
        ("/*+ arrow_cache(max_stale=0) */ SELECT 1", stale(0)),
        ("/*+ arrow_cache(max_stale=2min) */ SELECT 1", stale(120_000)),
        ("/*+ arrow_cache(max_stale=1h) */ SELECT 1", stale(3_600_000)),
        ("/*+ arrow_cache(max_stale=2147483647) */ SELECT 1", stale(2_147_483_647)),
        ("/*+ arrow_cache(max_stale=2147483648) */ SELECT 1", None),
        ("/*+ arrow_cache(max_stale=2147484s) */ SELECT 1", None),
        ("/*+ arrow_cache(max_stale=4294968s) */ SELECT 1", None),
        ("/*+ arrow_cache(max_stale=-1) */ SELECT 1", None),
        ("/*+ arrow_cache(max_stale=) */ SELECT 1", None),
        ("/*+ arrow_cache(max_stale=s) */ SELECT 1", None),
        ("/*+ arrow_cache(max_stale=5 weeks) */ SELECT 1", None),
        ("/*+ arrow_cache(max_stale=1s, max_stale=2s) */ SELECT 1", None),
        (
            "/*+ arrow_cache(ttl=3, max_stale=1s) */ SELECT 1",
            Some(Hint::Always { ttl: Some(3), fragments: true, max_stale: Some(1000) }),
        ),
    ]);
}

#[test]
fn case_and_white_space_are_free() {
    check(&[
        ("/*+arrow_cache*/SELECT 1", PLAIN),
        ("  \n\t/*+\n\tArrow_Cache ( TTL\n= 007 )\n*/ SELECT 1", lasting(7)),
        ("/*+Arrow_Cache(\n Fragments = OFF , ttl = 7 )*/ SELECT 1", lasting_whole(7)),
        ("/*+NO_ARROW_CACHE*/(SELECT 1)", Some(Hint::Never)),
    ]);
}

#[test]
fn words_of_others_are_passed_over() {
    check(&[
        ("/*+ SeqScan(t) arrow_cache(ttl=30) */ SELECT 1", lasting(30)),
        ("/*+ Leading((a (b c))) Rows(a b #10) no_arrow_cache Parallel(t 4 hard) */ SELECT 1", Some(Hint::Never)),
        ("/*+ IndexScan(\"odd )\"\" name\") Set(x '))') arrow_cache */ SELECT 1", PLAIN),
        ("/*+ SeqScan(arrow_cache) */ SELECT 1", None),
        ("/*+ arrow_cache_2 not_arrow_cache */ SELECT 1", None),
    ]);
}

#[test]
fn the_first_hint_for_us_counts() {
    check(&[
        ("/*+ arrow_cache no_arrow_cache */ SELECT 1", PLAIN),
        ("/*+ no_arrow_cache arrow_cache */ SELECT 1", Some(Hint::Never)),
        ("/*+ no_arrow_cache */ /*+ arrow_cache */ SELECT 1", Some(Hint::Never)),
        ("-- first\n/* second /* inner */ */ /*+ SeqScan(t) */ /*+ arrow_cache */ SELECT 1", PLAIN),
        ("/*+ arrow_cache(ttl=x) */ /*+ no_arrow_cache */ SELECT 1", Some(Hint::Never)),
    ]);
}

#[test]
fn what_does_not_parse_asks_for_nothing() {
    for inside in [
        "",
        "arrow_cache(",
        "arrow_cache()",
        "arrow_cache(ttl)",
        "arrow_cache(ttl=)",
        "arrow_cache(ttl=-1)",
        "arrow_cache(ttl=+1)",
        "arrow_cache(ttl=1.5)",
        "arrow_cache(ttl=1s)",
        "arrow_cache(ttl=2147483648)",
        "arrow_cache(ttl=99999999999999999999)",
        "arrow_cache(ttl=1, ttl=2)",
        "arrow_cache(ttl=1,)",
        "arrow_cache(,ttl=1)",
        "arrow_cache(ttl=1 fragments=off)",
        "arrow_cache(fragments)",
        "arrow_cache(fragments=)",
        "arrow_cache(fragments=on)",
        "arrow_cache(fragments=0)",
        "arrow_cache(fragments=offf)",
        "arrow_cache(fragments='off')",
        "arrow_cache(fragments=off, fragments=off)",
        "arrow_cache(age=1)",
        "arrow_cache(=1)",
        "no_arrow_cache(ttl=1)",
        ", arrow_cache",
        "1 arrow_cache",
        "SeqScan(t arrow_cache",
        "SeqScan(\"t) arrow_cache",
        "/* arrow_cache */",
    ] {
        let statement = format!("/*+ {inside} */ SELECT 1");
        assert_eq!(hint(statement.as_bytes()), None, "{statement:?}");
    }
}

#[test]
fn what_is_meant_for_us_and_not_understood_is_found() {
    for (inside, expected) in [
        ("arow_cache", None),
        ("Arrow_Cahce", None),
        ("arrowcache", None),
        ("arrow-cache", None),
        ("noarrowcache", None),
        ("no-arrow-cache", None),
        ("no_arrow_cach", None),
        ("SeqScan(t) arrow_cahe(ttl=3)", None),
        ("arrow_cache(ttl=1s)", None),
        ("arrow_cache(tll=1)", None),
        ("arrow_cache()", None),
        ("arrow_cache(ttl=1", None),
        ("no_arrow_cache(ttl=1)", None),
        (", arrow_cache", None),
        ("SeqScan(t), arrow_cache", None),
        ("arrow_cache(ttl=x) no_arrow_cache", None),
        ("arrow_cache, ttl=3", PLAIN),
        ("arrow_cache ttl=3", PLAIN),
        ("arrow_cache=off", PLAIN),
        ("arrow_cache no_arrow_cache", PLAIN),
        ("arow_cache no_arrow_cache", Some(Hint::Never)),
    ] {
        let comment = format!("/*+ {inside} */");
        let statement = format!("/*+ SeqScan(t) */ {comment} SELECT 1");
        assert_eq!(unclear_hint(statement.as_bytes()), Some(comment.as_bytes()), "{statement:?}");
        assert_eq!(hint(statement.as_bytes()), expected, "{statement:?}");
    }
}

#[test]
fn what_is_understood_or_meant_for_others_is_not_unclear() {
    for statement in [
        "/*+ arrow_cache */ SELECT 1",
        "/*+ no_arrow_cache*/ SELECT 1",
        "/*+ Leading((a b)) arrow_cache(ttl=30, fragments=off) Rows(a b #10) Set(work_mem \"64MB\") */ SELECT 1",
        "/*+ SeqScan(arow_cache) IndexScan(arrow_cache) */ SELECT 1",
        "/*+ RESULT_CACHE, NOCACHE no_cache parallel(t, 4); */ SELECT 1",
        "/*+ arrows cache arrow */ SELECT 1",
        "/* arow_cache */ SELECT 1",
        "/* + arrow_cache(x) */ SELECT 1",
        "SELECT /*+ arow_cache */ 1",
        "/*+ SeqScan(\"t) arow_cache */ SELECT 1",
        "/*+ arow_cache",
        "",
    ] {
        assert_eq!(unclear_hint(statement.as_bytes()), None, "{statement:?}");
    }
}

#[test]
fn only_comments_with_a_plus_before_the_query_count() {
    check(&[
        ("", None),
        ("SELECT 1", None),
        ("/* arrow_cache */ SELECT 1", None),
        ("/* + arrow_cache */ SELECT 1", None),
        ("--+ arrow_cache\nSELECT 1", None),
        ("-- /*+ arrow_cache */\nSELECT 1", None),
        ("SELECT /*+ arrow_cache */ 1", None),
        ("SELECT 1 /*+ arrow_cache */", None),
        ("'/*+ arrow_cache */'", None),
        ("/*+ arrow_cache", None),
        ("/*+/", None),
    ]);
}

#[test]
fn a_query_inside_another_statement_has_hints_too() {
    check(&[
        ("/*+ arrow_cache */ EXPLAIN SELECT 1", PLAIN),
        ("EXPLAIN /*+ arrow_cache */ SELECT 1", PLAIN),
        ("explain analyze verbose /*+ no_arrow_cache */ SELECT 1", Some(Hint::Never)),
        ("EXPLAIN (COSTS off, FORMAT 'json') /*+ arrow_cache */ SELECT 1", PLAIN),
        ("PREPARE \"p (\" (int, numeric(3, 2)) AS /*+ arrow_cache(ttl=9) */ SELECT 1", lasting(9)),
        ("DECLARE c NO SCROLL CURSOR FOR /*+ no_arrow_cache */ SELECT 1", Some(Hint::Never)),
        ("COPY (/*+ no_arrow_cache */ SELECT 1) TO STDOUT", Some(Hint::Never)),
        ("/*+ arrow_cache */ COPY t (a) TO STDOUT", PLAIN),
        ("COPY t (a) TO STDOUT /*+ arrow_cache */ (FORMAT arrow)", None),
        ("COPY (SELECT /*+ arrow_cache */ 1) TO STDOUT", None),
        ("EXPLAIN SELECT /*+ arrow_cache */ 1", None),
        ("PREPARE p AS WITH a AS (/*+ arrow_cache */ SELECT 1) SELECT 1", None),
        ("EXPLAIN (SELECT 1", None),
        ("INSERT INTO t /*+ arrow_cache */ SELECT 1", None),
    ]);
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_fault(statement in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = (hint(&statement), unclear_hint(&statement));
    }

    #[test]
    fn pieces_of_hints_are_read_without_a_fault(
        pieces in proptest::collection::vec(
            prop::sample::select(vec![
                "/*+", "*/", "/*", "--", "\n", " ", "(", ")", "\"", "'", "arrow_cache", "no_arrow_cache", "ttl", "fragments", "=", "30", "off", ",",
                "explain", "as", "select",
            ]),
            0..24,
        )
    ) {
        let statement = pieces.concat();
        let found = hint(statement.as_bytes());
        if !statement.to_ascii_lowercase().contains("arrow_cache") {
            prop_assert_eq!(found, None);
        }
    }

    /// White space, comments and other programs' words before a hint do not matter.
    #[test]
    fn a_hint_is_found_behind_anything_that_may_stand_before_it(
        seconds in 0..=2_147_483_647u32,
        before in "[ \n\t]{0,3}(-- [a-z+*/]{0,5}\n|/\\* [a-z]{0,5} \\*/){0,2}",
        others in "(SeqScan\\([a-z]{1,3}\\) ?){0,3}",
    ) {
        let statement = format!("{before}/*+ {others} arrow_cache(ttl={seconds}) */ SELECT 1");
        prop_assert_eq!(hint(statement.as_bytes()), lasting(seconds));
    }
}
