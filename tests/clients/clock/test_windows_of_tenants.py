"""A window to the microsecond beside columns that are equal to something: `tenant = 7 AND at > now() - interval '1 hour'`, with an index on
`(tenant, at)`. The answer lasts as long as no row of that tenant enters or leaves. At each moment, what the cache answers is what executing gives."""

import collections
import os
import random

import pytest
from support.sweeps import rounds, sweep
from support.windows import BY_INDEX, START, after, sessions

SEED = int(os.environ.get("RANDOM_SEED") or random.SystemRandom().randrange(2**32))

SCHEMA = """
    SET TimeZone = UTC;
    DROP TABLE IF EXISTS log, kinds CASCADE;
    DROP DOMAIN IF EXISTS word, number;
    CREATE DOMAIN word AS varchar CHECK (VALUE <> '');
    CREATE DOMAIN number AS int;
    CREATE TABLE log (id int, tenant int, small smallint, big bigint, name text, label varchar(20), at timestamptz, plain timestamp, n int, data jsonb,
        one text COLLATE "C", other text COLLATE "POSIX", word word, number number);
    INSERT INTO log SELECT g, g % 3, g % 4, g % 5, 'n' || g % 3, 'l' || g % 2, t, t, g % 7, jsonb_build_object('v', g)
        FROM generate_series(1, 60) g, LATERAL (SELECT timestamptz '2026-03-10 11:58:00' + g * interval '7 seconds') d (t);
    INSERT INTO log SELECT 100 + g, NULL, NULL, NULL, NULL, NULL, timestamptz '2026-03-10 12:00:00' + g * interval '1 second' FROM generate_series(1, 3) g;
    UPDATE log SET word = name, number = tenant;
    CREATE TABLE kinds (tenant int, title text);
    INSERT INTO kinds VALUES (0, 'zero'), (1, 'one'), (2, NULL);
    CREATE INDEX ON log (tenant, at);
    CREATE INDEX ON log (name DESC, at DESC NULLS LAST);
    CREATE INDEX ON log (label, plain);
    CREATE INDEX ON log (word, at);
    CREATE INDEX ON log (number, at);
    CREATE INDEX ON log (big, small, at) INCLUDE (n);
"""

SERVED = (
    "SELECT count(*), min(id), max(id) FROM log WHERE tenant = 1 AND at > now() - interval '1 minute'",
    "SELECT count(*), min(id), max(id) FROM log WHERE at >= now() - interval '1 minute' AND 1 = tenant",
    "SELECT id, (data->>'v')::int FROM log WHERE tenant = 2 AND at BETWEEN now() - interval '50 seconds' AND now() ORDER BY at DESC LIMIT 1",
    "SELECT count(*), min(id) FROM log WHERE name = 'n1' AND now() - interval '30 seconds' <= at",
    "SELECT count(*), min(id) FROM log WHERE label = 'l1' AND plain > localtimestamp - interval '40 seconds'",
    "SELECT count(*), min(id) FROM log WHERE big = 3 AND small = 2 AND at > now() - interval '2 minutes'",
    "SELECT count(*), min(id) FROM log WHERE small = 2 AND n IS NOT NULL AND big = 3 AND (tenant = 0 AND at > now() - interval '3 minutes')",
    "SELECT k.title, l.id FROM log l JOIN kinds k ON k.tenant = l.tenant WHERE l.tenant = 1 AND l.at < now() - interval '10 seconds' ORDER BY 2",
    "SELECT k.title, l.id FROM kinds k LEFT JOIN log l ON k.tenant = l.tenant WHERE l.tenant = 0 AND l.at > now() - interval '70 seconds' ORDER BY 2",
    "SELECT count(*) FROM log WHERE tenant = NULL AND at > now() - interval '1 minute'",
    "SELECT count(*) FROM log WHERE tenant = 17 AND at > now() - interval '1 minute'",
    "SELECT count(*), min(id) FROM log WHERE name = 'n1'::varchar AND now() - interval '30 seconds' <= at",
    "SELECT count(*), min(id) FROM log WHERE label = 'l1'::varchar AND plain > localtimestamp - interval '40 seconds'",
    "SELECT count(*), min(id) FROM log WHERE word = 'n1'::varchar AND at > now() - interval '40 seconds'",
    "SELECT count(*), min(id) FROM log WHERE number = 2 AND at > now() - interval '40 seconds'",
    "SELECT now() AS time, count(*) FROM log WHERE tenant = 1 AND at > now() - interval '1 minute'",
    "SELECT count(*) FROM log WHERE tenant = 1 AND at > now() - interval '1 minute' AND 100 / (n + 1) > 0",
    "SELECT count(*) FROM log WHERE tenant = 1 AND at > now() - interval '1 minute' AND (data->>'v')::int > 0",
    "SELECT count(*) FROM log WHERE one = other AND tenant = 1 AND at > now() - interval '1 minute'",
    "SELECT count(*) FROM log JOIN kinds ON one = other WHERE log.tenant = 1 AND at > now() - interval '1 minute'",
    "SELECT count(*) FROM log a JOIN log b ON a.id = b.id AND 100 / (b.n + 1) > 0 WHERE a.tenant = 1 AND a.at > now() - interval '1 minute'",
    "SELECT count(*) FROM log l, LATERAL (SELECT 1 / (l.n + 1) AS q) s WHERE l.tenant = 1 AND l.at > now() - interval '1 minute' AND s.q < 5",
    "SELECT count(*) FROM log WHERE tenant = 1 AND at > now() - interval '1 minute' AND n IN (SELECT tenant FROM kinds)",
)

# The comparison decides on rows of other tenants, or stands in a sub-query.
OTHERS = (
    "SELECT count(*) FROM log WHERE at > now() - interval '1 minute'",
    "SELECT count(*) FROM log WHERE tenant > 1 AND at > now() - interval '1 minute'",
    "SELECT count(*) FROM log WHERE (tenant = 1 OR n = 2) AND at > now() - interval '1 minute'",
    "SELECT count(*) FROM log WHERE tenant = 1 OR at > now() - interval '1 minute'",
    "SELECT count(*) FROM log WHERE tenant = 1 AND NOT (at > now() - interval '1 minute' AND n = 1)",
    "SELECT count(*) FILTER (WHERE at > now() - interval '1 minute') FROM log WHERE tenant = 1",
    "SELECT count(*) FROM log WHERE tenant = n AND at > now() - interval '1 minute'",
    "SELECT count(*) FROM log a JOIN log b ON a.id = b.id WHERE a.tenant = 1 AND b.at > now() - interval '1 minute'",
    "SELECT s.tenant, s.c FROM (SELECT tenant, count(*) AS c FROM log WHERE tenant = 2 AND at > now() - interval '20 seconds' GROUP BY tenant) s",
    "SELECT count(*) FROM (SELECT * FROM log WHERE tenant = 1 AND at > now() - interval '1 minute') s WHERE 100 / (s.n + 1) > 0",
    "SELECT count(*) FROM log WHERE big = 1 AND at > now() - interval '1 minute'",
    "SELECT count(*) FROM log a JOIN log b ON a.id = b.id WHERE a.tenant = 1 AND a.at > now() - interval '1 minute' AND b.tenant = 1 AND b.at > now() - interval '2 minutes'",
    "SELECT count(*) FROM log WHERE name = 'n1' COLLATE \"C\" AND at > now() - interval '1 minute'",
)

CHANGES = (
    "INSERT INTO log(id, tenant, name, big, small, label, at, plain) VALUES (100, 1, 'n1', 3, 2, 'l1', now() + interval '15 seconds', localtimestamp + interval '15 seconds')",
    "INSERT INTO log(id, tenant, name, at) VALUES (101, 2, 'n2', now() - interval '1 minute'), (102, NULL, NULL, now())",
    "INSERT INTO log(id, tenant, name, at) VALUES (103, 1, 'n1', 'infinity'), (104, 1, 'n1', '-infinity'), (105, 1, 'n1', NULL)",
    "UPDATE log SET at = at + interval '1 second' WHERE id % 5 = 0",
    "UPDATE log SET tenant = (tenant + 1) % 3 WHERE id % 4 = 0",
    "UPDATE log SET n = n + 1 WHERE id % 4 = 0",
    "DELETE FROM log WHERE at BETWEEN now() - interval '20 seconds' AND now() - interval '5 seconds'",
    "VACUUM log",
    "CLUSTER log USING log_tenant_at_idx",
    "REINDEX TABLE log",
    "DELETE FROM log",
)


@pytest.fixture
def logged(server):
    server.set(str(START))
    server.psql(SCHEMA)
    return server


@pytest.mark.parametrize("mode", ("force_custom_plan", "force_generic_plan"))
def test_windows_slide_over_the_rows_of_one_tenant(logged, at, mode):
    cached, plain = sessions(at, f"-c plan_cache_mode={mode}")
    for number, question in enumerate(SERVED):
        cached.execute(f"PREPARE q{number} AS {question}")
    seen = collections.Counter()
    for second in range(0, 80, 2):
        logged.set(after(second))
        for number, question in enumerate(SERVED):
            for text in (question, f"EXECUTE q{number}"):
                with plain.transaction():
                    expected = plain.rows(question)
                assert cached.rows(text, prepare=False) == expected, (second, text)
                seen[cached.outcome()] += 1
    assert set(seen) == {("HIT", None), ("MISS", None)}, seen
    assert seen["HIT", None] > 2 * seen["MISS", None] > len(SERVED), seen


def test_rows_of_other_tenants_do_not_count(logged, at):
    """From the moment at which a row of the tenant leaves to the next such moment there is one answer."""
    cached, plain = sessions(at)
    question = "SELECT count(*), min(id) FROM log WHERE tenant = 1 AND at > now() - interval '20 seconds'"
    missed = []
    for second in range(0, 64):
        logged.set(after(second))
        assert cached.rows(question) == plain.rows(question)
        if cached.status() == "MISS":
            missed.append(second)
    # A row every 7 seconds, each third of which is the tenant's: the one of 11:58:07 and so on leaves 20 seconds later.
    leaves = [g * 7 - 120 + 20 for g in range(1, 61) if g % 3 == 1]
    assert missed == [0] + [second for second in range(1, 64) if second in leaves]


def test_parameters(logged, at):
    seen = collections.Counter()
    for mode in ("auto", "force_generic_plan", "force_custom_plan"):
        cached, plain = sessions(at, f"-c plan_cache_mode={mode}")
        for session in (cached, plain):
            session.execute("PREPARE q (int, text, interval) AS SELECT count(*), min(id) FROM log WHERE tenant = $1 AND name = $2 AND at > now() - $3")
        for second in range(0, 40, 2):
            logged.set(after(second))
            for values in ("1, 'n1', '1 minute'", "2, 'n2', '30 seconds'", "1, 'n2', '1 minute'", "NULL, 'n1', '1 minute'", "0, NULL, '1 day'"):
                assert cached.rows(f"EXECUTE q ({values})") == plain.rows(f"EXECUTE q ({values})"), (second, values)
                seen[cached.status()] += 1
    assert seen["HIT"] > 2 * seen["MISS"] > 0 and set(seen) == {"HIT", "MISS"}, seen


W = "at > now() - interval '20 seconds'"
# Where the comparison stands, and whether the condition of WHERE narrows the search: it is on the same table of the same query.
PLACES = (
    (f"SELECT count(*), min(id) FROM log WHERE tenant = 1 AND ({W} OR n = 2)", True),
    (f"SELECT count(*), min(id) FROM log WHERE tenant = 1 AND NOT ({W} AND n < 5)", True),
    (f"SELECT count(*) FILTER (WHERE {W}), count(*) FROM log WHERE tenant = 1", True),
    (f"SELECT sum(CASE WHEN {W} THEN id ELSE -id END) FROM log WHERE tenant = 1", True),
    (f"SELECT {W}, count(*), min(id) FROM log WHERE tenant = 1 GROUP BY 1 ORDER BY 1", True),
    (f"SELECT n, count(*) FROM log WHERE tenant = 1 GROUP BY n HAVING bool_or({W}) ORDER BY n", True),
    (f"SELECT count(*), count(k.title) FROM log LEFT JOIN kinds k ON k.tenant = log.n AND {W} WHERE log.tenant = 1", True),
    (f"SELECT count(*), count(k.title) FROM kinds k RIGHT JOIN log ON k.tenant = log.n AND {W} WHERE log.tenant = 1", True),
    (f"SELECT count(*), count(log.id) FROM kinds k LEFT JOIN log ON k.tenant = log.n AND {W} WHERE log.tenant = 1", True),
    (f"SELECT count(*), count(log.id) FROM kinds k FULL JOIN log ON k.tenant = log.n AND {W} WHERE log.tenant = 1", True),
    (f"SELECT count(*), count(log.id) FROM kinds k LEFT JOIN log ON k.tenant = log.n WHERE log.tenant = 1 AND ({W} OR k.title = 'one')", True),
    ("SELECT count(*), min(b.id) FROM log a JOIN log b ON a.id = b.id + 3 WHERE b.tenant = 1 AND b.at > now() - interval '20 seconds'", True),
    # In ON of an outer join, or not joined by AND, it demands nothing of the rows that the query reads.
    (f"SELECT count(*), count(log.id) FROM kinds k LEFT JOIN log ON log.tenant = 1 AND {W}", False),
    (f"SELECT count(*), count(log.id) FROM kinds k LEFT JOIN log ON log.tenant = 1 WHERE {W} OR log.id IS NULL", False),
    (f"SELECT count(*), min(id) FROM log WHERE (tenant = 1 OR n = 2) AND {W}", False),
    (f"SELECT count(*), min(id) FROM log WHERE tenant = 1 OR {W}", False),
    (f"SELECT count(*), min(id) FROM log WHERE NOT (tenant = 1) AND {W}", False),
    (f"SELECT tenant, count(*) FROM log WHERE {W} GROUP BY tenant HAVING tenant = 1", False),
    # The tenant is one of another table, which the join need not bind to this one.
    ("SELECT count(*), min(b.id) FROM log a JOIN log b ON a.id = b.id + 1 WHERE a.tenant = 1 AND b.at > now() - interval '20 seconds'", False),
    (f"SELECT count(*), min(id) FROM kinds k, log WHERE k.tenant = 1 AND {W}", False),
    (f"SELECT count(*), min(id) FROM log JOIN kinds k ON k.tenant <> log.tenant WHERE k.tenant = 1 AND {W}", False),
    # The tables of two queries have the same numbers.
    (f"SELECT count(*), min(id) FROM log WHERE tenant = 1 AND n IN (SELECT n FROM log WHERE {W})", False),
    (f"SELECT count(*), (SELECT count(*) FROM log WHERE {W}) FROM log WHERE tenant = 1", False),
    (f"SELECT count(*), min(id) FROM log WHERE {W} AND n IN (SELECT n FROM log WHERE tenant = 1 AND id < 50)", False),
    ("SELECT count(*), min(id) FROM log WHERE tenant = 1 AND EXISTS (SELECT FROM kinds k WHERE k.tenant = log.n AND log.at > now() - interval '20 seconds')", False),
    (f"SELECT count(*), min(id) FROM (SELECT * FROM log WHERE {W}) s WHERE tenant = 1", False),
    (f"SELECT count(*), min(id) FROM log, LATERAL (SELECT max(at) AS last FROM log o WHERE o.{W}) s WHERE tenant = 1 AND s.last IS NOT NULL", False),
    (f"SELECT id FROM log WHERE tenant = 1 UNION ALL SELECT id FROM log WHERE {W} ORDER BY 1", False),
    ("SELECT n, count(*) FROM log WHERE tenant = 1 GROUP BY n HAVING max(at) > now() - interval '20 seconds' ORDER BY n", False),
)


@pytest.mark.parametrize("question, is_narrowed", PLACES)
def test_wherever_the_comparison_stands(logged, at, question, is_narrowed):
    """Its gap reaches to rows of the tenant if the condition is one on that table in WHERE of that query, otherwise to any rows."""
    cached, plain = sessions(at)
    # Each row of some tenant is alone in leaving the window, so that none of them can be missed.
    plain.execute("DELETE FROM log WHERE tenant IS NULL")
    missed = []
    for second in range(0, 64):
        logged.set(after(second))
        assert cached.rows(question) == plain.rows(question), second
        assert cached.outcome() in (("HIT", None), ("MISS", None)), second
        if cached.status() == "MISS":
            missed.append(second)
    leaves = [g * 7 - 120 + 20 for g in range(1, 61) if g % 3 == 1 or not is_narrowed]
    assert missed == [0] + [second for second in range(1, 64) if second in leaves]


@pytest.mark.parametrize("question", OTHERS)
def test_rows_of_other_tenants_decide(logged, at, question):
    cached, plain = sessions(at)
    for second in range(0, 40, 3):
        logged.set(after(second))
        assert cached.rows(question) == plain.rows(question)


def test_another_tenant_whose_rows_cannot_be_computed(logged, at):
    """In which order the conditions are asked is the planner's choice. The answer is that of this tenant's rows."""
    cached, plain = sessions(at, BY_INDEX)
    plain.execute("UPDATE log SET n = -1, data = '{\"v\": \"x\"}' WHERE tenant = 2")
    statuses = []
    for second in range(0, 21):
        logged.set(after(second))
        for condition in "100 / (n + 1) > 0", "(data->>'v')::int > 0":
            question = f"SELECT count(*), min(id) FROM log WHERE tenant = 1 AND at > now() - interval '1 minute' AND {condition}"
            assert cached.rows(question) == plain.rows(question)
            statuses.append(cached.status())
    assert statuses.count("HIT") > 2 * statuses.count("MISS") and set(statuses) == {"HIT", "MISS"}, statuses


def test_changes(logged, at):
    """Each change is seen at once, and at later moments, also when the clock is set back."""
    cached, plain = sessions(at)
    seen = collections.Counter()
    for number, change in enumerate(CHANGES):
        logged.set(after(number))
        plain.execute(change)
        for second in (number, number + 1, number + 12, number + 1, number - 7):
            logged.set(after(second))
            for question in SERVED:
                assert cached.rows(question, prepare=False) == plain.rows(question, prepare=False), (change, second, question)
                seen[cached.status()] += 1
    assert seen["HIT"] > seen["MISS"] / 2, seen


INDEXES = (
    ("CREATE INDEX one ON log (name, at)", True),
    ("CREATE INDEX one ON log (n, name, at)", True),
    ("CREATE INDEX one ON log (name text_pattern_ops, at)", False),
    ("CREATE INDEX one ON log (name COLLATE \"C\", at)", False),
    ("CREATE INDEX one ON log (lower(name), at)", False),
    ("CREATE INDEX one ON log (name, at) WHERE id > 0", False),
    ("CREATE INDEX one ON log (name, id, at)", False),
    ("CREATE INDEX one ON log (name) INCLUDE (at)", False),
    ("CREATE COLLATION alike (provider = icu, locale = 'und-u-ks-level2', deterministic = false); "
     "ALTER TABLE log ALTER name TYPE text COLLATE alike; CREATE INDEX one ON log (name, at)", False),
)


@pytest.mark.parametrize("index, tells", INDEXES)
def test_which_indexes_tell(logged, at, index, tells):
    cached, plain = sessions(at, BY_INDEX)
    plain.execute("DROP INDEX log_name_at_idx; DROP COLLATION IF EXISTS alike CASCADE")
    question = "SELECT count(*), min(id) FROM log WHERE name = 'n1' AND n = 1 AND at > now() - interval '2 minutes'"
    plain.execute(index)
    for second in range(0, 6):
        logged.set(after(second))
        assert cached.rows(question) == plain.rows(question)
        # The planner may find another way that is cheap enough.
        assert cached.status() in ("HIT", "MISS") or not tells, index


@sweep
def test_random_windows(logged, at):
    """Random windows, tenants and changes."""
    print(f"RANDOM_SEED={SEED}")
    rng = random.Random(SEED)
    cached, plain = sessions(at)
    conditions = ["tenant = {}", "name = 'n{}'", "big = {}", "small = {}", "n = {}", "label = 'l{}'", "id > {}", "n IS NOT NULL", "100 / (n + 1) > {}",
                  "n IN (SELECT tenant + {} FROM kinds)", "NOT EXISTS (SELECT FROM kinds k WHERE k.tenant = log.n AND k.tenant > {})"]
    windows = ["at > now() - interval '{} seconds'", "at <= now() + interval '{} seconds'", "at BETWEEN now() - interval '{} seconds' AND now()",
               "plain >= localtimestamp - interval '{} seconds'"]
    asked, hits = [], 0
    for number in range(rounds(150, 400)):
        if not asked or rng.random() < .3:
            chosen = [one.format(rng.randint(0, 4)) for one in rng.sample(conditions, rng.randint(1, 3))]
            chosen.insert(rng.randint(0, len(chosen)), rng.choice(windows).format(rng.randint(1, 90)))
            asked.append(f"SELECT count(*), min(id), max(at)::text FROM log WHERE {' AND '.join(chosen)}")
        if rng.random() < .1:
            plain.execute(rng.choice(CHANGES[:-1]))
        logged.set(after(rng.randint(0, 90)))
        question = rng.choice(asked[-12:])
        assert cached.rows(question, prepare=False) == plain.rows(question, prepare=False), question
        hits += cached.status() == "HIT"
    assert hits > 0
