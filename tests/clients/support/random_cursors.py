"""Two sessions that do the same things with cursors and portals, one with the cache and one without, each in a schema of its own with
the same tables. Every message must be the same."""

import random

from support.wire import error_fields

TABLES = """
CREATE TYPE mood AS ENUM ('calm', 'cross', 'glad');
CREATE TYPE pair AS (x int, y text);
CREATE TABLE t (id int PRIMARY KEY, n int, ts timestamptz, f float8, m mood, p pair, v text);
INSERT INTO t SELECT g, g % 7, timestamptz '2026-01-01 UTC' + g * interval '7 hours', g / 7.0, (ARRAY['calm', 'cross', 'glad'])[1 + g % 3]::mood,
    (g, 'y' || g)::pair, repeat('v', g % 5) || g FROM generate_series(1, 40) g;
CREATE TABLE u (id int PRIMARY KEY, d date, v text);
INSERT INTO u SELECT g, date '2026-01-01' + g, 'u' || g FROM generate_series(1, 12) g;
CREATE INDEX u_d ON u (d);
CREATE TABLE parts (k int, v text) PARTITION BY RANGE (k);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (20);
INSERT INTO parts SELECT g, 'k' || g FROM generate_series(0, 19) g;
GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {role};
GRANT USAGE ON SCHEMA {schema} TO {role};
ANALYZE t, u, parts;
"""

QUERIES = [
    # Sorted at the top, without and with settings.
    "SELECT id, v FROM t ORDER BY v, id",
    "SELECT id, ts FROM t ORDER BY n, id",
    "SELECT id, ts::text, f::text FROM t ORDER BY n, id",
    "SELECT n, to_char(max(ts), 'YYYY-MM-DD HH24:MI TZ') FROM t GROUP BY n ORDER BY 2, 1",
    "SELECT DISTINCT m, m::text FROM t ORDER BY 2, 1",
    "SELECT id, p, m FROM t ORDER BY v, id LIMIT 9",
    "SELECT u.d::text, count(*) FROM u JOIN t ON t.id = u.id WHERE t.n > 1 GROUP BY 1 ORDER BY 1",
    "SELECT current_user::text, id FROM u ORDER BY v, id",
    "SELECT id, current_setting('app.tenant', true) FROM u ORDER BY v, id",
    # Computed row by row.
    "SELECT id, max(ts)::text FROM t GROUP BY id ORDER BY id",
    "SELECT id, count(*), max(f)::text FROM t GROUP BY id ORDER BY id",
    "SELECT a.id, a.ts::text, b.d::text FROM t a JOIN u b ON a.id = b.id ORDER BY a.id",
    "SELECT a.id, b.d FROM t a JOIN u b ON a.id = b.id ORDER BY a.id",
    "SELECT id, 10 / (20 - max(id)) FROM t GROUP BY id ORDER BY id",
    "SELECT id, sum(n) OVER (ORDER BY id), max(ts) OVER (ORDER BY id) - '1 day' FROM t ORDER BY id",
    "SELECT id, sum(n) FROM t GROUP BY id HAVING length(max(ts)::text) > 22 ORDER BY id",
    # With the clock: the day is that of the session's zone.
    "SELECT id, date_trunc('day', now()) FROM u ORDER BY v, id",
    "SELECT id, count(*), date_trunc('day', now()) FROM t GROUP BY id ORDER BY id",
    "SELECT a.id, CURRENT_DATE - b.d FROM t a JOIN u b ON a.id = b.id ORDER BY a.id",
    "SELECT id, max(ts) FROM t GROUP BY id HAVING max(ts) < CURRENT_DATE + 100000 ORDER BY id",
    # The zone decides which rows are read, before the first one is out or row by row, by the plan.
    "SELECT n, count(*), max(ts) FROM t WHERE ts >= date_trunc('day', timestamptz '2026-01-03 12:00 UTC') GROUP BY n ORDER BY n",
    "SELECT id, count(*) FROM t WHERE ts::date <= date '2026-01-08' GROUP BY id ORDER BY id",
    "SELECT n FROM t WHERE ts::date > date '2026-01-04' GROUP BY n ORDER BY n",
    "SELECT DISTINCT ON (n) n, v FROM t WHERE ts::date > date '2026-01-04' ORDER BY n, id",
    "SELECT d, v, count(*) FROM u WHERE d > (timestamptz '2026-01-05 UTC')::date GROUP BY d, v ORDER BY d, v",
    "SELECT d, count(*) FROM u WHERE d > (timestamptz '2026-01-05 UTC')::date GROUP BY d ORDER BY d LIMIT 4",
    "SELECT a.id, count(*) FROM u a JOIN t b ON b.id >= a.id AND b.ts::date > a.d GROUP BY a.id ORDER BY a.id",
    "SELECT a.id, min(b.d) FROM t a JOIN u b ON a.n = b.id WHERE b.d > (timestamptz '2026-01-03 UTC')::date GROUP BY a.id ORDER BY a.id",
    "SELECT a.id, min(b.d) FROM t a LEFT JOIN u b ON a.n = b.id AND b.d > (timestamptz '2026-01-03 UTC')::date GROUP BY a.id ORDER BY a.id",
    "SELECT a.id, min(b.n) FROM u a JOIN t b ON a.id = b.id WHERE b.ts::date > date '2026-01-02' GROUP BY a.id ORDER BY a.id",
    "SELECT id, sum(n) FROM t GROUP BY id HAVING id < 5 OR sum(n) > (SELECT count(*) FROM u WHERE d > (timestamptz '2026-01-05 UTC')::date) / 3 ORDER BY id",
    "SELECT id, sum(n) OVER (ORDER BY id) FROM t WHERE ts::date > date '2026-01-03' ORDER BY id",
    "SELECT n, id, count(*) OVER (PARTITION BY n ORDER BY ts::text, id) FROM t ORDER BY n, ts::text, id",
    "SELECT id, count(*) OVER (ORDER BY ts RANGE BETWEEN '1 day' PRECEDING AND CURRENT ROW) FROM t WHERE ts::date > date '2026-01-03' ORDER BY ts",
    "SELECT n, count(*) FROM t WHERE ts::date > date '2026-01-03' GROUP BY ROLLUP (n) ORDER BY n",
    "SELECT n, count(*) FROM t WHERE n = 3 AND ts::date > date '2026-01-03' GROUP BY n",
    "SELECT id, count(*) FROM t WHERE ts::date = date '2026-01-04' GROUP BY id HAVING max(ts)::date <> date '2026-01-05' ORDER BY id",
    "SELECT x.n, x.c + 1 FROM (SELECT n, count(*) AS c FROM t WHERE ts::date > date '2026-01-03' GROUP BY n ORDER BY n LIMIT 5) x",
    # The current row of these can be updated.
    "SELECT id, v FROM t WHERE n = 3 ORDER BY id",
    "SELECT id, ts::text FROM t ORDER BY id",
    # One row, a proven number of rows, none.
    "SELECT max(ts)::text, count(*) FROM t",
    "SELECT sum(n) FROM t",
    "SELECT t.v, u.d FROM t JOIN u ON u.id = t.id WHERE t.id = 7",
    "SELECT count(*), 'a' FROM t UNION ALL SELECT count(*), 'b' FROM u",
    "SELECT id FROM t ORDER BY v LIMIT 3",
    "SELECT v FROM t WHERE n > 100 ORDER BY v",
    "SELECT k, v FROM parts WHERE k > 4 ORDER BY v, k",
    "SELECT ts::text, n FROM t ORDER BY n, id OFFSET 3 LIMIT 4",
]

SETTINGS = [
    "datestyle = 'ISO, MDY'", "datestyle = 'German'", "datestyle = 'SQL, DMY'", "timezone = 'UTC'", "timezone = 'Asia/Tokyo'",
    "timezone = 'America/New_York'", "extra_float_digits = 1", "extra_float_digits = -5", "intervalstyle = 'iso_8601'", "app.tenant = 'one'",
    "app.tenant = 'two'", "search_path = {schema}, pg_catalog", "role = '{role}'", "role = 'none'", "pg_arrow_cache.populate = off",
    "pg_arrow_cache.populate = on", "work_mem = '64kB'", "enable_sort = off", "enable_sort = on",
]

# One that plans in this way and one that does not, by turns: every kind of node is met.
PLANNING = [
    "enable_hashagg = off", "enable_sort = off", "enable_hashjoin = off", "enable_mergejoin = off", "enable_nestloop = off", "enable_seqscan = off",
    "enable_material = off", "enable_bitmapscan = off", "enable_indexscan = off", "enable_indexonlyscan = off", "enable_memoize = off",
    "enable_incremental_sort = off", "max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0",
]

WRITES = [
    "UPDATE {schema}.t SET v = v || '!' WHERE id = {id}", "UPDATE {schema}.t SET n = n + 1 WHERE id = {id}",
    "DELETE FROM {schema}.u WHERE id = {id}", "INSERT INTO {schema}.u VALUES ({id} + 100, '2026-02-03', 'new') ON CONFLICT DO NOTHING",
    "UPDATE {schema}.parts SET v = 'k' WHERE k = {id}", "UPDATE {schema}.u SET d = d + 1 WHERE id = {id}",
]

FETCHES = [
    "NEXT", "PRIOR", "FIRST", "LAST", "ABSOLUTE {n}", "ABSOLUTE -{n}", "RELATIVE {n}", "RELATIVE -{n}", "RELATIVE 0", "ABSOLUTE 0", "0",
    "FORWARD {n}", "BACKWARD {n}", "FORWARD ALL", "BACKWARD ALL", "FORWARD 0", "BACKWARD 0",
]
FORWARD = ["NEXT", "FORWARD {n}", "FORWARD {n}", "FORWARD ALL", "{n}"]

CURSORS = ["CURSOR", "CURSOR", "NO SCROLL CURSOR", "SCROLL CURSOR", "BINARY CURSOR", "CURSOR WITH HOLD", "NO SCROLL CURSOR WITH HOLD",
           "SCROLL CURSOR WITH HOLD"]


def comparable(messages):
    """Without what differs between two schemas: OIDs of tables in descriptions, places in the server's code."""
    found = []
    for message in messages:
        if message.type == "T":
            columns, body = int.from_bytes(message.body[:2], "big"), message.body[2:]
            for _ in range(columns):
                name, _, body = body.partition(b"\0")
                found.append(("T", name, body[4:6], body[10:18] if int.from_bytes(body[6:10], "big") > 16000 else body[6:18]))
                body = body[18:]
        elif message.type == "E":
            fields = error_fields(message)
            found.append(("E", *(fields.get(letter) for letter in "SCMDHP")))
        else:
            found.append((message.type, message.body))
    return found


class Pair:
    """Both sessions, and what is open in them."""

    def __init__(self, plain, cached, schemas, role, other, queries, seed):
        self.clients = [plain, cached]
        self.schemas, self.role, self.other, self.queries = schemas, role, other, queries
        self.random = random.Random(seed)
        self.steps = []
        self.serial = 0
        self.forget_all()
        self.held = []

    def forget_all(self):
        self.cursors, self.portals, self.savepoints, self.written, self.has_read = [], [], [], False, False

    def both(self, step, act):
        self.steps.append(step)
        answers = [comparable(act(client, schema)) for client, schema in zip(self.clients, self.schemas)]
        if answers[0] != answers[1]:
            first = next((i for i, (one, two) in enumerate(zip(*answers)) if one != two), min(map(len, answers)))
            raise AssertionError("\n".join([*self.steps, f"at {first}", repr(answers[0][first:][:2]), repr(answers[1][first:][:2])]))
        return answers[0]

    def sql(self, text):
        return self.both(text, lambda client, schema: client.query(text.replace("{schema}", schema).replace("{role}", self.role)))

    def failed(self, answer):
        return answer[-1] == ("Z", b"E")

    def transaction(self, length):
        for setting in self.random.sample(PLANNING, self.random.choice([0, 1, 2, 4])):
            self.sql(f"SET {setting}")
        self.sql(self.random.choice(["BEGIN", "BEGIN", "BEGIN READ ONLY"]))
        self.forget_all()
        for _ in range(length):
            answer = self.random.choices([self.open_cursor, self.open_portal, self.fetch, self.execute, self.set, self.write,
                                          self.savepoint, self.back, self.others_write, self.close, self.current_of, self.refused],
                                         [8, 8, 24, 20, 8, 3, 3, 3, 3, 2, 2, 1])[0]()
            if answer and self.failed(answer):
                if not self.savepoints or self.random.random() < 0.2:
                    break
                self.rollback_to()
        end = self.random.choice(["COMMIT", "COMMIT", "ROLLBACK", "COMMIT AND CHAIN"])
        answer = self.sql(end)
        if end == "COMMIT AND CHAIN" and not self.failed(answer):
            self.sql("COMMIT")
        self.held = self.cursors + self.held
        for _ in range(2):
            self.hold_at_once()
        for name in self.held:
            # Those that are gone fail alike.
            for _ in range(2):
                self.move(name)
        if self.random.random() < 0.5:
            self.sql("CLOSE ALL")
            self.held = []
        self.sql("RESET ALL")
        self.sql("SET search_path = {schema}; RESET ROLE")

    def open_cursor(self):
        self.serial += 1
        name = f"c{self.serial}"
        self.cursors.append(name)
        return self.sql(f"DECLARE {name} {self.random.choice(CURSORS)} FOR {self.random.choice(self.queries)}")

    def hold_at_once(self):
        """Outside of a block: alone in its message, or with others that come before the commit."""
        self.serial += 1
        name = f"h{self.serial}"
        declare = f"DECLARE {name} {self.random.choice(['', 'NO SCROLL ', 'SCROLL '])}CURSOR WITH HOLD FOR {self.random.choice(self.queries)}"
        others = [f"FETCH 2 FROM {name}", f"UPDATE {{schema}}.t SET v = 'held' WHERE CURRENT OF {name}"]
        together = self.random.choice([1, 1, 2, 3])
        statements = [declare, *others][:together]

        def act(client, schema):
            texts = [text.replace("{schema}", schema) for text in statements]
            if bound:
                for text in texts:
                    client.parse(text).bind().execute()
                return client.sync()
            return client.query("; ".join(texts))

        bound = self.random.random() < 0.5
        if not self.failed(self.both(f"{'bound ' if bound else ''}{'; '.join(statements)}", act)):
            self.held.insert(0, name)
        self.sql(others[1].replace("v = 'held'", "v = 'after'"))

    def open_portal(self):
        self.serial += 1
        name = f"p{self.serial}" if self.random.random() < 0.8 else ""
        query, binary = self.random.choice(self.queries), int(self.random.random() < 0.2)
        limit = self.random.choice([None, 0, 1, 2, 3, 4, 9, 40, 100])
        self.has_read |= limit is not None

        def act(client, _):
            client.parse(query).bind(portal=name, result_format=binary).describe(name)
            return (client if limit is None else client.execute(name, limit)).sync()

        if name:
            self.portals.append(name)
        return self.both(f"portal {name!r} {limit} {binary} {query}", act)

    def move(self, name):
        self.has_read = True
        n = self.random.choice([1, 2, 3, 5, 9, 40])
        direction = self.random.choice(FETCHES if self.random.random() < 0.4 else FORWARD).format(n=n)
        word = "MOVE" if self.random.random() < 0.1 else "FETCH"
        return self.sql(f"{word} {direction} FROM {name}")

    def fetch(self):
        if not self.cursors:
            return self.open_cursor()
        return self.move(self.random.choice(self.cursors))

    def execute(self):
        if not self.portals:
            return self.open_portal()
        self.has_read = True
        name, limit = self.random.choice(self.portals), self.random.choice([0, 1, 1, 2, 3, 5, 12, 40])
        if self.random.random() < 0.1:
            return self.move(name)
        return self.both(f"execute {name} {limit}", lambda client, _: client.execute(name, limit).sync())

    def set(self):
        """Whether a change after the first row of an open portal shows is up to its plan. A savepoint takes a change back."""
        if self.has_read or self.savepoints:
            return None
        return self.sql(f"SET {self.random.choice(['LOCAL ', ''])}{self.random.choice(SETTINGS)}")

    def write(self):
        self.written = True
        return self.sql(self.random.choice(WRITES).replace("{id}", str(self.random.randint(1, 12))))

    def savepoint(self):
        self.serial += 1
        self.savepoints.append(f"s{self.serial}")
        return self.sql(f"SAVEPOINT s{self.serial}")

    def rollback_to(self):
        place = self.random.randrange(len(self.savepoints))
        del self.savepoints[place + 1:]
        return self.sql(f"ROLLBACK TO {self.savepoints[place]}")

    def back(self):
        return self.rollback_to() if self.savepoints else None

    def others_write(self):
        if not self.written:
            write = self.random.choice(WRITES).replace("{id}", str(self.random.randint(1, 12)))
            self.steps.append(f"other: {write}")
            for schema in self.schemas:
                self.other.execute(write.replace("{schema}", schema))

    def close(self):
        if self.cursors:
            return self.sql(f"CLOSE {self.cursors.pop(self.random.randrange(len(self.cursors)))}")

    def current_of(self):
        if self.cursors:
            self.written = True
            return self.sql(f"UPDATE {{schema}}.t SET v = 'current' WHERE CURRENT OF {self.random.choice(self.cursors)}")

    def refused(self):
        """While a query reads a table, the server refuses to change it in the same session."""
        self.written = True
        return self.sql(self.random.choice(["TRUNCATE {schema}.u", "ALTER TABLE {schema}.t ADD z int", "DROP TABLE {schema}.parts_1"]))
