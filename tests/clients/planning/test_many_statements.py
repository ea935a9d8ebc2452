"""Many statements in one message: each has its own text, its own hint and its own entry, wherever it stands in the message and whatever stands around it."""

import pytest

TABLE = "CREATE TABLE t AS SELECT g AS id, 'räksmörgås ' || g AS name FROM generate_series(1, 20) g"
# What stands before a statement, behind the semicolon of the one before.
BEFORE = ["", " ", "\n", " \t\r\n ", "-- of the line\n", "/* a, b */ ", ";;\n", " -- a; b\n;"]
COUNT = 64


def statements():
    """(what stands before it, the statement as it is stored, its status); each asks for something of its own."""
    for number in range(COUNT):
        before = BEFORE[number % len(BEFORE)]
        query = f"SELECT name FROM t WHERE name <> 'ö;{number}' AND id = {number % 20 + 1}"
        yield (f"{before}/*+ no_arrow_cache */ ", query, False) if number % 3 == 0 else (f"{before}/*+ arrow_cache */ ", query, True)


@pytest.mark.parametrize("end", ["", ";", "; \n", " -- end", "; /*+ no_arrow_cache */"])
def test_each_statement_has_its_own_text(session, end):
    session.execute(TABLE)
    session.execute("SET pg_arrow_cache.min_execution_time = '1min'")
    message = ";".join(before + query for before, query, _ in statements()) + end
    expected = [f"räksmörgås {number % 20 + 1}" for number in range(COUNT)]
    stored = sorted(query for _, query, is_stored in statements() if is_stored)
    for _ in range(2):
        cursor = session.connection.execute(message)
        found = [cursor.fetchall()]
        while cursor.nextset():
            found.append(cursor.fetchall())
        assert found == [[(name,)] for name in expected]
    entries = session.rows("SELECT substring(query FROM 'SELECT .*'), hits FROM arrow_cache.entries WHERE kind = 'answer'")
    assert [(query, 1) for query in stored] == sorted(entries)


@pytest.mark.parametrize("hint, is_combined", [("", True), ("/*+ arrow_cache(fragments=off) */ ", False)])
def test_explain_has_its_own_hint(session, connect, hint, is_combined):
    """Not that of the statements before it in the message."""
    session.execute("CREATE TABLE p (k int, v int) PARTITION BY RANGE (k); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);"
                    "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20); INSERT INTO p SELECT g, g FROM generate_series(0, 19) g")
    reader = connect("-c pg_arrow_cache.debug_force_fragments=on")
    other = "" if hint else "/*+ arrow_cache(fragments=off) */ "
    cursor = reader.execute(f"{other}SELECT count(*) FROM p; {hint}EXPLAIN SELECT sum(v) FROM p; {other}SELECT 1")
    assert cursor.nextset()
    assert ("ArrowCacheFragments" in str(cursor.fetchall())) == is_combined
