"""Definitions that change while a plan is being made: the answer of that plan is served to nobody else."""

import pytest

from support.asking import wait_until
from support.wire import data_rows


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("change, expected", [
    ("ALTER TABLE r ATTACH PARTITION r_b FOR VALUES IN (2)", 30),
    ("ALTER TABLE plain_child INHERIT plain", 30),
])
def test_a_child_comes_while_the_planner_waits(session, connect, wire, mode, change, expected):
    session.execute("""
        CREATE TABLE r (k int, v int) PARTITION BY LIST (k);
        CREATE TABLE r_a PARTITION OF r FOR VALUES IN (1);
        CREATE TABLE r_b (k int, v int);
        CREATE TABLE plain (k int, v int);
        CREATE TABLE plain_first () INHERITS (plain);
        CREATE TABLE plain_child (k int, v int);
        INSERT INTO r_a VALUES (1, 10);
        INSERT INTO r_b VALUES (2, 20);
        INSERT INTO plain_first VALUES (1, 10);
        INSERT INTO plain_child VALUES (2, 20)""")
    parent, child = ("r", "r_a") if "ATTACH" in change else ("plain", "plain_first")
    query = f"SELECT sum(v) FROM {parent} WHERE v > $1"
    client, locker = wire(), connect()
    client.query(f"SET plan_cache_mode = {mode}")
    client.parse(query, "s", types=[23]).step("1")
    locker.execute(f"BEGIN; LOCK TABLE {child} IN ACCESS EXCLUSIVE MODE")
    client.bind([b"0"], name="s").execute().add(b"S").send()
    wait_until("the planner waits for the child",
               lambda: session.rows("SELECT 1 FROM pg_locks WHERE NOT granted AND relation = %s::regclass", [child]))
    session.execute(change)
    locker.execute("ROLLBACK")
    assert data_rows(client.until_ready())[0][0] in (b"10", str(expected).encode())
    for _ in range(3):
        other = wire()
        assert data_rows(other.parse(query, types=[23]).bind([b"0"]).execute().sync()) == [[str(expected).encode()]]
    assert data_rows(client.bind([b"0"], name="s").execute().sync()) == [[str(expected).encode()]]
