"""The table of faults: `FAULTS` has an entry for each, with its name and the function that does it to a `World`. After each of them
run.py looks whether the server answers, `check()` finds nothing, and cached answers are those of executing.

A new fault is a function with `@fault("its name")`. With `load=True` other sessions read, write and check meanwhile."""

import random
import signal
import time

import psycopg

import situations
from world import LARGE, Wrong, kill

FAULTS = []


class Fault:
    def __init__(self, name, do, load):
        self.name, self.do, self.load = name, do, load


def fault(name, load=False):
    def add(function):
        FAULTS.append(Fault(name, function, load))
        return function
    return add


# Where a session may stand when it is killed, terminated, cancelled, … .
SITUATIONS = {"in the middle of a fill": situations.filling, "sending a hit": situations.serving,
              "sending a hit as Arrow": situations.exporting, "exporting what it computes": situations.exporting_first,
              "evicting": situations.evicting, "publishing changes": situations.publishing,
              "computing what another one waits for": situations.leading, "waiting for another one": situations.waiting,
              "with a cursor on a hit": situations.holding, "changing definitions": situations.changing}


def checkpointer(world):
    """A process that is made anew when the server restarts its processes; `None` while it does."""
    try:
        return world.one("SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
    except psycopg.OperationalError:
        return None


def crash(world, pid):
    """Kills a session, and waits until all shared memory is made anew."""
    before = checkpointer(world)
    kill(pid)
    until = time.monotonic() + 60
    while checkpointer(world) in (before, None):
        if time.monotonic() > until:
            raise Wrong("the server has not restarted its processes")
        time.sleep(0.02)


def add_situations():
    for where, situation in SITUATIONS.items():
        def sigkill(world, situation=situation):
            session = situation(world)
            time.sleep(random.uniform(0, 0.05))
            crash(world, session.pid)
        FAULTS.append(Fault(f"SIGKILL of a session {where}", sigkill, load=True))
    for where, situation in SITUATIONS.items():
        def terminate(world, situation=situation):
            world.one("SELECT pg_terminate_backend(%s)", situation(world).pid)
        FAULTS.append(Fault(f"pg_terminate_backend of a session {where}", terminate, load=True))
    for where, situation in SITUATIONS.items():
        if where == "with a cursor on a hit":
            continue

        def cancel(world, situation=situation):
            world.one("SELECT pg_cancel_backend(%s)", situation(world).pid)
        FAULTS.append(Fault(f"pg_cancel_backend of a session {where}", cancel, load=False))
    for where, situation in SITUATIONS.items():
        def vanish(world, situation=situation):
            session = situation(world)
            session.vanish()
            # Whoever does not talk to its client notices nothing.
            world.one("SELECT pg_terminate_backend(%s) FROM pg_sleep(0.02)", session.pid)
        FAULTS.append(Fault(f"client gone of a session {where}", vanish, load=False))


add_situations()


@fault("immediate shutdown", load=True)
def immediate(world):
    situations.filling(world)
    situations.holding(world)
    world.cluster._pg_ctl("stop", "-m", "immediate")
    world.cluster.resume()


@fault("SIGSTOP of a session with a cursor on a hit, while others evict")
def stopped_reader(world):
    expected = None
    with world.connect() as plain:
        plain.execute("SET pg_arrow_cache.enabled = off")
        expected = plain.execute(LARGE).fetchall()
    session = situations.holding(world)
    kill(session.pid, signal.SIGSTOP)
    try:
        evictor = situations.evicting(world)
        world.one("SELECT arrow_cache.flush()")
        for _ in range(10):
            world.check()
        evictor.vanish()
    finally:
        kill(session.pid, signal.SIGCONT)
    if session.session.execute("FETCH ALL FROM held").fetchall() != expected[10:]:
        raise Wrong("a pinned answer has changed under its reader")


@fault("SIGSTOP of a session in the middle of a fill, while others evict")
def stopped_filler(world):
    session = situations.filling(world)
    kill(session.pid, signal.SIGSTOP)
    try:
        evictor = situations.evicting(world)
        world.check()
        evictor.vanish()
    finally:
        kill(session.pid, signal.SIGCONT)


@fault("statement_timeout at random moments", load=True)
def timeouts(world):
    with world.connect() as session:
        for n in range(40):
            # On a busy machine SET itself takes too long, too.
            try:
                session.execute(f"SET statement_timeout = {random.randint(1, 40)}")
                session.execute(f"SELECT a, pad FROM big WHERE a > {n} ORDER BY pad, a").fetchall()
            except psycopg.errors.QueryCanceled:
                pass


@fault("idle_in_transaction_session_timeout with a cursor on a hit")
def idle(world):
    session = situations.holding(world)
    session.session.execute("SET LOCAL idle_in_transaction_session_timeout = 20")
    world.wait_until("SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s)", session.pid)


@fault("cache full of answers that are held")
def all_held(world):
    sessions = []
    for n in range(12):
        session = world.connect()
        sessions.append(session)
        statement = f"SELECT a, pad FROM big WHERE a > {n} ORDER BY a"
        session.execute(statement).fetchall()
        session.execute("BEGIN")
        session.execute(f"DECLARE held CURSOR FOR {statement}")
        session.execute("FETCH 5 FROM held")
        world.check()
    world.compare(world.connect(), "SELECT a, pad FROM big WHERE a > 1000", must_hit=False)
    for n, session in enumerate(sessions):
        rows = session.execute("FETCH ALL FROM held").fetchall()
        if len(rows) != 60000 - n - 5 or rows[0][0] != n + 6:
            raise Wrong("a held answer has changed")
    # An answer that took long to compute on a busy machine may keep out one that was quick.
    world.one("SELECT arrow_cache.flush()")


def restarted_with(world, **settings):
    with world.connect() as session:
        for name, value in settings.items():
            session.execute(f"ALTER SYSTEM SET pg_arrow_cache.{name} = {value}")
    world.close_all()
    world.cluster.restart()


@fault("least memory, and one entry at most")
def tiny(world):
    restarted_with(world, memory="'4MB'", max_entries=1)
    try:
        with world.load():
            with world.connect() as session:
                for n in range(60):
                    world.compare(session, f"SELECT a, pad FROM big WHERE a > {n * 100} ORDER BY a LIMIT {10 ** (n % 5)}", must_hit=False)
                    world.check()
        world.close_all()
        with world.connect() as session:
            world.compare(session, "SELECT count(*) FROM accounts")
            if session.execute("SELECT entries FROM arrow_cache.stats").fetchone()[0] != 1:
                raise Wrong("there is another number of entries than one")
    finally:
        with world.connect() as session:
            session.execute("ALTER SYSTEM RESET ALL")
        world.close_all()
        world.cluster.restart()


@fault("SIGHUP storm with settings that change", load=True)
def sighups(world):
    with world.connect() as session:
        for n in range(60):
            session.execute(f"ALTER SYSTEM SET pg_arrow_cache.{random.choice(('enabled', 'populate', 'enable_fragments'))} = {random.choice(('on', 'off'))}")
            kill(world.cluster.pid, signal.SIGHUP)
            time.sleep(0.005)
        session.execute("ALTER SYSTEM RESET ALL")
        session.execute("SELECT pg_reload_conf()")
    world.wait_until("SELECT current_setting('pg_arrow_cache.enabled')::bool AND current_setting('pg_arrow_cache.populate')::bool")


@fault("DROP DATABASE of a database with stored answers", load=True)
def dropped_database(world):
    with world.connect() as session:
        session.execute("CREATE DATABASE gone")
        try:
            with world.connect("gone") as inside:
                inside.execute("CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 100) g")
                for n in range(20):
                    inside.execute(f"SELECT sum(a) FROM t WHERE a > {n}").fetchall()
        finally:
            session.execute("DROP DATABASE gone WITH (FORCE)")


@fault("CREATE DATABASE … TEMPLATE of a database with stored answers")
def copied_database(world):
    with world.connect() as session:
        session.execute("CREATE DATABASE pattern")
        with world.connect("pattern") as inside:
            inside.execute("CREATE EXTENSION pg_arrow_cache; CREATE TABLE t AS SELECT g AS a FROM generate_series(1, 100) g")
            world.compare(inside, "SELECT sum(a) FROM t")
        session.execute("CREATE DATABASE copied TEMPLATE pattern")
        with world.connect("copied") as copy, world.connect("pattern") as pattern:
            copy.execute("UPDATE t SET a = a + 1")
            world.compare(copy, "SELECT sum(a) FROM t")
            world.compare(pattern, "SELECT sum(a) FROM t")
            pattern.execute("DELETE FROM t")
            world.compare(copy, "SELECT sum(a) FROM t")
            world.compare(pattern, "SELECT sum(a) FROM t")
        session.execute("DROP DATABASE copied")
        session.execute("DROP DATABASE pattern")


@fault("unlogged table after a crash")
def unlogged(world):
    with world.connect() as session:
        session.execute("CREATE UNLOGGED TABLE lost AS SELECT g AS a FROM generate_series(1, 100) g")
        world.compare(session, "SELECT count(*) FROM lost")
    world.close_all()
    crash(world, world.connect().info.backend_pid)
    with world.connect() as session:
        world.compare(session, "SELECT count(*) FROM lost")
        if session.execute("SELECT count(*) FROM lost").fetchone()[0] != 0:
            raise Wrong("the rows of an unlogged table have outlived a crash")
        session.execute("DROP TABLE lost")


@fault("definitions that are changed and rolled back", load=True)
def rolled_back(world):
    with world.connect() as session:
        for n in range(15):
            session.execute("BEGIN")
            session.execute("ALTER TABLE shapes RENAME TO forms; CREATE TABLE shapes AS SELECT 1 AS id, 2 AS tags, 3 AS span, 4 AS doc")
            session.execute("SELECT tags, span, doc FROM shapes ORDER BY id").fetchall()
            session.execute("ROLLBACK")
            world.compare(session, "SELECT tags, span, doc FROM shapes ORDER BY id", must_hit=False)


@fault("1,600 columns")
def columns(world):
    with world.connect() as session:
        listed = ", ".join(f"a + {n} AS c{n}" for n in range(1600))
        world.compare(session, f"SELECT {listed} FROM big WHERE a < 20 ORDER BY a")


@fault("65,535 parameters")
def parameters(world):
    with world.connect() as session:
        values = list(range(65535))
        statement = f"SELECT count(*), sum(a) FROM big WHERE a IN ({', '.join(['%s::int'] * len(values))})"
        rows = [session.execute(statement, values).fetchall() for _ in range(2)]
        if rows != [[(60000, 60000 * 60001 // 2)]] * 2:
            raise Wrong(f"{rows}")


@fault("a statement of 10 MB")
def long_text(world):
    with world.connect() as session:
        world.compare(session, f"SELECT count(*) FROM big WHERE pad <> '{'x' * 10_000_000}'", must_hit=False)


@fault("a value of 10 MB")
def long_value(world):
    with world.connect() as session:
        world.compare(session, "SELECT repeat(pad, 100000) FROM big WHERE a = 1", must_hit=False)


@fault("2,000 relations in one statement")
def relations(world):
    with world.connect() as session:
        session.execute("CREATE TABLE many (a int) PARTITION BY LIST (a)")
        try:
            session.execute("DO $$ BEGIN FOR n IN 1..2000 LOOP EXECUTE format('CREATE TABLE many_%s PARTITION OF many FOR VALUES IN (%s)', n, n); "
                            "IF n % 100 = 0 THEN COMMIT; END IF; END LOOP; END $$")
            session.execute("INSERT INTO many SELECT generate_series(1, 2000)")
            world.compare(session, "SELECT count(*), sum(a) FROM many", must_hit=False)
            session.execute("UPDATE many_7 SET a = a")
            world.compare(session, "SELECT count(*), sum(a) FROM many", must_hit=False)
        finally:
            session.execute("DO $$ BEGIN FOR n IN 1..2000 LOOP EXECUTE format('DROP TABLE many_%s', n); "
                            "IF n % 100 = 0 THEN COMMIT; END IF; END LOOP; END $$")
            session.execute("DROP TABLE many")


@fault("expressions as deep as the server allows")
def deep(world):
    with world.connect() as session:
        for depth in (1000, 5000, 20000):
            statement = f"SELECT count(*) FROM accounts WHERE id{' + 1' * depth} > 0"
            try:
                session.execute("SET pg_arrow_cache.enabled = off")
                expected = session.execute(statement).fetchall()
            except psycopg.errors.StatementTooComplex:
                expected = None
            session.execute("RESET pg_arrow_cache.enabled")
            for _ in range(2):
                try:
                    got = session.execute(statement).fetchall()
                except psycopg.errors.StatementTooComplex:
                    got = None
                if got != expected:
                    raise Wrong(f"depth {depth}: {got} instead of {expected}")
