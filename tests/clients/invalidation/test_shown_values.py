"""What users are shown of answers that rest on rows with certain values: by why(), entries and tracked."""

from invalidation.test_values import SETUP, is_hit, tracked, until_tracked

QUERY = "SELECT id, v FROM t WHERE tenant = {} ORDER BY id"


def why(session, query):
    """The detail, in which names have no schema."""
    return session.rows("SELECT cacheable, replace(detail, current_schema() || '.', '') FROM arrow_cache.why(%s)", [query])


def by_value(session):
    return session.rows("SELECT relations::text[], relations_by_value::text[] FROM arrow_cache.entries ORDER BY query")


def shown(session, table="t"):
    (row,) = session.rows("SELECT entries, changes, coarse_changes FROM arrow_cache.tracked WHERE relation = %s::regclass", [table])
    return row


def track(session):
    until_tracked(session, lambda number: session.rows(QUERY.format(number + 1)), ["tenant"])
    session.execute("SELECT arrow_cache.flush()")


def test_why(session):
    session.execute(SETUP)
    session.execute("CREATE TABLE parted (k int, v int) PARTITION BY LIST (k); CREATE TABLE leaf PARTITION OF parted DEFAULT")
    one, both = QUERY.format(7), "SELECT u.v FROM unrelated AS u JOIN t ON t.id > u.id WHERE tenant IN (7, 9)"
    assert why(session, one) == [(True, "rests on t (whole until tenant is tracked)")]
    assert why(session, "SELECT v FROM t WHERE tenant > 7") == [(True, "rests on t")]
    assert why(session, "SELECT v FROM leaf WHERE k = 7") == [(True, "rests on leaf (whole until k is tracked)")]
    track(session)
    assert why(session, one) == [(True, "rests on t (rows by tenant)")]
    assert why(session, both) == [(True, "rests on t (rows by tenant), unrelated")]
    assert why(session, "SELECT v FROM t WHERE tenant > 7") == [(True, "rests on t")]
    assert why(session, "SELECT v FROM t WHERE id = 7") == [(True, "rests on t (whole until id is tracked)")]
    assert why(session, "SELECT a.v FROM t AS a JOIN t AS b USING (v) WHERE a.tenant = 7") == [(True, "rests on t")]
    # A stored answer tells what it rests on itself.
    session.rows(one)
    assert is_hit(session, one)
    assert why(session, one) == [(True, "rests on t (rows by tenant)")]
    session.execute("SET pg_arrow_cache.precise_invalidation = off")
    assert why(session, QUERY.format(8)) == [(True, "rests on t")]


def test_columns_that_the_user_may_not_read(session):
    session.execute(SETUP)
    (schema,), = session.rows("SELECT current_schema()")
    session.execute("CREATE ROLE stranger; CREATE VIEW through AS SELECT v FROM t WHERE tenant = 7; "
                    f"GRANT USAGE ON SCHEMA {schema} TO stranger; GRANT SELECT ON through TO stranger")
    track(session)
    session.execute("SET ROLE stranger")
    try:
        assert why(session, "SELECT v FROM through") == [(True, "rests on through and 1 that you may not read")]
        session.rows("SELECT v FROM through")
        assert by_value(session) == [(["through"], [])]
        assert session.rows("SELECT * FROM arrow_cache.tracked") == []
    finally:
        session.execute("RESET ROLE; DROP OWNED BY stranger; DROP ROLE stranger")


def test_views(session, other):
    session.execute(SETUP)
    session.rows(QUERY.format(7))
    assert by_value(session) == [(["t"], [])]
    track(session)
    assert tracked(session) == [["tenant"]] and shown(session)[0] == 0
    for query in ("SELECT count(*) FROM t", QUERY.format(7), QUERY.format(8)):
        session.rows(query)
    session.rows("SELECT t.v FROM t, unrelated WHERE tenant = 7")
    assert by_value(session) == [(["t"], []), (["t"], ["t"]), (["t"], ["t"]), (["t", "unrelated"], ["t"])]
    entries, changes, coarse = shown(session)
    assert entries == 3
    other.execute("UPDATE t SET v = 0 WHERE tenant = 8")
    assert shown(session) == (entries, changes + 1, coarse)
    other.execute("UPDATE t SET v = v FROM generate_series(1, 1) WHERE tenant = 8; TRUNCATE unrelated")
    other.execute("TRUNCATE t")
    after = shown(session)
    assert after[0] == entries and after[1] > changes + 1 and after[2] > coarse
