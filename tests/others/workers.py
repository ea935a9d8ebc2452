"""Libraries that do something: each does it as without the cache, and answers stay right."""

import re
import subprocess
import threading
import time

import psycopg
from server import Session, expect, shown, until
from statements import QUERIES
from watchers import Comparison


def _same_rows(server, settings=None, statements=QUERIES):
    """Compares the rows alone."""
    def observe(_, mark, action):
        action()
        return [mark]
    return Comparison(server, observe, lambda *_: None, settings).run(statements)


def _status(session, sql):
    row = session.value(sql)
    return session.value("SELECT arrow_cache.last_status()"), row


def _check(name, action, *arguments):
    """(name, what is wrong or nothing) of something that raises if it is wrong."""
    try:
        action(*arguments)
    except Exception as error:  # noqa: BLE001  (whatever it is, the library does not work)
        return name, f"{type(error).__name__}: {error}"
    return name, None


# hypopg

def hypopg(server):
    server.cluster.psql("CREATE EXTENSION IF NOT EXISTS hypopg")
    yield _check("EXPLAIN shows a hypothetical index", _hypothetical_index, server, "readings")
    yield _check("and one of partitions", _hypothetical_index, server, "pay1")
    with Session(server) as session:
        for table in ("readings", "pay1", "pay2"):
            session.execute(f"SELECT hypopg_create_index('CREATE INDEX ON {table} (v)')")
        session.execute("SELECT hypopg_create_index('CREATE INDEX ON readings (at)')")
        for statement in QUERIES:
            name = f"{statement.name}: explained and executed with hypothetical indexes"
            yield _check(name, _explained, session, statement)
    yield from _same_rows(server)


def _plan(session, sql):
    return "\n".join(line for line, in session.execute(f"EXPLAIN {sql}").fetchall())


def _hypothetical_index(server, table):
    with Session(server) as session:
        session.execute("SELECT arrow_cache.flush()")
        session.execute(f"SELECT hypopg_create_index('CREATE INDEX ON {table} (v)')")
        sql = f"SELECT * FROM {table} WHERE v = 7"
        expect("btree_" in _plan(session, sql), "not shown")
        rows = session.execute(sql).fetchall()
        expect(session.execute(sql).fetchall() == rows and len(rows) == 1, "other rows")
        # The plan with the index has other facts than the one that the answer was stored for.
        expect("btree_" in _plan(session, sql), "not shown of a stored answer")
        expect(session.execute(sql).fetchall() == rows, "other rows")
        expect(session.value("SELECT arrow_cache.last_status()") == "HIT", "no hit")


def _explained(session, statement):
    """A plan that was made for EXPLAIN alone is never executed."""
    sql = statement.texts[0].replace("{mark}", "").replace("{low}", "0")
    session.execute("SET pg_arrow_cache.enabled = off")
    expected = session.execute(sql).fetchall()
    session.execute("RESET pg_arrow_cache.enabled")
    session.execute("SELECT arrow_cache.flush()")
    for _ in range(2):
        _plan(session, sql)
        for _ in range(2):
            rows = session.execute(sql).fetchall()
            expect(rows == expected or not statement.is_constant, "other rows")
        session.execute(statement.change)


# set_user

def set_user(server):
    server.cluster.psql("""
        CREATE EXTENSION IF NOT EXISTS set_user;
        DO $$ BEGIN
            IF to_regrole('clerk') IS NULL THEN CREATE ROLE clerk LOGIN; CREATE ROLE chief SUPERUSER; END IF;
        END $$;
        GRANT EXECUTE ON FUNCTION set_user(text), set_user_u(text) TO clerk;
        DROP TABLE IF EXISTS owned; CREATE TABLE owned (name text, owner name);
        INSERT INTO owned VALUES ('a', 'clerk'), ('b', 'chief'); GRANT SELECT ON owned TO clerk;
        ALTER TABLE owned ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON owned USING (owner = current_user)""")
    yield _check("roles do not share answers", _roles_apart, server)
    yield from _same_rows(server)


def _roles_apart(server):
    with psycopg.connect(server.cluster.dsn() + " user=clerk", autocommit=True) as session:
        def expect_rows(who, rows):
            found = session.execute("SELECT name FROM owned ORDER BY name", prepare=False).fetchall()
            expect(found == rows, f"the {who} sees {found}")
        position = server.log_size
        for _ in range(2):
            expect_rows("role", [("a",)])
            session.execute("SELECT set_user_u('chief')")
            for _ in range(2):
                expect_rows("superuser", [("a",), ("b",)])
            session.execute("SELECT reset_user()")
    log = server.log_from(position)
    expect(log.count("Role clerk transitioning to Superuser Role chief") == 2, "the change of roles is not logged")
    # By log_statement, which the library sets for a superuser.
    logged = log.count("AUDIT: LOG:  statement: SELECT name FROM owned")
    expect(logged == 4, f"{logged} statements of the superuser are logged instead of 4")


# pg_cron, pg_partman

def pg_cron(server):
    yield _check("a scheduled statement outdates answers", _scheduled, server)


def _scheduled(server):
    server.cluster.psql("CREATE EXTENSION pg_cron; DROP TABLE IF EXISTS ticks; CREATE TABLE ticks AS SELECT 1 AS n")
    with Session(server) as session:
        for wanted in ("MISS", "HIT"):
            expect(_status(session, "SELECT count(*) FROM ticks") == (wanted, 1), f"no {wanted}")
        job = session.value("SELECT cron.schedule('* * * * *', 'INSERT INTO ticks SELECT count(*) FROM ticks')")
        until("the job runs", lambda: server.value("SELECT count(*) FROM ticks") > 1)
        session.execute(f"SELECT cron.unschedule({job})")
        expect(_status(session, "SELECT count(*) FROM ticks") == ("STALE", 2), "the old answer is given")
        succeeded = "SELECT count(*) FROM cron.job_run_details WHERE status = 'succeeded'"
        until("the job is noted", lambda: server.value(succeeded) >= 1)


def pg_partman(server):
    server.cluster.psql("""
        DROP SCHEMA IF EXISTS partman CASCADE; CREATE SCHEMA partman; CREATE EXTENSION pg_partman SCHEMA partman;
        DROP TABLE IF EXISTS events CASCADE;
        CREATE TABLE events (at timestamptz NOT NULL, n int) PARTITION BY RANGE (at)""")
    yield _check("new partitions outdate answers", _partitions, server)


def _partitions(server):
    total = "SELECT sum(n), count(*) FROM events"
    with Session(server) as session:
        session.execute("SELECT partman.create_parent('public.events', 'at', 'native', 'daily', p_premake := 2)")
        session.execute("INSERT INTO events SELECT now() - g * interval '1 hour', 1 FROM generate_series(1, 48) g")
        session.execute("""UPDATE partman.part_config
            SET infinite_time_partitions = true, premake = 5, retention = '1 day', retention_keep_table = false""")
        for wanted in ("MISS", "HIT"):
            expect(_status(session, total) == (wanted, 48), f"no {wanted}")
        before = session.value("SELECT count(*) FROM pg_inherits WHERE inhparent = 'events'::regclass")
        session.execute("CALL partman.run_maintenance_proc()")
        after = session.value("SELECT count(*) FROM pg_inherits WHERE inhparent = 'events'::regclass")
        expect(after != before, "no partition was made or dropped")
        session.execute("SET pg_arrow_cache.enabled = off")
        left = session.value(total)
        session.execute("RESET pg_arrow_cache.enabled")
        expect(left is not None and left < 48, "no rows were dropped")
        expect(_status(session, total) == ("STALE", left), "an answer with dropped partitions is given")
        expect(_status(session, total) == ("HIT", left), "no hit afterwards")
        session.execute("INSERT INTO events VALUES (now() + interval '4 days', 1)")
        expect(session.value(total) == left + 1, "a row of a new partition is missing")


# What looks into functions in PL/pgSQL

FUNCTIONS = """
CREATE OR REPLACE FUNCTION doubled(n int) RETURNS int STABLE LANGUAGE plpgsql SET search_path = public AS $$ BEGIN RETURN n * 2; END $$;
CREATE OR REPLACE FUNCTION readings_of(low int) RETURNS bigint STABLE LANGUAGE plpgsql AS
$$ BEGIN RETURN (SELECT count(*) FROM readings WHERE v > low); END $$;
SECURITY LABEL FOR pg_arrow_cache ON FUNCTION doubled(int) IS 'pure';
"""
WITH_FUNCTIONS = "SELECT sum(doubled(v)) FROM readings"


def plprofiler(server):
    server.cluster.psql("CREATE EXTENSION IF NOT EXISTS plprofiler")
    server.cluster.psql(FUNCTIONS)
    yield _check("a function is profiled when it is executed", _profiled, server)
    yield from _same_rows(server)


def _profiled(server):
    with Session(server) as session:
        session.execute("SELECT pl_profiler_set_enabled_local(true)")

        def calls():
            return session.value("""
                SELECT coalesce(sum(exec_count), 0) FROM pl_profiler_linestats_local() WHERE line_number = 0""")
        expect(_status(session, WITH_FUNCTIONS)[0] == "MISS", "no miss")
        expect(calls() == 3000, f"{calls()} calls of a miss instead of 3000")
        expect(_status(session, WITH_FUNCTIONS)[0] == "HIT", "no hit")
        expect(calls() == 3000, f"a hit has called the function: {calls()}")
        session.execute("SELECT readings_of(10)")
        expect(calls() == 3001, "a function that asks is not profiled")


def plpgsql_check(server):
    server.cluster.psql("CREATE EXTENSION IF NOT EXISTS plpgsql_check")
    server.cluster.psql(FUNCTIONS)
    yield _check("functions are checked, passively and when asked", _checked, server)
    yield from _same_rows(server, {"plpgsql_check.mode": "every_start", "plpgsql_check.profiler": "on"})


def _checked(server):
    server.cluster.psql("""CREATE OR REPLACE FUNCTION wrong() RETURNS int STABLE LANGUAGE plpgsql AS
        $$ BEGIN RETURN (SELECT nothing FROM readings LIMIT 1); END $$""")
    with Session(server, {"plpgsql_check.mode": "every_start"}) as session:
        # What it asks while the function runs counts as asked by the function, so the answer is not stored.
        session.execute("SELECT arrow_cache.flush()")
        for _ in range(2):
            expect(_status(session, WITH_FUNCTIONS)[0] == "MISS", "an answer with other queries in it was stored")
    with Session(server, {"plpgsql_check.profiler": "on"}) as session:
        session.execute("SELECT arrow_cache.flush()")
        found = session.execute("SELECT * FROM plpgsql_check_function('wrong()')").fetchall()
        expect(any("nothing" in line for line, in found), f"finds {found}")
        counts = []
        for wanted in ("MISS", "HIT"):
            expect(_status(session, WITH_FUNCTIONS)[0] == wanted, f"no {wanted}")
            counts.append(session.value("SELECT sum(exec_stmts) FROM plpgsql_profiler_function_tb('doubled(int)')"))
        # The block and its RETURN.
        expect(counts == [6000, 6000], f"{counts} statements are profiled by a miss and a hit")


# Statistics of waits and settings; what rewrites tables

def pg_wait_sampling(server):
    server.cluster.psql("CREATE EXTENSION pg_stat_statements; CREATE EXTENSION pg_wait_sampling")
    yield _check("a statement that waits is shown with its query id", _waiting, server)
    yield from _same_rows(server)


def _waiting(server):
    """One session computes an answer, and another waits for it."""
    sql = "SELECT count(*) FROM readings AS a, readings AS b WHERE a.v + b.v > 5"
    with server.connect() as first, server.connect() as second:
        first.execute(sql)
        first.execute("SELECT arrow_cache.flush()")
        computes = threading.Thread(target=first.execute, args=(sql,))
        waits = threading.Thread(target=second.execute, args=(sql,))
        query_id = server.value("""
            SELECT queryid FROM pg_stat_statements WHERE query LIKE 'SELECT count(*) FROM readings AS a%'""")
        waiting = f"""SELECT count(*) FROM pg_wait_sampling_get_current({second.info.backend_pid})
            WHERE event_type = 'Extension' AND queryid = {query_id}"""
        computes.start()
        time.sleep(0.1)
        waits.start()
        try:
            until("the one that waits is shown", lambda: server.value(waiting) == 1 or not waits.is_alive())
            expect(waits.is_alive(), "it was not shown while it waited")
        finally:
            computes.join()
            waits.join()


def pg_track_settings(server):
    server.cluster.psql("CREATE EXTENSION IF NOT EXISTS pg_track_settings")
    yield _check("settings of the cache are tracked", _tracked, server)


def _tracked(server):
    with Session(server) as session:
        session.execute("SELECT pg_track_settings_snapshot()")
        session.execute("ALTER SYSTEM SET pg_arrow_cache.max_wait = 1234")
        session.execute("SELECT pg_reload_conf()")
        setting = "SELECT current_setting('pg_arrow_cache.max_wait') ~ '^1234'"
        until("the setting is there", lambda: server.value(setting))
        tracked = """SELECT pg_track_settings_snapshot() AND EXISTS (
            SELECT FROM pg_track_settings_log('pg_arrow_cache.max_wait') WHERE setting = '1234')"""
        until("it is tracked", lambda: server.value(tracked))
        session.execute("ALTER SYSTEM RESET pg_arrow_cache.max_wait")
        session.execute("SELECT pg_reload_conf()")


def pg_repack(server):
    yield _check("a table is rewritten while it is read and written", _rewritten, server)


def _rewritten(server):
    server.cluster.psql("""
        CREATE EXTENSION pg_repack; DROP TABLE IF EXISTS bloated; CREATE TABLE bloated (id int PRIMARY KEY, v int);
        INSERT INTO bloated SELECT g, 0 FROM generate_series(1, 20000) g""")
    done, wrong, reads = threading.Event(), [], [0]

    def write_and_read():
        """Each write is seen by the next read of this session."""
        with server.connect() as session:
            count = 0
            while not done.is_set():
                count += 1
                session.execute(f"UPDATE bloated SET v = v + 1 WHERE id = {count % 20000 + 1}")
                for _ in range(2):
                    total = session.execute("SELECT sum(v) FROM bloated").fetchone()[0]
                    reads[0] += 1
                    if total != count:
                        wrong.append((total, count))
    thread = threading.Thread(target=write_and_read)
    thread.start()
    try:
        time.sleep(0.3)
        for _ in range(2):
            command = server.cluster.client("pg_repack", "-t", "bloated", "postgres")
            subprocess.run(command, check=True, env=server.cluster.environment(), capture_output=True, timeout=60)
    finally:
        done.set()
        thread.join()
    expect(not wrong and reads[0] > 10, f"{len(wrong)} of {reads[0]} answers were wrong: {wrong[:3]}")


# What reads the log

LINE_PREFIX = "%t [%p]: db=%d,user=%u,app=%a,client=%h "


def pgbadger(server):
    for mode in ("simple", "bind"):
        yield _check(f"hits are statements of the log, {mode}", _reported, server, mode)


def _reported(server, mode):
    """One miss and three hits."""
    position = server.log_size
    with Session(server) as session:
        session.execute("SELECT arrow_cache.flush()")
        for status in ("MISS", "HIT", "HIT", "HIT"):
            session.run(QUERIES[0], mode, "")
            expect(session.value("SELECT arrow_cache.last_status()") == status, f"no {status}")
    command = ["pgbadger", "--quiet", "--format", "stderr", "--prefix", LINE_PREFIX, "--extension", "text", "--outfile", "-", "-"]
    report = subprocess.run(command, input=server.log_from(position), text=True, capture_output=True, check=True).stdout
    frequent = report.partition("- Most frequent queries (N)")[2]

    def lines(text):
        return [re.sub(r"\d+ms", "…ms", line.split(") ", 1)[1]) for line in text if "from readings" in line and ") 4 - " in line]
    expect(lines(frequent.splitlines()) == lines(shown("1) ")) != [], frequent[:600])
