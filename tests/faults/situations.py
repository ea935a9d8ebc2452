"""Where a session stands when something happens to it. Each function returns the session (a `Raw`) that stands there."""

import contextlib
import itertools
import threading
import time

import psycopg

from world import LARGE, ROWS, SLOW_FILL, Raw, Wrong

MEMORY = "SELECT bytes_used FROM arrow_cache.stats"


def filling(world):
    """Part of its result stands in shared memory, and it computes the rest."""
    world.one("SELECT arrow_cache.flush()")
    before = world.one(MEMORY)
    session = Raw(world).send(SLOW_FILL)
    session.session.pgconn.set_single_row_mode()
    # The last rows stay in the server until its buffer is full.
    for _ in range(ROWS - 1000):
        session.session.pgconn.get_result()
    if world.one(MEMORY) < before + 4_000_000:
        raise Wrong("nothing is filled")
    return session


def stored(world):
    with world.connect() as session:
        # Whatever is worth more by what it took on a busy machine.
        session.execute("SELECT arrow_cache.flush()")
        for _ in range(2):
            session.execute(LARGE).fetchall()
        if session.execute("SELECT arrow_cache.last_status()").fetchone()[0] != "HIT":
            raise Wrong("the large answer is no hit")


def serving(world):
    """It sends a stored answer to a client that does not read."""
    stored(world)
    return Raw(world).send(LARGE).wait_for("ClientWrite")


def exporting(world):
    """It sends a stored answer as Arrow."""
    stored(world)
    return Raw(world).send(f"COPY ({LARGE}) TO STDOUT (FORMAT arrow)").wait_for("ClientWrite")


def exporting_first(world):
    """It sends an answer as Arrow while it is computed."""
    world.one("SELECT arrow_cache.flush()")
    return Raw(world).send(f"COPY ({LARGE}, pad DESC) TO STDOUT (FORMAT arrow)").wait_for("ClientWrite")


def evicting(world):
    """It stores more than there is room for, answer after answer."""
    session = Raw(world)
    over = threading.Event()

    def store():
        with contextlib.suppress(psycopg.Error):
            for n in itertools.count():
                if over.is_set():
                    return
                session.session.execute(f"SELECT a, pad FROM big WHERE a > {n % 5000} ORDER BY a LIMIT 20000").fetchall()

    before = world.one("SELECT evictions FROM arrow_cache.stats")
    thread = threading.Thread(target=store, daemon=True)
    thread.start()
    world.threads.append((over, thread))
    world.wait_until("SELECT evictions > %s FROM arrow_cache.stats", before + 10)
    return session


def publishing(world):
    """It commits changes one after the other."""
    session = Raw(world).send("""DO $$ BEGIN FOR n IN 1..1000000 LOOP
        UPDATE accounts SET amount = amount - 1 WHERE id = 3; UPDATE accounts SET amount = amount + 1 WHERE id = 4;
        COMMIT; END LOOP; END $$""").wait_active()
    time.sleep(0.05)
    return session


def leading(world):
    """It computes an answer that another session waits for. The other one is `follower`."""
    world.one("SELECT arrow_cache.flush()")
    question = "SELECT count(*) FROM big x, big y WHERE x.a + y.a < 0"
    leader = Raw(world).send(question).wait_active()
    time.sleep(0.1)
    follower = Raw(world).send(question).wait_active()
    world.wait_until("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Extension')", follower.pid)
    leader.follower = follower
    return leader


def waiting(world):
    """It waits for another session that computes its answer."""
    leader = leading(world)
    leader.follower.leader = leader
    return leader.follower


def holding(world):
    """It has a cursor open on a stored answer."""
    stored(world)
    session = Raw(world)
    session.session.execute("BEGIN")
    session.session.execute(f"DECLARE held CURSOR FOR {LARGE}")
    if len(session.session.execute("FETCH 10 FROM held").fetchall()) != 10:
        raise Wrong("the cursor has no rows")
    return session


def changing(world):
    """It has changed definitions, and has not committed."""
    session = Raw(world)
    session.session.execute("BEGIN")
    session.session.execute("ALTER TABLE shapes ADD COLUMN more int; CREATE INDEX ON shapes (more); ALTER TABLE parts DETACH PARTITION parts_2")
    return session.send("SELECT pg_sleep(1000)").wait_for("PgSleep")
