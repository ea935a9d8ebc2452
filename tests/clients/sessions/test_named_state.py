"""State of the session that a query names, and whose value is in its key: settings of the server that show nothing but themselves, the
role that has logged in, the name of the database."""

import pytest

from support.agreement import agree
from support.session import DSN, Session

HIT = ("HIT", None)


@pytest.fixture
def table(session, other):
    session.prepare_threshold = other.prepare_threshold = None
    session.execute("CREATE TABLE t AS SELECT g AS a, timestamptz '2024-05-01 23:30+00' AS at FROM generate_series(1, 3) g")
    return session


@pytest.mark.parametrize("name, values", {
    "TimeZone": ("UTC", "Asia/Tokyo", "<+01>-01"),
    "datestyle": ("ISO, MDY", "German, DMY"),
    "INTERVALSTYLE": ("postgres", "iso_8601"),
    "application_name": ("one", "two", ""),
    "lc_time": ("C", "POSIX"),
}.items())
def test_plain_settings(table, other, name, values):
    query = f"SELECT a, current_setting('{name}') FROM t ORDER BY a"
    for value in (*values, *values):
        for session in (table, other):
            session.execute("SELECT set_config(%s, %s, false)", [name, value])
        assert agree(table, query) == HIT
        assert agree(other, query) == HIT
        assert table.rows(query)[0][1].lower() == value.lower()


def test_a_zone_by_its_setting(table):
    query = "SELECT a, (at AT TIME ZONE current_setting('TimeZone'))::date FROM t"
    seen = set()
    for zone in ("UTC", "Asia/Tokyo", "UTC"):
        table.execute(f"SET TimeZone = '{zone}'")
        assert agree(table, query) == HIT
        seen.add(str(table.rows(query)))
    assert len(seen) == 2


def test_the_schemas_that_are_searched(table, connect):
    query = f"SELECT a, current_setting('search_path') FROM {connect.schema}.t"
    for path in (connect.schema, "public", "pg_catalog", connect.schema):
        table.execute(f"SET search_path = {path}")
        assert agree(table, query) == HIT
        assert table.rows(query)[0][1] == path


@pytest.mark.parametrize("name", ("work_mem", "transaction_isolation", "is_superuser", "role", "session_authorization", "in_hot_standby",
                                  "default_text_search_config", "data_directory"))
def test_settings_that_may_show_more(table, name):
    assert agree(table, f"SELECT a, current_setting('{name}', true) FROM t") == ("BYPASS", "session_function")


def test_a_setting_between_the_runs_of_a_kept_plan(table):
    table.execute("SET plan_cache_mode = force_generic_plan; SET application_name = 'one'")
    table.execute("PREPARE p AS SELECT a, current_setting('application_name') FROM t WHERE current_setting('application_name') <> 'three'")
    for name in ("one", "two", "one", "three", "two"):
        table.execute(f"SET application_name = '{name}'")
        for _ in range(2):
            assert [row[1] for row in table.rows("EXECUTE p")] == [name] * (0 if name == "three" else 3)
        assert table.status() == "HIT"


def test_who_has_logged_in(table, connect):
    table.execute(f"""
        DROP ROLE IF EXISTS state_one, state_two, state_three; CREATE ROLE state_one; CREATE ROLE state_two;
        GRANT USAGE ON SCHEMA {connect.schema} TO PUBLIC; GRANT SELECT ON t TO PUBLIC""")
    for query in ("SELECT session_user, current_user, a FROM t", "SELECT a FROM t WHERE session_user = 'state_one'"):
        for role in ("state_one", "state_two", "state_one"):
            table.execute(f"SET SESSION AUTHORIZATION {role}")
            assert agree(table, query) == HIT
            table.execute("RESET SESSION AUTHORIZATION")
            assert agree(table, query) == HIT
            # The same current role with another that has logged in.
            table.execute(f"SET ROLE {role}")
            assert agree(table, query) == HIT
            table.execute("RESET ROLE")
        table.execute("ALTER ROLE state_one RENAME TO state_three; SET SESSION AUTHORIZATION state_three")
        assert agree(table, query) == HIT
        table.execute("RESET SESSION AUTHORIZATION; ALTER ROLE state_three RENAME TO state_one")
    table.execute("DROP OWNED BY state_one; DROP ROLE state_one, state_two")


def test_the_name_of_the_database(table):
    """It can be changed while nobody is connected."""
    for statement in ("DROP DATABASE IF EXISTS named_state", "DROP DATABASE IF EXISTS state_named", "CREATE DATABASE named_state"):
        table.execute(statement)
    name = "named_state"
    try:
        for other in ("state_named", "named_state", "state_named"):
            with Session.connect(DSN, dbname=name, autocommit=True) as session:
                session.execute("CREATE EXTENSION IF NOT EXISTS pg_arrow_cache; CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS a")
                for query in ("SELECT current_database(), a FROM t", "SELECT current_catalog, a FROM t"):
                    assert agree(session, query) == HIT
                    assert session.rows(query) == [(name, 1)]
            table.execute("SELECT pg_stat_clear_snapshot()")
            table.execute(f"ALTER DATABASE {name} RENAME TO {other}")
            name = other
    finally:
        table.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_types_and_the_version_of_the_server(table):
    table.execute("CREATE TYPE mood AS ENUM ('ok'); ALTER TABLE t ADD m mood")
    query = "SELECT pg_typeof(a), pg_typeof(m), pg_typeof(at - at), version() FROM t"
    assert agree(table, query) == HIT
    table.execute("ALTER TYPE mood RENAME TO humour")
    assert agree(table, query) == HIT
    table.execute("ALTER TABLE t ALTER a TYPE bigint")
    assert agree(table, query) == HIT
