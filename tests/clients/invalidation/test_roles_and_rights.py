"""Changes of roles, memberships and rights outdate only what they can change, and nobody gets an answer by a right that he has lost.

What a role is and may do is in the key of its answers. Rights to relations are asked for at each hit, so a change of these outdates nothing."""

import psycopg
import pytest

from support.asking import until_gone

ME, GROUP, ABOVE, LEASE = (f"rights_{name}" for name in ("me", "group", "above", "lease"))

SETUP = f"""
    CREATE ROLE {ME}; CREATE ROLE {GROUP}; CREATE ROLE {ABOVE}; CREATE ROLE {LEASE} LOGIN;
    GRANT USAGE ON SCHEMA {{schema}} TO PUBLIC;
    CREATE TABLE t AS SELECT g AS id, g * 7 AS v FROM generate_series(1, 3) g;
    CREATE TABLE fenced AS SELECT * FROM t;
    CREATE TABLE named (who text); INSERT INTO named VALUES ('{ME}'), ('rights_renamed');
    ALTER TABLE fenced ENABLE ROW LEVEL SECURITY;
    CREATE POLICY few ON fenced USING (id = 1);
    CREATE POLICY more ON fenced TO {ABOVE} USING (id < 3);
    CREATE POLICY owner ON fenced TO pg_database_owner USING (id = 3);
    GRANT SELECT ON t, fenced, named TO PUBLIC;
    CREATE VIEW lent AS SELECT id, v FROM fenced; ALTER VIEW lent OWNER TO {GROUP};
    CREATE VIEW asked WITH (security_invoker) AS SELECT id, v FROM fenced;
    GRANT SELECT ON lent, asked TO PUBLIC;
    CREATE FUNCTION put(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT $1 + 1';
    CREATE FUNCTION run(int) RETURNS int LANGUAGE sql STABLE STRICT AS 'SELECT coalesce($1, 0) + 1';
    CREATE FUNCTION declared() RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = {{schema}}
        AS 'BEGIN RETURN (SELECT sum(id) FROM fenced); END';
    CREATE FUNCTION by_view() RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL UNSAFE SET search_path = {{schema}}
        AS 'BEGIN RETURN (SELECT sum(id) FROM lent); END';
    SECURITY LABEL FOR pg_arrow_cache ON FUNCTION declared() IS 'pure';
    SECURITY LABEL FOR pg_arrow_cache ON FUNCTION by_view() IS 'pure';
    REVOKE EXECUTE ON FUNCTION put(int), run(int) FROM PUBLIC;
    GRANT EXECUTE ON FUNCTION put(int), run(int) TO {ABOVE}
"""

QUERIES = {
    "plain": "SELECT sum(v) FROM t",
    "fenced": "SELECT id FROM fenced ORDER BY id",
    "view": "SELECT id FROM lent ORDER BY id",
    "invoker": "SELECT id FROM asked ORDER BY id",
    "named": "SELECT who FROM named WHERE who = CURRENT_USER",
    "inlined": "SELECT put(id) FROM t ORDER BY id",
    "run": "SELECT run(id) FROM t ORDER BY id",
    "declared": "SELECT id, declared() FROM t ORDER BY id",
    "by_view": "SELECT id, by_view() FROM t ORDER BY id",
}


@pytest.fixture
def world(session, connect):
    session.execute(SETUP.format(schema=connect.schema))
    owner = session.rows("SELECT datdba::regrole::text FROM pg_database WHERE datname = current_database()")[0][0]
    yield session
    roles = [role for [role] in session.rows("SELECT rolname FROM pg_roles WHERE rolname LIKE 'rights\\_%'")]
    session.execute(f"RESET ROLE; ALTER DATABASE {session.info.dbname} OWNER TO {owner}")
    # What belongs to roles is part of the schema, which is dropped with them.
    for role in roles:
        session.execute(f"SET client_min_messages = warning; REASSIGN OWNED BY {role} TO {owner}; DROP OWNED BY {role}; DROP ROLE {role}")


def told(session, query):
    """The rows, or the error instead. A kept plan may know less of rights than a new one."""
    try:
        return session.rows(query, prepare=False)
    except psycopg.Error as error:
        return error.sqlstate


# Each list of steps changes what the member may do or see, at least once.
PATHS = {
    "granted and revoked, two levels up": [f"GRANT {GROUP} TO {ME}", f"GRANT {ABOVE} TO {GROUP}", f"REVOKE {GROUP} FROM {ME}", f"GRANT {ABOVE} TO {ME}",
                                           f"REVOKE {ABOVE} FROM {ME}", f"REVOKE {ABOVE} FROM {GROUP}"],
    "in one transaction": [f"BEGIN; GRANT {GROUP} TO {ME}; GRANT {ABOVE} TO {GROUP}; COMMIT", f"BEGIN; REVOKE {GROUP} FROM {ME}; ROLLBACK",
                           f"BEGIN; SAVEPOINT s; REVOKE {GROUP} FROM {ME}; ROLLBACK TO s; COMMIT", f"REVOKE {ABOVE} FROM {GROUP}"],
    "a superuser": [f"ALTER ROLE {ME} SUPERUSER", f"ALTER ROLE {ME} NOSUPERUSER", f"ALTER ROLE {GROUP} SUPERUSER", f"ALTER ROLE {GROUP} NOSUPERUSER"],
    "who bypasses policies": [f"ALTER ROLE {ME} BYPASSRLS", f"ALTER ROLE {ME} NOBYPASSRLS", f"ALTER ROLE {GROUP} BYPASSRLS", f"ALTER ROLE {GROUP} NOBYPASSRLS"],
    "who does not inherit": [f"GRANT {ABOVE} TO {GROUP}; GRANT {GROUP} TO {ME}", "inherit off", "inherit on"],
    "renamed": [f"ALTER ROLE {ME} RENAME TO rights_renamed", f"ALTER ROLE rights_renamed RENAME TO {ME}"],
    "dropped": [f"GRANT {ABOVE} TO {ME}", f"DROP OWNED BY {ME}; DROP ROLE {ME}"],
    "a group dropped": [f"GRANT {ABOVE} TO {LEASE}; GRANT {LEASE} TO {ME}", f"DROP ROLE {LEASE}"],
    "an owner of the database": [f"ALTER DATABASE {{database}} OWNER TO {ME}", f"ALTER DATABASE {{database}} OWNER TO {GROUP}", f"GRANT {GROUP} TO {ME}",
                                 "ALTER DATABASE {database} OWNER TO CURRENT_USER"],
    "an owner of the table": [f"ALTER TABLE fenced OWNER TO {ME}", f"REASSIGN OWNED BY {ME} TO {GROUP}", f"GRANT {GROUP} TO {ME}"],
    "rights to tables": ["REVOKE SELECT ON t FROM PUBLIC", f"GRANT SELECT ON t TO {ABOVE}", f"GRANT {ABOVE} TO {ME}", f"REVOKE {ABOVE} FROM {ME}",
                         f"GRANT SELECT (id) ON t TO {ME}", f"GRANT SELECT (v) ON t TO {ME}", f"REVOKE ALL ON t FROM {ME}", "GRANT SELECT ON t TO PUBLIC"],
    "rights to what is below": ["REVOKE SELECT ON fenced FROM PUBLIC", f"GRANT SELECT ON fenced TO {GROUP}", f"GRANT {GROUP} TO {ME}",
                                f"REVOKE SELECT ON fenced FROM {GROUP}", "REVOKE ALL ON lent FROM PUBLIC", "GRANT SELECT ON fenced, lent TO PUBLIC"],
    "rights to all": ["REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM PUBLIC", "GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO PUBLIC"],
    "rights and more": ["BEGIN; REVOKE SELECT ON t FROM PUBLIC; ALTER TABLE t ALTER v SET DEFAULT 3; COMMIT",
                        "BEGIN; GRANT SELECT ON t, fenced TO PUBLIC; ALTER TABLE fenced DISABLE ROW LEVEL SECURITY; COMMIT"],
    "rights and rows": ["BEGIN; GRANT SELECT ON t TO PUBLIC; UPDATE t SET v = v + 1; COMMIT", "BEGIN; REVOKE SELECT ON t FROM PUBLIC; DELETE FROM t; COMMIT",
                        "BEGIN; GRANT SELECT ON t TO PUBLIC; TRUNCATE t; COMMIT"],
    "rights to functions": [f"GRANT EXECUTE ON FUNCTION put(int), run(int) TO {ME}", f"REVOKE EXECUTE ON FUNCTION put(int), run(int) FROM {ME}",
                            "REVOKE EXECUTE ON FUNCTION sum(int) FROM PUBLIC", f"GRANT EXECUTE ON FUNCTION sum(int) TO {ABOVE}", f"GRANT {ABOVE} TO {ME}",
                            f"REVOKE {ABOVE} FROM {ME}", "GRANT EXECUTE ON FUNCTION sum(int) TO PUBLIC"],
    "policies": [f"CREATE POLICY mine ON fenced TO {ME} USING (id = 2)", "DROP POLICY mine ON fenced", f"ALTER POLICY more ON fenced TO {GROUP}", f"GRANT {GROUP} TO {ME}"],
    "by hand": [f"UPDATE pg_authid SET rolbypassrls = true WHERE rolname = '{ME}'", f"UPDATE pg_authid SET rolbypassrls = false WHERE rolname = '{ME}'",
                "UPDATE pg_class SET relacl = NULL WHERE oid = 't'::regclass"],
}


def spelled(step, world, connect):
    """Until 15 a role inherits, from 16 on a membership does."""
    if step.startswith("inherit"):
        word, is_off = ("", step.endswith("off"))
        if world.info.server_version < 160000:
            return f"ALTER ROLE {ME} {'NO' if is_off else ''}INHERIT"
        return f"GRANT {GROUP} TO {ME} WITH INHERIT {'FALSE' if is_off else 'TRUE'}{word}"
    return step.format(schema=connect.schema, database=world.info.dbname)


@pytest.mark.parametrize("path", PATHS)
def test_as_without_the_cache(world, connect, path):
    """Sessions that have asked before, and new ones, with the cache and without it."""
    stays = [connect(f"-c role={ME} -c pg_arrow_cache.enabled={enabled}") for enabled in ("on", "off")]
    seen = set()
    try:
        for step in ["SELECT 1", *PATHS[path]]:
            world.execute(spelled(step, world, connect))
            for name, query in QUERIES.items():
                cached, uncached = stays
                expected = told(uncached, query)
                # PL/pgSQL keeps for the session how a policy applied when it first ran a query, which the cache need not follow.
                keeps = name in ("declared", "by_view")
                if not keeps:
                    assert [told(cached, query) for _ in range(2)] == [expected] * 2, (step, name)
                if "DROP ROLE" not in step:
                    me = "rights_renamed" if "RENAME TO rights_renamed" in step else ME
                    fresh = connect(f"-c role={me}")
                    afresh = connect(f"-c role={me} -c pg_arrow_cache.enabled=off")
                    rows = told(afresh, query)
                    assert [told(fresh, query) for _ in range(2)] == [rows] * 2, (step, name)
                    for one in (fresh, afresh):
                        one.close()
                    seen.add((name, str(rows)))
    finally:
        world.execute("GRANT EXECUTE ON FUNCTION sum(int) TO PUBLIC")
    changed = {name for name in QUERIES if len({rows for own, rows in seen if own == name}) > 1}
    assert changed or path == "dropped", "the path changes nothing"


WAYS = {
    "simple": lambda session: session.rows("SELECT sum(v) FROM t"),
    "extended": lambda session: session.rows("SELECT sum(v) FROM t WHERE id > %s", [0]),
    "prepared": lambda session: session.rows("EXECUTE kept"),
    "cursor": lambda session: session.rows("BEGIN; DECLARE c CURSOR FOR SELECT sum(v) FROM t; FETCH ALL FROM c"),
    "copied": lambda session: copied(session, "COPY (SELECT sum(v) FROM t) TO STDOUT (FORMAT arrow)"),
    "fetched": lambda session: session.rows("SELECT * FROM arrow_cache.fetch('SELECT sum(v) FROM t')"),
    "queried": lambda session: session.rows("SELECT arrow_cache.query('SELECT sum(v) FROM t')"),
    "token": lambda session: session.rows("SELECT arrow_cache.etag('SELECT sum(v) FROM t')"),
    "explained": lambda session: session.rows("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT sum(v) FROM t"),
    "in a function": lambda session: session.rows("SELECT inside()"),
    "outdated": lambda session: session.rows("SET pg_arrow_cache.max_stale = '1h'; SELECT sum(v) FROM t"),
    "of parts": lambda session: session.rows("SELECT k, sum(v) FROM parted GROUP BY k ORDER BY k"),
    "by a view": lambda session: session.rows("SELECT sum(v) FROM over_t"),
    "of certain values": lambda session: session.rows("SELECT sum(v) FROM t WHERE id = 2"),
}

# How the member has the rights, and how he loses them.
RIGHTS = {
    "to tables": (f"GRANT SELECT ON t, parted, over_t TO {ME}", f"REVOKE SELECT ON t, parted, over_t FROM {ME}"),
    "to columns": (f"GRANT SELECT (id, v) ON t TO {ME}; GRANT SELECT (k, v) ON parted TO {ME}; GRANT SELECT (v) ON over_t TO {ME}",
                   f"REVOKE SELECT (v) ON t FROM {ME}; REVOKE SELECT (v) ON parted FROM {ME}; REVOKE SELECT (v) ON over_t FROM {ME}"),
    "by a membership": (f"GRANT SELECT ON t, parted, over_t TO {ABOVE}; GRANT {ABOVE} TO {GROUP}; GRANT {GROUP} TO {ME}", f"REVOKE {ABOVE} FROM {GROUP}"),
    "of a view's owner": (f"GRANT SELECT ON t, parted, over_t TO {ME}",
                          f"REVOKE SELECT ON t, parted FROM {ME}; ALTER VIEW over_t OWNER TO {LEASE}; REVOKE SELECT ON t FROM {LEASE}"),
    "of a view's owner by a membership": (f"GRANT SELECT ON t, parted, over_t TO {ME}; GRANT {ABOVE} TO {LEASE}; REVOKE SELECT ON t FROM {LEASE}; GRANT SELECT ON t TO {ABOVE}",
                                          f"REVOKE {ABOVE} FROM {LEASE}; REVOKE SELECT ON t, parted FROM {ME}"),
}


def copied(session, statement):
    with session.cursor().copy(statement) as data:
        return b"".join(bytes(part) for part in data)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rights", RIGHTS)
def test_a_right_that_is_lost(world, connect, way, rights):
    """Each way to an answer asks for the rights to relations, although their loss does not outdate the answer."""
    given, taken = RIGHTS[rights]
    world.execute(f"""
        CREATE VIEW over_t AS SELECT v FROM t; ALTER VIEW over_t OWNER TO {LEASE};
        CREATE TABLE parted (k int, v int) PARTITION BY LIST (k);
        CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1); CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2);
        INSERT INTO parted SELECT 1 + g % 2, g FROM generate_series(1, 1000) g;
        CREATE FUNCTION inside() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT sum(v) FROM t); END';
        REVOKE ALL ON t FROM PUBLIC; GRANT SELECT ON t TO {LEASE}; {given}
    """)
    session = connect(f"-c role={ME}")
    session.execute("PREPARE kept AS SELECT sum(v) FROM t")

    def asked():
        try:
            return WAYS[way](session)
        except psycopg.Error as error:
            return error.sqlstate
        finally:
            session.execute("ROLLBACK")

    hits = "SELECT hits + stale_hits FROM arrow_cache.stats"
    before = world.rows(hits)
    assert "42501" not in [asked() for _ in range(4)]
    after = world.rows(hits)
    assert after > before or way in ("token", "explained", "in a function"), "it is a hit by then"
    world.execute(taken)
    assert [asked() for _ in range(2)] == ["42501"] * 2


OUTDATES_NOTHING = {
    "a lease": [f"CREATE ROLE rights_new LOGIN PASSWORD 'x' VALID UNTIL '2030-01-01'", f"GRANT {GROUP} TO rights_new",
                "GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO rights_new", "ALTER ROLE rights_new VALID UNTIL '2031-01-01'",
                "REVOKE ALL PRIVILEGES ON ALL TABLES IN SCHEMA {schema} FROM rights_new", "DROP ROLE IF EXISTS rights_new"],
    "a lease in one transaction": [f"BEGIN; CREATE ROLE rights_new; GRANT {GROUP} TO rights_new; GRANT SELECT ON t, fenced TO rights_new; "
                                   "GRANT USAGE ON SCHEMA {schema} TO rights_new; GRANT CONNECT ON DATABASE {database} TO rights_new; COMMIT",
                                   "BEGIN; DROP OWNED BY rights_new; DROP ROLE rights_new; COMMIT"],
    "rights to the database, the schema, sequences": ["CREATE SEQUENCE s", f"GRANT CONNECT, TEMPORARY ON DATABASE {{database}} TO {LEASE}", f"GRANT USAGE ON SCHEMA {{schema}} TO {LEASE}",
                                                      f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {{schema}} TO {LEASE}", f"REVOKE ALL ON DATABASE {{database}} FROM {LEASE}"],
    "default rights": [f"ALTER DEFAULT PRIVILEGES IN SCHEMA {{schema}} GRANT SELECT ON TABLES TO {LEASE}"],
    "rights to columns": [f"GRANT SELECT (id), UPDATE (v) ON t TO {LEASE}", f"REVOKE ALL (id, v) ON t FROM {LEASE}"],
    "what its own role may do with passwords": [f"ALTER ROLE {ME} PASSWORD 'new'", f"ALTER ROLE {ME} VALID UNTIL '2031-01-01'", f"ALTER ROLE {ME} CONNECTION LIMIT 7",
                                                f"ALTER ROLE {ME} SET work_mem = '5MB'"],
    "new functions": ["CREATE FUNCTION another() RETURNS int LANGUAGE sql AS 'SELECT 1'", "CREATE COLLATION another FROM \"C\"",
                      "CREATE AGGREGATE another_sum(int) (SFUNC = int4pl, STYPE = int)"],
    "rolled back": [f"BEGIN; GRANT SELECT ON t TO {LEASE}; ALTER ROLE {ME} SUPERUSER; ROLLBACK"],
    "a migration": ["CREATE TABLE added (id serial PRIMARY KEY, v text DEFAULT 'x' CHECK (v <> ''))", "CREATE INDEX ON added (v)", "COMMENT ON TABLE added IS 'new'"],
}


@pytest.mark.parametrize("path", OUTDATES_NOTHING)
def test_what_outdates_nothing(world, connect, path):
    """But for the answers of functions whose own queries nobody sees at a hit."""
    world.execute(f"GRANT {ABOVE} TO {ME}")
    session = connect(f"-c role={ME}")
    spared = {name: query for name, query in QUERIES.items() if name not in ("run", "declared", "by_view")}
    for query in [*spared.values()] * 2:
        session.rows(query)
    for step in OUTDATES_NOTHING[path]:
        world.execute(step.format(schema=connect.schema, database=world.info.dbname))
        for name, query in spared.items():
            session.rows(query)
            assert session.status() == "HIT", (step, name)


def test_rights_that_come_back(world, connect):
    """The answers of the role that has the rights of before are found again."""
    session = connect(f"-c role={ME}")
    for _ in range(2):
        session.rows(QUERIES["plain"])
    world.execute(f"GRANT {GROUP} TO {ME}")
    session.rows(QUERIES["plain"])
    assert session.status() == "MISS"
    world.execute(f"REVOKE {GROUP} FROM {ME}")
    session.rows(QUERIES["plain"])
    assert session.status() == "HIT"


@pytest.mark.parametrize("query, steps, status", [
    ("put", 1, "HIT"), ("put", 2, "MISS"), ("abs", 2, "HIT"),
])
def test_rights_that_were_lost_meanwhile(world, connect, query, steps, status):
    """While rows are read a right may be given and taken again. What was computed by it is not for those who never had it."""
    world.execute(f"GRANT {ABOVE} TO {ME}; CREATE TABLE looked_at (); GRANT SELECT ON looked_at TO PUBLIC")
    session = connect(f"-c role={ME}")
    statement = f"SELECT {query}(id) FROM t"
    session.execute(f"BEGIN READ ONLY; DECLARE c CURSOR FOR {statement}; FETCH 1 FROM c")
    for step in ["GRANT {0} TO {1}", "REVOKE {0} FROM {1}"][:steps]:
        world.execute(step.format(GROUP, LEASE))
    session.execute("SELECT FROM looked_at; FETCH ALL FROM c; COMMIT")
    session.rows(statement)
    assert session.status() == status


@pytest.mark.parametrize("step", [f"GRANT {GROUP} TO {ME}", f"GRANT {GROUP} TO {LEASE}", "CREATE FUNCTION another() RETURNS int LANGUAGE sql AS 'SELECT 1'",
                                  "CREATE OR REPLACE FUNCTION put(int) RETURNS int LANGUAGE sql AS 'SELECT $1'", f"GRANT SELECT ON fenced TO {LEASE}"])
def test_queries_inside_of_functions(world, connect, step):
    """What they go by outdates the answers that come from them, and they are planned anew."""
    session = connect(f"-c role={ME}")
    for _ in range(2):
        session.rows(QUERIES["declared"])
    assert session.status() == "HIT"
    world.execute(step)
    session.rows(QUERIES["declared"])
    assert session.status() != "HIT"
    for _ in range(3):
        session.rows(QUERIES["declared"])
    assert session.status() == "HIT"


class TestTemporaryFunctions:
    """What a session has for itself concerns nobody else, when it goes as well."""

    @pytest.fixture
    def guest(self, connect):
        return connect()

    def asked(self, session):
        session.rows(QUERIES["plain"])
        return session.status()

    @pytest.mark.parametrize("end", ["DISCARD ALL", "DROP FUNCTION pg_temp.own(int)", None])
    def test_they_come_and_go(self, session, guest, world, end):
        assert [self.asked(session) for _ in range(2)][1] == "HIT"
        guest.execute("CREATE FUNCTION pg_temp.own(int) RETURNS int LANGUAGE sql STABLE STRICT AS 'SELECT coalesce($1, 0) + 1'; CREATE TEMP TABLE own (a int)")
        assert self.asked(session) == "HIT"
        guest.execute("CREATE OR REPLACE FUNCTION pg_temp.own(int) RETURNS int LANGUAGE sql STABLE STRICT AS 'SELECT coalesce($1, 0) + 2'")
        assert self.asked(session) == "HIT"
        leave(guest, world, end)
        assert self.asked(session) == "HIT"

    @pytest.mark.parametrize("end", ["DISCARD ALL", "DROP FUNCTION pg_temp.own(int) CASCADE", None])
    def test_a_lasting_one_goes_with_them(self, session, guest, world, end):
        guest.execute("CREATE FUNCTION pg_temp.own(int) RETURNS int LANGUAGE sql STABLE STRICT AS 'SELECT coalesce($1, 0) + 1'")
        guest.execute("CREATE FUNCTION lasting(int) RETURNS int LANGUAGE sql STABLE STRICT RETURN coalesce(pg_temp.own($1), 0)")
        assert [self.asked(session) for _ in range(2)][1] == "HIT"
        leave(guest, world, end)
        assert self.asked(session) == "STALE"

    def test_functions_are_not_searched_without_any(self, guest):
        """A database may have many functions, and a migration replaces one after the other."""
        lasting = "CREATE OR REPLACE FUNCTION lasting() RETURNS int LANGUAGE sql AS 'SELECT 1'"
        guest.execute(lasting)
        searched = []
        for own in ("", "CREATE FUNCTION pg_temp.own() RETURNS int LANGUAGE sql AS 'SELECT 1'"):
            guest.execute(own)
            before = searches(guest)
            guest.execute(lasting)
            searched.append(searches(guest) > before)
        assert searched == [False, True]

    def test_nothing_rests_on_them(self, guest, world):
        guest.execute("CREATE FUNCTION pg_temp.own(int) RETURNS int LANGUAGE sql STABLE STRICT AS 'SELECT coalesce($1, 0) + 1'")
        for _ in range(3):
            guest.rows("SELECT pg_temp.own(id) FROM t")
        assert guest.outcome() == ("BYPASS", "user_defined_function")


def searches(session):
    """How often all rows of functions were read."""
    session.rows("SELECT pg_stat_force_next_flush()")
    return session.rows("SELECT seq_scan FROM pg_stat_sys_tables WHERE relid = 'pg_proc'::regclass")[0][0]


def leave(guest, world, end):
    """Ends what the session has for itself: by a statement, or with the session."""
    if end:
        guest.execute(end)
        return
    process = guest.info.backend_pid
    guest.close()
    until_gone(world, process)
