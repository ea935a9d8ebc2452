"""Functions that run beside a statement, not in it: for the arguments of an EXECUTE, while a plan is made, for a trigger
at commit. Their queries are nested, however they run, and the statement itself is served as usual."""

import pytest

SETUP = """
    CREATE TABLE t AS SELECT g AS i FROM generate_series(1, 100) g;
    CREATE TABLE inner_t AS SELECT g AS i FROM generate_series(1, 3) g;
    CREATE FUNCTION by_cursor() RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
        DECLARE found int; c CURSOR FOR SELECT count(*) FROM inner_t;
        BEGIN OPEN c; FETCH c INTO found; CLOSE c; RETURN found; END $$;
    CREATE FUNCTION by_loop() RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
        DECLARE found int := 0; row record;
        BEGIN FOR row IN SELECT i FROM inner_t LOOP found := found + 1; END LOOP; RETURN found; END $$;
    CREATE FUNCTION by_select() RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
        BEGIN RETURN (SELECT count(*) FROM inner_t); END $$;
    CREATE FUNCTION by_sql() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT count(*) FROM inner_t OFFSET 0';
    CREATE FUNCTION by_execute() RETURNS int LANGUAGE plpgsql AS $$
        DECLARE found int; BEGIN EXECUTE 'EXECUTE other' INTO found; RETURN found; END $$;
    PREPARE other AS SELECT count(*) FROM inner_t;
    PREPARE p AS SELECT count(*) FROM t WHERE i > $1"""

INNER = ["SELECT count(*) FROM inner_t", "SELECT i FROM inner_t", "SELECT (SELECT count(*) FROM inner_t)",
         "SELECT count(*) FROM inner_t OFFSET 0"]
IN_PLANS = ["by_cursor", "by_loop", "by_select", "by_sql"]


def scans(session):
    """How often the transaction has read the table of the functions so far."""
    return session.execute("SELECT pg_stat_get_xact_numscans('inner_t'::regclass)").fetchone()[0]


def over_inner_table(session):
    return session.execute("SELECT sum(hits) FILTER (WHERE relations @> ARRAY['inner_t'::regclass]), "
                           "count(*) FILTER (WHERE relations @> ARRAY['inner_t'::regclass]) FROM arrow_cache.entries").fetchone()


def check_nested(session, statement):
    """The functions' queries are executed each time, and neither stored nor served, though answers to them are stored."""
    session.execute("SELECT arrow_cache.flush()")
    session.execute(statement)
    assert over_inner_table(session)[1] == 0
    for query in INNER:
        session.execute(query)
    stored = over_inner_table(session)
    assert stored[1] == len(INNER)
    with session.transaction():
        before = scans(session)
        session.execute(statement)
        assert scans(session) == before + 1
    assert over_inner_table(session) == stored


@pytest.mark.parametrize("function", [*IN_PLANS, "by_execute"])
@pytest.mark.parametrize("prefix", ["", "EXPLAIN ", "EXPLAIN ANALYZE ", "CREATE TEMP TABLE copied ON COMMIT DROP AS "])
def test_arguments_of_execute(session, function, prefix):
    session.execute(SETUP)
    check_nested(session, f"{prefix}EXECUTE p({function}())")


@pytest.mark.parametrize("function", [*IN_PLANS, "by_execute"])
def test_execute_itself_is_served(session, function):
    session.execute(SETUP)
    for outcome in ("MISS", "HIT", "HIT"):
        assert session.rows(f"EXECUTE p({function}())") == [(97,)]
        assert session.status() == outcome
    assert session.rows("SELECT count(*) FROM t WHERE i > 3") == [(97,)]


@pytest.mark.parametrize("function", IN_PLANS)
@pytest.mark.parametrize("prefix", ["", "EXPLAIN ", "EXPLAIN ANALYZE ", "DECLARE c CURSOR WITH HOLD FOR "])
def test_planning(session, function, prefix):
    """An immutable function of constants is computed while the plan is made."""
    session.execute(SETUP)
    session.execute("SET plan_cache_mode = force_custom_plan")
    statement = f"{prefix}SELECT count(*) FROM t WHERE i > {function}()"
    check_nested(session, statement + ("; CLOSE c" if "DECLARE" in prefix else ""))


@pytest.mark.parametrize("function", IN_PLANS)
def test_trigger_at_the_commit(session, function):
    session.execute(SETUP)
    session.execute(f"""
        CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM {function}(); RETURN NULL; END';
        CREATE CONSTRAINT TRIGGER late AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION at_commit()""")
    for query in INNER:
        session.execute(query)
    stored = over_inner_table(session)
    assert stored[1] == len(INNER)
    session.execute("INSERT INTO t VALUES (0)")
    assert (session.status(), session.reason()) == ("BYPASS", "not_select")
    assert over_inner_table(session) == stored
