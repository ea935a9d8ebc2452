"""Clock expressions are computed by the server's executor, for the cache alone: without an error of a client's that it has not caused, with what
the client may call, and unseen by other libraries. A plan that is kept has them made ready once."""

import psycopg
import pytest
from support.windows import START, after

SCHEMA = """
    SET TimeZone = UTC;
    CREATE TABLE seen (id int, at timestamptz);
    INSERT INTO seen SELECT g, timestamptz '2026-03-10 11:00' + g * interval '30 seconds' FROM generate_series(1, 240) g;
    CREATE INDEX ON seen (at);
    CREATE ROLE computing LOGIN;
    GRANT SELECT ON seen TO computing;
    ANALYZE seen;
"""
WINDOW = "SELECT count(*), max(id) FROM seen WHERE at > now() - interval '10 minutes'"


@pytest.fixture(scope="module")
def filled(server):
    server.set(str(START))
    server.psql(SCHEMA)
    return server


def outcome(session, query):
    try:
        return session.rows(query)
    except psycopg.Error as error:
        return error.sqlstate


@pytest.mark.parametrize("mode", ("force_custom_plan", "force_generic_plan"))
def test_a_right_that_is_taken_and_given_back(filled, at, mode):
    filled.set(str(START))
    cached, plain = (at(f"-c TimeZone=UTC -c role=computing -c plan_cache_mode={mode} {options}") for options in ("", "-c pg_arrow_cache.enabled=off"))
    for session in cached, plain:
        session.execute(f"PREPARE q AS {WINDOW}")
    change = "{} EXECUTE ON FUNCTION timestamptz_mi_interval(timestamptz, interval) {} PUBLIC"
    for allowed in (True, False, True):
        filled.psql(change.format("GRANT" if allowed else "REVOKE", "TO" if allowed else "FROM"))
        for text in (WINDOW, "EXECUTE q", WINDOW, "EXECUTE q"):
            found = outcome(plain, text)
            assert found == "42501" or allowed
            for _ in range(2):
                assert outcome(cached, text) == found, (allowed, text, cached.reason())
    assert cached.rows(WINDOW) and cached.status() == "HIT"


@pytest.mark.parametrize("mode", ("force_custom_plan", "force_generic_plan"))
def test_values_that_fail_and_others(filled, at, mode):
    """One that fails leaves what was made ready as it was."""
    cached, plain = (at(f"-c TimeZone=UTC -c plan_cache_mode={mode} {options}") for options in ("", "-c pg_arrow_cache.enabled=off"))
    queries = (("text", "SELECT count(*), max(id) FROM seen WHERE at > now() - ($1 || ' minutes')::interval", ("10", "ten", "NULL", "1e30", "5")),
               ("text", "SELECT count(*), max(id) FROM seen WHERE at > date_trunc($1, now())", ("hour", "no unit", "NULL", "minute", "second")),
               ("int", "SELECT count(*), max(id) FROM seen WHERE at > now() - make_interval(mins => $1) / ($1 - 5)", ("7", "5", "NULL", "9")),
               ("text", "SELECT count(*), max(id) FROM seen WHERE at > COALESCE($1::timestamptz, now() - interval '1 minute')", ("NULL", "now", "x", "2026-03-10")))
    seen = []
    for of_type, query, values in queries:
        for session in cached, plain:
            session.execute(f"PREPARE q ({of_type}) AS {query}")
        for moment in (0, 31, 61, 0):
            filled.set(after(moment))
            for value in values * 2:
                execute = "EXECUTE q ({})".format(value if value == "NULL" else f"'{value}'")
                expected = outcome(plain, execute)
                for _ in range(2):
                    assert outcome(cached, execute) == expected, (query, value, moment)
                    seen.append(cached.status())
        for session in cached, plain:
            session.execute("DEALLOCATE q")
    assert seen.count("HIT") > 60


def test_a_plan_that_is_copied_and_kept(filled, at):
    """A plan is planned, copied, and made anew; what was made ready for one is of no use to its copy."""
    cached, plain = at("-c TimeZone=UTC"), at("-c TimeZone=UTC -c pg_arrow_cache.enabled=off")
    for number in range(20):
        cached.execute(f"PREPARE q{number} AS {WINDOW} AND id > {number} AND at < date_trunc('day', GREATEST(now(), '2020-01-01')) + interval '1 day'")
    for moment in range(0, 200, 25):
        filled.set(after(moment))
        for number in range(20):
            expected = plain.rows(f"{WINDOW} AND id > {number}")
            assert cached.rows(f"EXECUTE q{number}") == expected, (moment, number)
            assert cached.rows(f"{WINDOW} AND id > {number}") == expected
        # All plans are made anew.
        cached.execute("CREATE INDEX again ON seen (id)" if moment % 2 else "DROP INDEX IF EXISTS again")
