"""The queries of the readers, and the roles under which they run."""

from dataclasses import dataclass
from itertools import product

GROUPS = range(4)
ROWS_PER_GROUP = 3
PAIRS = ("hot", "warm", "linked", "late", "cool")


@dataclass(frozen=True)
class Question:
    """A query with at most one value in the place of %s.

    `steady`: the definitions it rests on never change, so that its uncached answer depends on the snapshot alone.
    `as_planned`: what it means depends on when it was planned, because of new objects earlier in the search path or of
    partitions that are detached concurrently. Of two prepared statements each keeps its own plan, so they may differ.
    """

    sql: str
    values: tuple = ()
    steady: bool = False
    as_planned: bool = False

    def text(self, value):
        return self.sql.replace("%s", str(value)) if self.values else self.sql

    def with_parameters(self):
        """As psycopg wants it: percent signs are doubled where there are parameters."""
        return self.sql.replace("%", "%%").replace("%%s", "%s") if self.values else self.sql


@dataclass(frozen=True)
class GroupQuestion:
    """A query over a pair of tables: its rows are a group and one or more versions of it."""

    sql: str
    pair: str
    paired: bool
    rows: int


# In a WHERE clause of its own that is always true, this keeps a query from being cached.
UNCACHEABLE = "random() >= 0"


def group_questions(pair):
    """In each, `{}` takes a condition on the alias `a`."""
    a, b = f"{pair}_a", f"{pair}_b"
    whole, one = len(GROUPS) * ROWS_PER_GROUP, ROWS_PER_GROUP
    for grp in GROUPS:
        yield GroupQuestion(f"SELECT a.grp, a.version FROM {a} a WHERE a.grp = {grp} AND {{}}", pair, False, one)
        yield GroupQuestion(f"SELECT a.grp, a.version FROM {b} a WHERE a.grp = {grp} AND {{}}", pair, False, one)
    yield GroupQuestion(f"SELECT a.grp, min(a.version), max(a.version) FROM {a} a WHERE {{}} GROUP BY a.grp",
                        pair, False, len(GROUPS))
    yield GroupQuestion(f"SELECT a.grp, a.version, b.version FROM {a} a JOIN {b} b USING (grp, n) WHERE {{}}",
                        pair, True, whole)
    yield GroupQuestion(f"SELECT a.grp, a.version FROM {a} a WHERE {{}} UNION ALL SELECT grp, version FROM {b}",
                        pair, True, 2 * whole)
    yield GroupQuestion(f"SELECT a.grp, a.version, (SELECT max(version) FROM {b} b WHERE b.grp = a.grp) FROM {a} a "
                        "WHERE {}", pair, True, whole)


GROUP_QUESTIONS = {pair: tuple(group_questions(pair)) for pair in PAIRS}

ANY_VALUE = (0, 1, 2, 3)
DATA = [Question(*q) for q in (
    ("SELECT * FROM customer",),
    ("SELECT name, mood, since, tags, home FROM customer WHERE id % 4 = %s", (0, 1, 2, 3)),
    ("SELECT mood, count(*), max(since) FROM customer GROUP BY mood",),
    ("SELECT mood::text, since::text, since::date FROM customer WHERE id < 6",),
    ("SELECT to_char(since, 'YYYY-MM-DD HH24:MI TZ') FROM customer WHERE id < 6",),
    ("SELECT id, (home).street, length(note) FROM customer WHERE mood < 'cross'",),
    ("SELECT c.name, o.amount, o.placed FROM customer c JOIN orders o ON o.customer = c.id WHERE c.id % 4 = %s",
     (0, 1, 2, 3)),
    ("SELECT customer, sum(amount), count(*) FROM orders GROUP BY customer",),
    ("SELECT id, doc, doc -> 'deep' ->> 0 FROM orders WHERE id % 8 = %s", (0, 1, 2, 3)),
    ("SELECT id, to_jsonb(home) FROM customer WHERE id < 6",),
    # What input functions read, which no tree shows: rows, labels, arrays of dates.
    ("SELECT id, jsonb_populate_record(home, jsonb_build_object('street', 'S' || id)) FROM customer WHERE id < 6",),
    ("SELECT c.id, r.m FROM customer c, jsonb_to_record(jsonb_build_object('m', c.mood)) AS r(m mood) WHERE c.id % 4 = %s", ANY_VALUE),
    ("SELECT o.id, ('{' || o.placed || ',today}')::date[] FROM orders o WHERE o.id % 8 = %s", ANY_VALUE),
    ("SELECT id, pg_typeof(home), session_user, current_database(), current_setting('DateStyle') FROM customer WHERE id < 4",),
    ("SELECT s FROM shape s",),
    ("SELECT count(*), sum(quantity), min(until) FROM line",),
    ("SELECT name FROM customer c WHERE EXISTS "
     "(SELECT FROM orders o JOIN line l ON l.order_id = o.id WHERE o.customer = c.id)",),
    ("SELECT name FROM customer WHERE id NOT IN (SELECT customer FROM orders)",),
    ("SELECT customer IS NULL, count(*) FROM wish GROUP BY 1",),
    ("SELECT grp, count(*), max(n) FROM scratch GROUP BY grp",),
    ("SELECT s.grp, count(*), max(t.n) FROM scratch_two t LEFT JOIN scratch s USING (n) GROUP BY s.grp",),
    ("SELECT count(*) FROM scratch_three",),
    ("SELECT * FROM v_customer",),
    ("SELECT name, sum(amount) FROM v_orders GROUP BY name",),
    ("SELECT * FROM account",),
    ("SELECT owner, sum(balance) FROM account GROUP BY owner",),
    ("SELECT * FROM account_log",),
    ("SELECT total, changes FROM account_total",),
    ("SELECT a.total, b.sum FROM account_total a, (SELECT sum(balance) FROM account) b",),
    ("SELECT a.id, l.became = a.balance FROM account a LEFT JOIN account_log l USING (id)",),
    ("WITH rich AS (SELECT * FROM account WHERE balance > 50) SELECT count(*), max(balance) FROM rich",),
    ("SELECT id, rank() OVER (ORDER BY balance, id) FROM account",),
    ("SELECT kind, count(*) FROM measure GROUP BY kind", (), False, True),
    ("SELECT * FROM measure WHERE day / 10 = %s", (0, 1, 2, 3), False, True),
    ("SELECT count(*) FROM measure WHERE day BETWEEN %s * 10 AND %s * 10 + 9", (0, 1, 2, 3), False, True),
    ("SELECT sum(day) FROM measure_1",),
    ("SELECT count(*) FROM measure_2",),
    ("SELECT * FROM animal",),
    ("SELECT count(*) FROM ONLY animal",),
    ("SELECT a.name, c.lives FROM animal a LEFT JOIN cat c USING (id)",),
    ("SELECT * FROM event",),
    ("SELECT count(*), max(at) FROM event",),
    ("SELECT at::text FROM event WHERE id < 4",),
    ("SELECT * FROM swap_live",),
    ("SELECT side, count(*) FROM swap_live GROUP BY side",),
    ("SELECT l.id FROM swap_live l LEFT JOIN swap_spare s USING (id) WHERE s.id IS NULL",),
    ("SELECT * FROM shape",),
    ("SELECT id, a FROM shape WHERE a > 10",),
    ("SELECT * FROM made",),
    ("SELECT id, times FROM made WHERE label LIKE 'm%' AND id = %s", (1, 2, 3, 4)),
    ("SELECT times, count(*), grouping(times) FROM made GROUP BY ROLLUP (times)",),
    ("SELECT times, label FROM made_even",),
    ("SELECT m, s.id FROM shape s LEFT JOIN made m USING (id)",),
    ("SELECT * FROM model",),
    ("SELECT count(*), sum(total) FROM model",),
    ("SELECT * FROM v_changing",),
    ("SELECT * FROM v_rate",),
    ("SELECT rate(), count(*) FROM account", (), False, True),
    ("SELECT id, level(id) FROM account", (), False, True),
    ("SELECT count(*) FROM account WHERE level(id) > %s", (2, 5, 20), False, True),
    ("SELECT * FROM secret_tenant WHERE tenant = tenant()",),
    ("SELECT * FROM secret_ruled",),
    ("SELECT count(*), my_tenant() FROM secret_ruled WHERE id > %s", ANY_VALUE),
    ("SELECT what FROM secret_tenant WHERE tenant = my_tenant() AND id > %s", ANY_VALUE),
    ("SELECT id, balance_of(id) FROM vault",),
    ("SELECT * FROM secret_declared",),
    ("SELECT id, declared_balance(id) FROM secret_declared WHERE id > %s", ANY_VALUE),
    ("SELECT s.id, declared_balance(s.id) FROM shape s WHERE s.id < 3 * %s", (1, 2, 3)),
    ("SELECT id, declared_tenant() FROM one.stock WHERE balance_of(id) < declared_balance(id)",),
    ("SELECT l.id, CASE WHEN l.id = %s THEN balance_of(l.id) END FROM swap_live l", ANY_VALUE),
    ("SELECT id, seen_secrets() FROM shape WHERE a > my_top()",),
    ("SELECT e.id, seen_customers() FROM event e",),
    ("SELECT id, named_in_stock(id) FROM shape", (), False, True),
    ("SELECT count(*) FROM account WHERE named_in_stock(%s) LIKE 'one%' OR balance > balance_of(%s)", (1, 2, 3), False, True),
    ("SELECT * FROM sales",),
    ("SELECT count(*), sum(amount) FROM sales",),
    ("SELECT id, open_part FROM vault",),
    ("SELECT * FROM vault",),
    ("SELECT * FROM v_vault",),
    ("SELECT * FROM v_vault_invoker",),
    ("SELECT v.id, a.balance FROM vault v JOIN account a USING (id)",),
    ("SELECT * FROM secret_user",),
    ("SELECT count(*) FROM secret_user",),
    ("SELECT * FROM secret_tenant",),
    ("SELECT t.id, u.what FROM secret_tenant t LEFT JOIN secret_user u USING (id)",),
    ("SELECT * FROM stock", (), False, True),
    ("SELECT count(*) FROM stock WHERE id > %s", (0, 1, 2), False, True),
    ("SELECT * FROM one.stock UNION ALL SELECT * FROM two.stock",),
    ("SELECT o.what, s.what FROM one.stock o JOIN stock s USING (id)", (), False, True),
    # Relative dates, which move once a day at most.
    ("SELECT count(*), max(at) FROM event WHERE at >= date_trunc('month', now() - interval '12 months')",),
    ("SELECT id, CURRENT_DATE - at::date FROM event WHERE at < CURRENT_DATE + %s", ANY_VALUE),
    ("SELECT mood, count(*) FROM customer WHERE since < date_trunc('day', now() - make_interval(days => %s)) GROUP BY mood", ANY_VALUE),
    ("SELECT now() - max(at) < interval '0', now() IS NULL, count(*), max(at) FROM event",),
    ("SELECT id, CASE WHEN since < now() THEN mood ELSE 'cross' END, now() >= since FROM customer WHERE id > %s ORDER BY id", ANY_VALUE),
    ("SELECT to_char(now(), 'YYYY-MM'), count(*) FROM orders WHERE placed <= (now() AT TIME ZONE 'Europe/Berlin')::date + 1",),
    # Windows to the microsecond: indexes of `event` and `customer` tell which row is the last one.
    ("SELECT count(*), min(id), max(id) FROM event WHERE at > now() - make_interval(days => %s)", ANY_VALUE),
    ("SELECT id, at <= now() - interval '2 seconds' FROM event WHERE at BETWEEN now() - interval '10 seconds' AND now() ORDER BY id",),
    ("SELECT mood, count(*) FILTER (WHERE since < now() - interval '300 days') FROM customer GROUP BY mood",),
    ("SELECT c.id, e.id FROM customer c LEFT JOIN event e ON e.id = c.id AND e.at > now() - interval '5 seconds' WHERE c.since <= now()",),
    ("SELECT e.id FROM event e WHERE e.at > date_trunc('year', CURRENT_DATE) AND EXISTS (SELECT FROM customer c WHERE c.since < now()::date)",),
    ("SELECT count(*), min(id) FROM event WHERE extract(epoch FROM now() - at) / 3600 < %s", ANY_VALUE),
    ("SELECT mood, count(*) FILTER (WHERE date_part('day', now() - since) > 300 OR age(now(), since) < interval '20 days') FROM customer GROUP BY mood",),
    # Times in columns that nothing uses, and constants that become timestamps.
    ("SELECT mood, count(*) FROM (SELECT *, now() - since AS age FROM customer) c GROUP BY mood",),
    ("WITH e AS (SELECT id, at, now() - at AS age FROM event), f AS (SELECT *, age * 2 AS twice FROM e) "
     "SELECT max(id), max(at) FROM f",),
    ("SELECT d, count(*) FROM event JOIN (SELECT d::timestamptz AS d FROM (VALUES ('2020-01-01'), ('2999-01-01')) v(d)) w ON at >= d GROUP BY d",),
    ("VALUES (1, 'one'), (2, NULL)",),
    ("SELECT 1 / (id - 4) FROM one.stock",),          # an error while there is a row 4
)]
# With parts that the planner leaves out for some values: of one form, each reads relations of its own.
DROPPED = [Question(*q) for q in (
    ("SELECT id, name FROM customer WHERE %s = 1 OR id IN (SELECT customer FROM orders WHERE amount > 20)", ANY_VALUE),
    ("SELECT id FROM account WHERE CASE WHEN %s > 1 THEN id IN (SELECT id FROM one.stock) ELSE balance > 20 END", ANY_VALUE),
    ("SELECT id, balance FROM account WHERE balance >= COALESCE(NULLIF(%s, 1), (SELECT min(total) / 20 FROM account_total))",
     ANY_VALUE),
    ("SELECT a.id FROM account a WHERE NOT EXISTS (SELECT FROM account_log l WHERE l.id = a.id LIMIT %s)", ANY_VALUE),
    ("SELECT id FROM account WHERE %s = 2 OR id IN (SELECT day FROM measure WHERE day < 10 * %s)", ANY_VALUE, False, True),
    ("SELECT day FROM measure WHERE day / 10 = %s AND (%s = 2 OR day IN (SELECT id FROM account_log))", ANY_VALUE, False, True),
    ("SELECT id FROM one.stock WHERE %s > 0 UNION ALL "
     "SELECT id FROM two.stock WHERE %s = 0 OR id IN (SELECT id FROM secret_tenant)", ANY_VALUE),
    ("SELECT s.id FROM one.stock s WHERE %s = 3 OR EXISTS (SELECT FROM vault v WHERE v.id = s.id)", ANY_VALUE),
    ("SELECT s.id FROM one.stock s WHERE %s <> 3 OR EXISTS (SELECT FROM v_vault_invoker v WHERE v.id = s.id)", ANY_VALUE),
    ("SELECT l.id FROM swap_live l LEFT JOIN shape s ON s.id = l.id WHERE %s < 2 OR l.id IN (SELECT id FROM animal)", ANY_VALUE),
    ("WITH w AS (SELECT id FROM animal WHERE %s <> 1) SELECT id FROM account WHERE %s = 1 OR id IN (SELECT id FROM w)",
     ANY_VALUE),
    ("SELECT id, CASE WHEN %s = 1 THEN what::varchar(3) ELSE what::varchar(5) END FROM one.stock", ANY_VALUE),
    ("SELECT id FROM secret_user WHERE %s = 0 OR id NOT IN (SELECT id FROM secret_tenant)", ANY_VALUE),
    ("SELECT a.grp, a.version FROM warm_a a WHERE %s = 1 OR a.grp IN (SELECT grp FROM warm_b WHERE version > %s)", ANY_VALUE, True),
    ("SELECT a.grp, a.version FROM hot_a a WHERE %s = 1 OR a.grp IN (SELECT grp FROM cool_b WHERE grp > %s)", ANY_VALUE, True),
    ("SELECT a.grp, (SELECT max(version) FROM cool_a WHERE grp = %s) FROM hot_b a WHERE %s > 1 OR EXISTS (SELECT FROM late_a)",
     ANY_VALUE, True),
)]
# Aggregates over tables with partitions or children, which are combined of parts.
COMBINED = [Question(*q) for q in (
    ("SELECT day / 10, count(*), sum(day), min(kind), max(day) FROM measure GROUP BY 1", (), False, True),
    ("SELECT kind, count(*), avg(day) FROM measure WHERE day >= %s AND day < 25 GROUP BY kind", (0, 7, 10, 20), False, True),
    ("SELECT a.owner, count(*), sum(a.balance) FROM measure m JOIN account a ON a.id = m.day WHERE m.day < %s GROUP BY a.owner",
     (5, 10, 25), False, True),
    ("SELECT m.kind, s.a, count(*) FROM measure m LEFT JOIN shape s ON s.id = m.day GROUP BY m.kind, s.a", (), False, True),
    ("SELECT u.owner, count(*) FROM secret_user u JOIN measure m ON m.day = u.id GROUP BY u.owner", (), False, True),
    ("SELECT m.kind, sum(t.id) FROM measure m JOIN secret_tenant t ON t.id = m.day GROUP BY m.kind HAVING count(*) > %s", (0, 1), False, True),
    ("SELECT count(*), sum(12 / (day - %s)) FROM measure", (3, 50), False, True),          # an error while there is a day 3
    ("SELECT length(name), count(*), max(name) FROM animal GROUP BY 1",),
    ("SELECT count(*), bool_or(id > %s), bit_xor(id) FROM animal", (2, 7)),
    ("SELECT id > 3, count(*), sum(a), max(times) FROM made GROUP BY 1",),
    ("SELECT grp, count(*), sum(version), max(version) FROM cool_a WHERE grp >= %s GROUP BY grp", ANY_VALUE, True),
    ("SELECT grp, avg(version), count(*) FILTER (WHERE n > 0) FROM cool_b GROUP BY grp", (), True),
    ("SELECT t.grp, t.v FROM (SELECT grp, max(version) AS v FROM cool_a GROUP BY grp) t WHERE t.grp <> %s", ANY_VALUE, True),
    ("SELECT a.grp, sum(a.version + w.version), count(*) FROM cool_a a JOIN warm_a w USING (grp, n) GROUP BY a.grp", (), True),
    ("SELECT a.grp, sum(a.version), count(h.version) FROM cool_b a LEFT JOIN hot_a h ON h.grp = a.grp AND h.n < %s GROUP BY a.grp", (1, 2), True),
)]
# Conditions with ever new constants, which are asked of the rows of parts in a grain.
MANY_VALUES = tuple(range(-1, 15))
FILTERED = [Question(*q) for q in (
    ("SELECT owner, count(*), sum(balance) FROM account WHERE id = %s GROUP BY owner", MANY_VALUES),
    ("SELECT owner, sum(balance) FROM account WHERE id IN (%s, 2, 5) OR owner IS NULL GROUP BY owner HAVING count(*) > 0", MANY_VALUES),
    ("SELECT date_trunc('day', placed), count(*), min(id) FROM orders WHERE customer = %s GROUP BY 1", MANY_VALUES),
    ("SELECT c.mood, count(*), max(o.placed) FROM customer c JOIN orders o ON o.customer = c.id WHERE c.id < %s GROUP BY c.mood", MANY_VALUES),
    ("SELECT count(*), max(at) FROM event WHERE id >= %s AND what IS NOT NULL", MANY_VALUES),
    ("SELECT count(*), sum(12 / (id - 3)) FROM event WHERE id > %s", MANY_VALUES),          # an error for some
    ("SELECT kind, count(*), sum(day) FROM measure WHERE kind >= 'y' AND day BETWEEN %s AND 3 * %s GROUP BY kind", MANY_VALUES, False, True),
    ("SELECT m.kind, count(a.id) FROM measure m LEFT JOIN account a ON a.id = m.day AND a.id > 3 WHERE a.id < %s OR a.id IS NULL GROUP BY 1",
     MANY_VALUES, False, True),
    ("SELECT count(*), min(id) FROM secret_tenant WHERE id <> %s", MANY_VALUES),
    ("SELECT grp, max(version), count(*) FROM warm_a WHERE grp <= %s AND n <> %s GROUP BY grp", ANY_VALUE, True),
    ("SELECT min(version), max(version), count(*) FROM hot_a WHERE grp = %s", ANY_VALUE, True),
    ("SELECT max(version), count(*) FROM cool_b WHERE n = %s AND grp > 0 GROUP BY grp", ANY_VALUE, True),
    ("SELECT n, max(version), count(*) FROM cool_a WHERE n = %s GROUP BY n", ANY_VALUE, True),
    ("SELECT sum(version), count(*) FROM cool_a WHERE n IN (%s, 1) AND grp >= 0", ANY_VALUE, True),
)]
STEADY = [Question(q.sql.format("true"), (), True) for questions in GROUP_QUESTIONS.values() for q in questions]
ALL = DATA + DROPPED + COMBINED + FILTERED + STEADY
# Asked more often than the rest: a late publication is found where many commit and many ask the same.
HOT = [Question(GROUP_QUESTIONS["hot"][n].sql.format("true"), (), True) for n in (0, 1, 8, 9)]


@dataclass(frozen=True)
class Profile:
    """The role of the reader, and its settings."""

    role: str = "none"
    path: str = "public, one"
    tenant: str = ""
    zone: str = "UTC"
    date_style: str = "ISO"

    def statements(self, word):
        """`word` is SET or SET LOCAL. The role comes last: it may not be allowed to do the rest."""
        return (f"{word} search_path = {self.path}", f"{word} app.tenant = '{self.tenant}'",
                f"{word} TimeZone = '{self.zone}'", f"{word} DateStyle = '{self.date_style}'",
                f"{word} ROLE {self.role}")


USUAL = (
    Profile(),
    Profile("alice", tenant="t1"),
    Profile("bob", "shadow, two, public", "t2", "Asia/Tokyo", "German"),
    Profile("dora"),
    Profile("carol", "shadow, one, public", "t0", "America/New_York", "SQL"),
)
ANY = tuple(Profile(*choice) for choice in product(
    ("none", "alice", "bob", "carol", "dora"),
    ("public, one", "shadow, two, public", "two, one, public", "shadow, one, public"),
    ("t0", "t1", "t2"), ("UTC", "Asia/Tokyo"), ("ISO", "SQL")))
