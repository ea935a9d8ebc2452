"""Immutable functions in C of extensions that a superuser trusts count like built-in ones, with their operators and operator classes."""

import psycopg
import pytest

from support.agreement import agree

EXTENSIONS = ["citext", "hstore", "ltree", "pg_trgm", "intarray", "cube", "fuzzystrmatch", "unaccent", "pgcrypto", "btree_gist"]


@pytest.fixture
def made(session, connect):
    session.prepare_threshold = 10**9
    for extension in EXTENSIONS:
        try:
            session.execute(f'CREATE EXTENSION "{extension}" SCHEMA {connect.schema}')
        except psycopg.errors.Error as error:
            pytest.skip(str(error))
    session.execute("""
        CREATE TABLE t AS SELECT g AS a, ('Name ' || g)::citext AS c, hstore('k' || g % 3, g::text) AS h, ('a.b.' || g)::ltree AS l,
            'word ' || g AS w, ARRAY[g, g % 4] AS i, cube(g, g + 1) AS q FROM generate_series(1, 40) g;
        INSERT INTO t SELECT a, upper(c::text)::citext, h, l, w, i, q FROM t WHERE a < 5
    """)
    yield session
    session.execute("RESET ALL")
    for extension in EXTENSIONS:
        session.execute(f'DROP EXTENSION "{extension}" CASCADE')


SERVED = [
    ("citext", "SELECT a FROM t WHERE c = 'NAME 3' ORDER BY a"),
    ("citext", "SELECT a, c FROM t WHERE c > 'name 2' ORDER BY c, a"),
    ("citext", "SELECT count(DISTINCT c) FROM t"),
    ("citext", "SELECT x.a, y.a FROM t x JOIN t y USING (c) WHERE x.a < 4 ORDER BY 1, 2"),
    ("citext", "SELECT a FROM t WHERE c IN ('name 1', 'NAME 2', 'x') ORDER BY a"),
    ("citext", "SELECT a FROM t WHERE c LIKE 'NAME 1%' ORDER BY a"),
    ("hstore", "SELECT a, h -> 'k1', h ? 'k1' FROM t WHERE h @> 'k1=>1' ORDER BY a"),
    ("ltree", "SELECT a, nlevel(l) FROM t WHERE l <@ 'a.b' ORDER BY a LIMIT 5"),
    ("pg_trgm", "SELECT a, similarity(w, 'word 7') FROM t ORDER BY 2 DESC, 1 LIMIT 5"),
    ("intarray", "SELECT a, icount(i) FROM t WHERE i && '{3}' ORDER BY a"),
    ("cube", "SELECT a FROM t WHERE q @> cube(3) ORDER BY a"),
    ("fuzzystrmatch", "SELECT a, levenshtein(w, 'word') FROM t ORDER BY a"),
    ("pgcrypto", "SELECT a, digest(w, 'sha256') FROM t ORDER BY a"),
    # Aggregates of their functions, and sets and rows of OUT columns.
    ("citext", "SELECT min(c), max(c) FROM t"),
    ("citext", "SELECT a % 3, max(c) FROM t GROUP BY 1 ORDER BY 1"),
    ("citext", "SELECT a, min(c) OVER (ORDER BY a) FROM t WHERE a > 35 ORDER BY a"),
    ("hstore", "SELECT a, (each(h)).key FROM t ORDER BY a"),
    ("hstore", "SELECT a, e.key, e.value FROM t, each(h) e ORDER BY a"),
    ("hstore", "SELECT a, skeys(h), svals(h) FROM t ORDER BY a"),
    ("hstore", "SELECT k, count(*) FROM t, skeys(h) k GROUP BY k ORDER BY k"),
]
REFUSED = [
    ("pg_trgm", "SELECT a FROM t WHERE w % 'word 7' ORDER BY a", "stable_function"),
    ("pg_trgm", "SELECT a, word_similarity('word', w) FROM t ORDER BY a", "user_defined_function"),
    ("unaccent", "SELECT a, unaccent(w) FROM t ORDER BY a", "user_defined_function"),
    ("hstore", "SELECT a, hstore(t) IS NULL FROM t ORDER BY a", "user_defined_function"),
    ("hstore", "SELECT a, hstore_send(h) FROM t ORDER BY a", "user_defined_function"),
    ("hstore", "SELECT a, h::text FROM t ORDER BY a", "user_defined_function"),
    ("hstore", "SELECT each(h) FROM t ORDER BY a", "record_type"),
    ("hstore", "SELECT a, min(c) FROM t GROUP BY a", "user_defined_function"),
    ("pgcrypto", "SELECT a, gen_random_bytes(4) IS NULL FROM t ORDER BY a", "user_defined_function"),
    ("pgcrypto", "SELECT a, crypt(w, 'ab') FROM t ORDER BY a", "user_defined_function"),
    ("hstore, ltree", "SELECT a FROM t WHERE c = 'NAME 3' ORDER BY a", "user_defined_function"),
]


def test_served_and_refused(made):
    for extension, query in SERVED:
        made.execute("SET pg_arrow_cache.trusted_extensions = ''")
        assert agree(made, query) == ("BYPASS", "user_defined_function"), query
        [(detail,)] = made.rows("SELECT detail FROM arrow_cache.why(%s)", [query])
        assert f"of the extension {extension}, which would count like a built-in one if pg_arrow_cache.trusted_extensions named that" in detail, detail
        made.execute(f"SET pg_arrow_cache.trusted_extensions = 'other, {extension.upper()} ,'")
        assert agree(made, query) == ("HIT", None), query
    for extensions, query, reason in REFUSED:
        made.execute(f"SET pg_arrow_cache.trusted_extensions = '{extensions}'")
        status, found = agree(made, query)
        assert status == "BYPASS" and found in (reason, "user_defined_function"), (query, status, found)


def test_kept_plans(made):
    """A plan that was made while an extension was trusted does not outlive the trust."""
    query = "SELECT a FROM t WHERE c = 'NAME 3' ORDER BY a"
    made.execute("SET pg_arrow_cache.trusted_extensions = 'citext'; SET plan_cache_mode = force_generic_plan")
    assert agree(made, query, prepare=True) == ("HIT", None)
    made.execute("SET pg_arrow_cache.trusted_extensions = ''")
    found = []
    for _ in range(2):
        assert made.rows(query, prepare=True) == [(3,), (3,)]
        found.append(made.reason())
    assert found == ["old_plan", "user_defined_function"]
    assert agree(made, query, prepare=False) == ("BYPASS", "user_defined_function")
    made.execute("SET pg_arrow_cache.trusted_extensions = 'citext'")
    assert agree(made, query, prepare=False) == ("HIT", None)


def test_index(made):
    """The operator class of an extension may be scanned, trusted or not: the plan without it has the same rows."""
    made.execute("CREATE INDEX ON t USING gin (w gin_trgm_ops); SET enable_seqscan = off")
    query = "SELECT a FROM t WHERE w LIKE '%ord 7%' ORDER BY a"
    assert "Bitmap Index Scan" in str(made.uncached(f"EXPLAIN {query}"))
    assert agree(made, query) == ("HIT", None)
    made.execute("SET pg_arrow_cache.trusted_extensions = 'pg_trgm'")
    assert agree(made, query) == ("HIT", None)


def test_index_of_another_method(made, connect):
    """The reason names the index: the query itself could be cached."""
    made.execute(f"CREATE EXTENSION bloom SCHEMA {connect.schema}; CREATE INDEX bloomed ON t USING bloom (a); SET enable_seqscan = off")
    try:
        query = "SELECT w FROM t WHERE a = 7 ORDER BY a"
        assert "bloomed" in str(made.uncached(f"EXPLAIN {query}"))
        for trusted in ("", "bloom"):
            made.execute(f"SET pg_arrow_cache.trusted_extensions = '{trusted}'")
            assert agree(made, query) == ("BYPASS", "index_method")
            [(reason, detail)] = made.rows("SELECT reason, detail FROM arrow_cache.why(%s)", [query])
            assert reason == "index_method" and detail.endswith(f"It reads {connect.schema}.bloomed.")
        made.execute("SET enable_seqscan = on; SET enable_bitmapscan = off")
        assert agree(made, query) == ("HIT", None)
    finally:
        made.execute("DROP EXTENSION bloom CASCADE")


def test_what_trusting_would_change(made):
    made.execute("SET pg_arrow_cache.trusted_extensions = 'pg_trgm'")
    for query, sentence in (("SELECT word_similarity('word', w) FROM t", "which trusting that extension does not change"),
                            ("SELECT unaccent(w) FROM t", "which trusting that extension does not change"),
                            ("SELECT icount(i) FROM t", "which would count like a built-in one")):
        [(cacheable, detail)] = made.rows("SELECT cacheable, detail FROM arrow_cache.why(%s)", [query])
        assert not cacheable and sentence in detail, detail


def test_aggregates_of_others(made):
    """An aggregate counts only if each of its parts does."""
    made.execute("""
        CREATE FUNCTION chosen(citext, citext) RETURNS citext LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END';
        CREATE AGGREGATE chosen(citext) (sfunc = chosen, stype = citext);
        CREATE AGGREGATE least_of(citext) (sfunc = citext_smaller, stype = citext);
        CREATE AGGREGATE outside(citext) (sfunc = citext_smaller, stype = citext);
        CREATE AGGREGATE started(citext) (sfunc = citext_smaller, stype = citext, initcond = 'x');
        SET pg_arrow_cache.trusted_extensions = 'citext'
    """)
    for name in ("chosen", "least_of", "started"):
        made.execute(f"ALTER EXTENSION citext ADD AGGREGATE {name}(citext)")
    assert agree(made, "SELECT least_of(c) FROM t") == ("HIT", None)
    for name in ("chosen", "started", "outside"):
        assert agree(made, f"SELECT {name}(c) FROM t") == ("BYPASS", "user_defined_function")


def test_members_of_users(made):
    """What the owner of an extension adds to it is not trusted unless it is in C."""
    made.execute("""
        CREATE FUNCTION added(x int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN x; END';
        CREATE FUNCTION same(x int, y int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN x = y; END';
        CREATE OPERATOR === (leftarg = int, rightarg = int, function = same);
        ALTER EXTENSION citext ADD FUNCTION added(int);
        ALTER EXTENSION citext ADD OPERATOR === (int, int);
        SET pg_arrow_cache.trusted_extensions = 'citext'
    """)
    for query in ("SELECT added(a) FROM t ORDER BY a", "SELECT a FROM t WHERE a === 3 ORDER BY a"):
        assert agree(made, query) == ("BYPASS", "user_defined_function")


def test_who_may_set_it(made, connect):
    made.execute("CREATE ROLE trusts_nothing; SET ROLE trusts_nothing")
    try:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            made.execute("SET pg_arrow_cache.trusted_extensions = 'citext'")
    finally:
        made.execute("RESET ROLE; DROP ROLE trusts_nothing")
