"""Which statement is the client's own, after errors: nothing that functions run is taken for it, and after an error the client's next
statement is answered as ever, wherever the error came from."""

import random

import psycopg
import pytest

QUESTION = "SELECT count(*), sum(v) FROM t"
INSIDE = "sum(v + 0) FROM t"
SCHEMA = f"""
    CREATE TABLE t AS SELECT g AS v FROM generate_series(1, 50) g;
    CREATE TABLE checked (v int CHECK (v < 100));
    CREATE TABLE deferred (v int);
    CREATE VIEW fails AS SELECT 10 / (v - 3) AS v FROM t;
    CREATE FUNCTION sums() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT {INSIDE}); END $$;
    CREATE FUNCTION fails() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN PERFORM {INSIDE}; RETURN 1 / (SELECT min(v) - 1 FROM t); END $$;
    CREATE FUNCTION catches() RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE s bigint; BEGIN
        BEGIN PERFORM fails(); EXCEPTION WHEN division_by_zero THEN SELECT {INSIDE} INTO s; END; RETURN s; END $$;
    CREATE FUNCTION changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM {INSIDE}; IF NEW.v = 13 THEN PERFORM fails(); END IF; RETURN NEW; END $$;
    CREATE TRIGGER checked AFTER INSERT ON checked FOR EACH ROW EXECUTE FUNCTION changed();
    CREATE CONSTRAINT TRIGGER deferred AFTER INSERT ON deferred DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION changed();
    CREATE PROCEDURE ends() LANGUAGE plpgsql AS $$ BEGIN PERFORM {INSIDE}; COMMIT; PERFORM {INSIDE}; ROLLBACK; PERFORM {INSIDE}; END $$;
    CREATE PROCEDURE ends_and_fails() LANGUAGE plpgsql AS $$ BEGIN COMMIT; PERFORM {INSIDE}; ROLLBACK; PERFORM fails(); END $$;
    CREATE PROCEDURE calls() LANGUAGE plpgsql AS $$ BEGIN CALL ends(); ROLLBACK;
        BEGIN PERFORM fails(); EXCEPTION WHEN others THEN PERFORM {INSIDE}; END; COMMIT; PERFORM {INSIDE}; END $$;
"""
ALONE = [
    "SELECT sums()", "SELECT fails()", "SELECT catches()", "SELECT v FROM fails", "INSERT INTO checked VALUES (1)",
    "INSERT INTO checked VALUES (13)", "INSERT INTO checked VALUES (500)", "INSERT INTO deferred VALUES (13)", "CALL ends()",
    "CALL ends_and_fails()", "CALL calls()", "DO 'BEGIN CALL calls(); ROLLBACK; PERFORM fails(); END'",
    "EXPLAIN ANALYZE SELECT fails()", "CREATE TEMP TABLE copied AS SELECT * FROM fails", "SELECT * FROM arrow_cache.query('SELECT v FROM fails')",
    "SELECT sums(); SELECT fails(); SELECT 2", "PREPARE p AS SELECT 10 / (v - $1) FROM t", "EXECUTE p(3)", "EXECUTE p(100)",
]
IN_TRANSACTIONS = [
    *ALONE, "SAVEPOINT s", "ROLLBACK TO s", "RELEASE s", "SET CONSTRAINTS ALL IMMEDIATE", "DECLARE c CURSOR FOR SELECT v FROM fails",
    "FETCH 2 FROM c", "FETCH ALL FROM c", "CLOSE c",
]


@pytest.fixture
def world(connect):
    session = connect(prepare_threshold=None)
    session.execute(SCHEMA)
    ask(session)
    return session


def ask(session):
    assert session.rows(QUESTION) == [(50, 1275)]
    return session.status()


def attempt(session, statement):
    try:
        session.execute(statement)
    except psycopg.Error:
        return False
    return True


def nothing_inside_is_stored(session):
    schema = session.rows("SELECT current_schema()")[0][0]
    stored = session.rows("SELECT query FROM arrow_cache.entries WHERE %s::regnamespace = ANY (SELECT relnamespace FROM pg_class"
                          " WHERE oid = ANY (relations)) AND query LIKE '%%v + 0%%'", [schema])
    assert stored == []


@pytest.mark.parametrize("statement", ALONE)
def test_the_next_statement_is_answered(world, statement):
    attempt(world, statement)
    assert ask(world) == "HIT"
    nothing_inside_is_stored(world)


@pytest.mark.parametrize("seed", range(10))
def test_any_statements_in_and_out_of_transactions(world, seed):
    chance = random.Random(seed)
    for _ in range(40):
        if world.info.transaction_status == psycopg.pq.TransactionStatus.IDLE and chance.random() < 0.3:
            attempt(world, "BEGIN")
        is_in_transaction = world.info.transaction_status != psycopg.pq.TransactionStatus.IDLE
        statement = chance.choice(IN_TRANSACTIONS if is_in_transaction else ALONE)
        attempt(world, statement)
        if world.info.transaction_status == psycopg.pq.TransactionStatus.INERROR:
            attempt(world, chance.choice(["ROLLBACK", "ROLLBACK TO s"]))
        if world.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS and chance.random() < 0.2:
            attempt(world, chance.choice(["COMMIT", "ROLLBACK"]))
        if world.info.transaction_status == psycopg.pq.TransactionStatus.INERROR:
            attempt(world, "ROLLBACK")
        # Writes of the transaction hide nothing that the question reads; a definition of its own does.
        assert ask(world) == "HIT" or world.reason() == "own_ddl", (statement, world.reason())
    attempt(world, "ROLLBACK")
    assert ask(world) == "HIT"
    nothing_inside_is_stored(world)
