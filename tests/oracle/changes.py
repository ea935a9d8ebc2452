"""Ways to change data, as SQL: each function takes a random generator and returns the statements of one string.

Committed changes keep the promises that readers check; changes that are rolled back need not."""

from questions import GROUPS, PAIRS

# Added to versions that never become visible.
FAR = 10**12


def some_text(rng):
    return "".join(rng.choices("abcdefgh", k=rng.choice((1, 5, 30)))) * rng.choice((1, 1, 1, 200))


# -- pairs: the last statement that returns rows tells groups and versions

def bump(pair, grp, amount=1, side="ab"):
    """Updates both tables of a pair, or the one whose trigger updates the other."""
    sides = "a" if pair in ("linked", "late") else side
    where = "" if grp is None else f" WHERE grp = {grp}"
    return [f"UPDATE {pair}_{s} SET version = version + {amount}{where} RETURNING grp, version" for s in sides]


def through_children(pair, grp):
    """Writes the leaves and children of the `cool` pair, each by its own name."""
    leaf, child = f"cool_a_{grp // 2}", "cool_b_1" if grp >= 2 else "ONLY cool_b"
    return [f"UPDATE {table} SET version = version + 1 WHERE grp = {grp} RETURNING grp, version"
            for table in (leaf, child)]


def rewritten(pair, grp):
    copied = f"INSERT INTO {pair}_b SELECT * FROM {pair}_a WHERE grp = {grp} RETURNING grp, version"
    return [*bump(pair, grp, side="a"), f"DELETE FROM {pair}_b WHERE grp = {grp}", copied]


def merged(pair, grp):
    first, second = (f"MERGE INTO {pair}_{s} t USING (VALUES ({grp})) v (g) ON t.grp = v.g "
                     "WHEN MATCHED THEN UPDATE SET version = t.version + 1" for s in "ab")
    return [first, second, f"SELECT grp, version FROM {pair}_b WHERE grp = {grp}"]


def in_with(pair, grp):
    # The lock comes first: the one snapshot of the statement must not be older than what `rewritten` put in place.
    return [f"SELECT FROM {pair}_a WHERE grp = {grp} FOR UPDATE",
            f"WITH first AS (UPDATE {pair}_a SET version = version + 1 WHERE grp = {grp}) "
            f"UPDATE {pair}_b SET version = version + 1 WHERE grp = {grp} RETURNING grp, version"]


def undone_in_part(pair, grp):
    first, *rest = bump(pair, grp)
    return [first, "SAVEPOINT s", *bump(pair, grp, FAR), "ROLLBACK TO s", *rest]


def kept_from_subtransaction(pair, grp):
    first, *rest = bump(pair, grp)
    return ["SAVEPOINT s", first, "SAVEPOINT t", *rest, "RELEASE t", "RELEASE s"]


def many_subtransactions(pair, grp):
    """More of them than a backend's entry in shared memory takes, and every third is undone."""
    sides = bump(pair, grp)
    changes = " ".join(f"IF n = {n} THEN {sql.partition(' RETURNING ')[0]}; END IF;" for n, sql in zip((20, 73), sides))
    undone = bump(pair, grp, FAR)[-1].partition(" RETURNING ")[0]
    return [f"""DO $$ BEGIN FOR n IN 1..80 LOOP
                BEGIN
                    INSERT INTO scratch VALUES ({grp}, n);
                    {changes}
                    IF n % 3 = 0 THEN {undone}; RAISE 'no'; END IF;
                EXCEPTION WHEN raise_exception THEN NULL;
                END;
            END LOOP; END $$""",
            f"DELETE FROM scratch WHERE n % 40 <> {grp}", f"SELECT grp, version FROM {pair}_a WHERE grp = {grp}"]


def group_change(rng, pair):
    """A change of one group or all. Returns (kind, statements)."""
    grp = rng.choice(GROUPS)
    two_sided = pair in ("hot", "warm")
    kinds = [("update", bump, 6), ("undone in part", undone_in_part, 2),
             ("subtransactions", kept_from_subtransaction, 2), ("many subtransactions", many_subtransactions, 0.3)]
    if two_sided:
        kinds += [("delete and insert", rewritten, 1), ("MERGE", merged, 2), ("writing WITH", in_with, 2)]
    if pair == "cool":
        kinds += [("through children", through_children, 6)]
    kind, make, _ = rng.choices(kinds, [weight for *_, weight in kinds])[0]
    if kind == "update" and rng.random() < 0.1:
        grp = None
    statements = make(pair, grp)
    fate = rng.random()
    if fate < 0.06:
        return "rolled back", ["BEGIN", *bump(pair, grp, FAR), "ROLLBACK"]
    if fate < 0.5:
        return kind, ["BEGIN", *statements, "COMMIT"]
    if "SAVEPOINT" in " ".join(statements):
        return kind, ["BEGIN", *statements, "COMMIT"]
    return f"{kind}, implicit transaction", statements


def routine_change(rng, pair):
    """The same through PL/pgSQL, for a pair without triggers; procedures commit on the way and roll back a part."""
    grp = rng.choice(GROUPS)
    return rng.choice((
        ("function", [f"SELECT * FROM bump('{pair}', {grp})"]),
        ("procedure", [f"CALL bump_thrice('{pair}', {grp})"]),
        ("DO", [f"DO $$ BEGIN PERFORM bump('{pair}', {grp}); END $$"]),
    ))


# -- everything else

def customer(rng):
    return f"SELECT id FROM customer ORDER BY random() LIMIT 1 OFFSET {rng.randrange(3)}"


def cascades(rng):
    new = rng.randint(1, 30)
    return rng.choice((
        f"DELETE FROM customer WHERE id = {new}",
        f"UPDATE customer SET id = {new} WHERE id = ({customer(rng)})",
        f"DELETE FROM orders WHERE id % 40 = {rng.randrange(40)}",
    ))


def inserts(rng):
    new = rng.randint(1, 30)
    return rng.choice((
        f"INSERT INTO customer VALUES ({new}, '{some_text(rng)}', (enum_range(NULL::mood))[1 + {new} % 3], "
        f"'2024-05-05 10:00+00', ARRAY['t{new}'], ROW('street', {new}), '{some_text(rng)}') "
        "ON CONFLICT (id) DO UPDATE SET name = excluded.name",
        f"INSERT INTO orders VALUES ({rng.randint(1, 60)}, ({customer(rng)}), {new}.5, '2024-04-04 04:04', "
        f"'{{\"n\": {new}}}') "
        "ON CONFLICT (id) DO UPDATE SET amount = orders.amount + 1, doc = orders.doc || excluded.doc",
        f"INSERT INTO line SELECT {rng.randint(1, 90)}, id, {new}, '2024-07-07' FROM orders ORDER BY random() LIMIT 1 "
        "ON CONFLICT (id) DO UPDATE SET quantity = excluded.quantity",
        "WITH gone AS (DELETE FROM wish WHERE customer IS NULL RETURNING what) "
        f"INSERT INTO wish SELECT ({customer(rng)}), what FROM gone",
    ))


def triggers(rng):
    who = rng.randint(1, 14)
    return rng.choice((
        f"UPDATE account SET balance = balance + 1 WHERE id = {who}",
        "UPDATE account SET owner = (ARRAY['alice', 'bob', 'carol'])[1 + id % 3], balance = balance - 1 "
        f"WHERE id > {who}",
        f"DELETE FROM account WHERE id = {who}",
        f"INSERT INTO account VALUES ({who}, 'bob', {who}.25) ON CONFLICT (id) DO NOTHING",
        f"MERGE INTO account a USING (VALUES ({who}), ({who + 1})) v (id) ON a.id = v.id "
        "WHEN MATCHED AND a.balance > 80 THEN DELETE WHEN MATCHED THEN UPDATE SET balance = a.balance + 7 "
        "WHEN NOT MATCHED THEN INSERT VALUES (v.id, 'carol', 3)",
    ))


def routines(rng):
    who = rng.randint(1, 12)
    return rng.choice((
        f"SELECT pay({who}, 2.5)",
        f"CALL pay_in_steps({who})",
        f"DO $$ BEGIN UPDATE account SET balance = 0 WHERE id = {who}; "
        f"UPDATE wish SET what = 'done' WHERE customer = {who}; END $$",
        f"DO $$ BEGIN UPDATE account SET balance = 1 WHERE id = {who}; RAISE 'no'; "
        "EXCEPTION WHEN OTHERS THEN NULL; END $$",
    ))


def subtransactions(rng):
    who = rng.randint(1, 12)
    return "; ".join((
        "BEGIN", f"UPDATE account SET balance = balance + 1 WHERE id = {who}", "SAVEPOINT s", "DELETE FROM account",
        "DELETE FROM measure", "SAVEPOINT t", "DELETE FROM animal", "RELEASE t", "ROLLBACK TO s",
        rng.choice(("COMMIT", "COMMIT", "ROLLBACK"))))


def partitions(rng):
    day, kind = rng.randrange(40), rng.choice("xyz")
    leaf = ("measure_0", f"measure_1_{'x' if kind == 'x' else 'y'}", "measure_2", "measure_3")[day // 10]
    return rng.choice((
        f"INSERT INTO measure VALUES ({day}, '{kind}', 1); DELETE FROM measure WHERE value > 30",
        f"INSERT INTO {leaf} VALUES ({day}, '{kind}', 2)",
        f"UPDATE measure SET day = {day} WHERE day = {rng.randrange(40)}",
        f"DELETE FROM {leaf} WHERE day = {day}",
        f"DELETE FROM measure WHERE value <= 2 AND kind = '{kind}'",
        f"UPDATE {leaf} SET value = value + 0.5",
    ))


def inheritance(rng):
    who = rng.randint(1, 15)
    return rng.choice((
        f"UPDATE animal SET name = name || '!' WHERE id = {who} AND length(name) < 30",
        f"UPDATE cat SET lives = lives - 1 WHERE id = {who}",
        f"DELETE FROM dog WHERE id = {who}; INSERT INTO dog VALUES ({who}, 'dog {who}', NULL)",
        f"DELETE FROM animal WHERE id = {who}; INSERT INTO cat VALUES ({who}, 'cat {who}', 9)",
    ))


def plain(rng):
    n, text = rng.randint(1, 12), some_text(rng)[:40]
    return rng.choice((
        f"UPDATE one.stock SET what = '{text}' WHERE id = {n % 4 + 1}",
        f"UPDATE two.stock SET what = '{text}' WHERE id = {n % 5 + 1}",
        f"DELETE FROM one.stock WHERE id = 4; INSERT INTO one.stock VALUES ({rng.choice((4, 5))}, 'back')",
        f"DELETE FROM one.stock WHERE id > 3; DELETE FROM two.stock WHERE id > {n}",
        f"INSERT INTO two.stock VALUES ({n}, '{text}')",
        f"UPDATE vault SET open_part = '{text}' WHERE id = {n}",
        f"UPDATE secret_user SET owner = (ARRAY['alice', 'bob', 'carol'])[1 + {n} % 3] WHERE id = {n % 9}",
        f"UPDATE secret_tenant SET tenant = 't{n % 3}', what = '{text}' WHERE id = {n % 9}",
        f"UPDATE swap_live SET id = id + 1 WHERE id = {n}",
        f"UPDATE shape SET a = a + 1 WHERE id = {n}",
        f"UPDATE made SET a = a % 100 + 1 WHERE id = {n}",
        f"DELETE FROM event WHERE id = {n}; INSERT INTO event VALUES ({n}, '2024-06-06 06:06+06', '{text}')",
    ))


def uncounted(rng):
    return f"BEGIN; SET LOCAL track_counts = off; {rng.choice((plain, triggers, cascades))(rng)}; COMMIT"


def uncounted_pair(rng, pair):
    return ["BEGIN", "SET LOCAL track_counts = off", *bump(pair, rng.choice(GROUPS)), "COMMIT"]


def slow(rng):
    """A transaction that stays open for a while, so that its changes are not published."""
    return f"BEGIN; {plain(rng)}; SELECT pg_sleep({rng.uniform(0.05, 0.5):.2f}); {rng.choice(('COMMIT', 'ROLLBACK'))}"


def positioned(rng):
    return (f"BEGIN; DECLARE c CURSOR FOR SELECT * FROM account WHERE id > {rng.randrange(12)} FOR UPDATE; FETCH c; "
            "UPDATE account SET balance = balance + 100 WHERE CURRENT OF c; COMMIT")


def tenancy(rng):
    """What functions and policies read."""
    name = rng.choice(("postgres", "alice", "bob", "carol", "dora"))
    return rng.choice((
        f"UPDATE tenancy SET tenant = 't{rng.randrange(3)}' WHERE name = '{name}'",
        f"UPDATE tenancy SET top = {rng.randrange(12)} WHERE name = '{name}'",
        "UPDATE tenancy SET top = top + 1",
        f"BEGIN; DELETE FROM tenancy WHERE name = '{name}'; SAVEPOINT s; INSERT INTO tenancy VALUES ('{name}', 't1', 3); COMMIT",
        f"BEGIN; UPDATE tenancy SET tenant = 'nowhere' WHERE name = '{name}'; ROLLBACK",
        "TRUNCATE tenancy; INSERT INTO tenancy SELECT n, 't' || (random() * 2)::int, (random() * 9)::int "
        "FROM unnest(ARRAY['postgres', 'alice', 'bob', 'carol', 'dora']) n",
        f"INSERT INTO secret_ruled VALUES ({rng.randint(10, 20)}, 't{rng.randrange(3)}', 'new')",
        f"UPDATE secret_declared SET tenant = 't{rng.randrange(3)}' WHERE id = {rng.randint(1, 9)}",
        f"DELETE FROM secret_ruled WHERE id > {rng.randint(9, 20)}",
    ))


def truncation(rng):
    refill = "INSERT INTO event SELECT g, now(), 'new ' || g FROM generate_series(1, 8) g"
    return rng.choice((
        f"TRUNCATE event; {refill}",
        f"BEGIN; TRUNCATE event; SAVEPOINT s; {refill}; COMMIT",
        "BEGIN; TRUNCATE event; ROLLBACK",
        f"TRUNCATE line; INSERT INTO line SELECT id, id, 1, '2024-08-08' FROM orders WHERE id > {rng.randrange(40)}",
    ))


def prepared_transaction(rng, gid):
    """Another session ends it."""
    pair = rng.choice(PAIRS)
    grp, fresh = rng.choice(GROUPS), rng.randrange(10**6, 10**9)
    body = rng.choice((bump(pair, grp), [plain(rng)], [cascades(rng)], [triggers(rng)],
                       undone_in_part(pair, grp), kept_from_subtransaction(pair, grp), many_subtransactions(pair, grp),
                       ["TRUNCATE event", "SAVEPOINT s", "INSERT INTO event VALUES (1, now(), 'undone')", "ROLLBACK TO s"],
                       ["ALTER TABLE shape ALTER a TYPE bigint", f"UPDATE shape SET a = {fresh} WHERE id = 2"],
                       ["REFRESH MATERIALIZED VIEW sales", *bump(pair, grp)],
                       [f"CREATE OR REPLACE FUNCTION rate() RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT {fresh}'"],
                       ["CREATE OR REPLACE VIEW v_changing AS SELECT id, balance + 1000 AS balance FROM account"]))
    return ["BEGIN", *body, f"PREPARE TRANSACTION '{gid}'"]


DATA_CHANGES = {
    "cascade": cascades, "insert": inserts, "trigger": triggers, "routine": routines,
    "subtransactions": subtransactions, "partitions": partitions, "inheritance": inheritance, "plain": plain,
    "uncounted": uncounted, "positioned": positioned, "slow": slow,
    "TRUNCATE": truncation, "tenancy": tenancy,
}
