"""The databases of the old cluster, the questions that are asked there, and how the cache must answer them."""

from pathlib import Path

HERE = Path(__file__).resolve().parent
# The extension, and only policies that it has left behind.
PRESENT, BARE = 'shop "2026"', "labels"
ALL = [PRESENT, BARE]

# All of them are cached; the last one only because of its policy.
QUESTIONS = [
    'SELECT "a.b ""c""", sum("Net €") FROM "Odd Schema"."Sales ""2026""" GROUP BY 1 ORDER BY 1',
    "SELECT count(*), max(note) FROM parted",
    "SELECT a FROM feed",
]
SALES, FEED = QUESTIONS[0], QUESTIONS[2]
# These are not, for their policies.
REFUSED = [
    'SELECT count(*) FROM "Parted; never"',
    "SELECT sum(a) FROM half",
    'SELECT sum(a) FROM "over plain"',
    "SELECT total FROM stored",
    'SELECT a FROM "Odd Schema"."its own"',
]
POLICIES = [
    ("FOREIGN TABLE", "feed", "trusted"),
    ("TABLE", '"Parted; never"', "never"),
    ("TABLE", "half_2", "never"),
    ("VIEW", '"over plain"', "never"),
    ("MATERIALIZED VIEW", "stored", "never"),
]
OWNER, OWN = '"Odd ""role"""', ("TABLE", '"Odd Schema"."its own"', "never")

ROLES = f"CREATE ROLE dba LOGIN; CREATE ROLE {OWNER} LOGIN;"
SETTINGS = f"""
    ALTER ROLE {OWNER} SET pg_arrow_cache.populate = off;
    ALTER ROLE dba SET pg_arrow_cache.log_decisions = miss;
    ALTER DATABASE "{PRESENT.replace('"', '""')}" SET pg_arrow_cache.ttl = '10min';
    ALTER ROLE dba IN DATABASE {BARE} SET pg_arrow_cache.min_runs = 3;
    GRANT SET ON PARAMETER pg_arrow_cache.log_decisions TO dba;
    ALTER SYSTEM SET pg_arrow_cache.max_entry_size = '2MB';
    SELECT pg_reload_conf();
"""
# What roles may do is what the DBA has decided in uses.sql.
RIGHTS = [
    ("dba", "SELECT arrow_cache.flush()", True),
    ("dba", "SELECT arrow_cache.invalidate('parted')", True),
    ("dba", "SELECT arrow_cache.reset_stats()", False),
    ("dba", "SELECT count(*) FROM arrow_cache.bypass_reasons", True),
    ("dba", "SELECT * FROM arrow_cache.why('SELECT 1')", False),
    (OWNER, "SELECT arrow_cache.flush()", False),
    (OWNER, "SELECT count(*) FROM arrow_cache.bypass_reasons", False),
    (OWNER, "SELECT count(*) FROM arrow_cache.stats", True),
    (OWNER, """SELECT arrow_cache.set_policy('"Odd Schema"."its own"', 'never')""", True),
    ("dba", """SELECT arrow_cache.set_policy('"Odd Schema"."its own"', 'default')""", False),
]


def feed(server, database):
    """The file of the foreign table. It is in the old cluster's directory."""
    return server.base / f"feed of {ALL.index(database)}"


def make(old):
    """All databases, in a server that runs."""
    old.psql(ROLES)
    for database in ALL:
        old.psql(f"""CREATE DATABASE "{database.replace('"', '""')}\"""")
        old.psql(f"\\set file '{feed(old, database)}'\n" + (HERE / "tables.sql").read_text(), database)
    old.psql("CREATE EXTENSION pg_arrow_cache", PRESENT)
    old.psql((HERE / "uses.sql").read_text(), PRESENT)
    for _, relation, policy in POLICIES:
        old.psql(f"SELECT arrow_cache.set_policy('{relation}', '{policy}')", PRESENT)
    old.psql(f"SET ROLE {OWNER}; SELECT arrow_cache.set_policy('{OWN[1]}', '{OWN[2]}')", PRESENT)
    for kind, relation, policy in [*POLICIES, OWN]:
        old.psql(f"SECURITY LABEL FOR pg_arrow_cache ON {kind} {relation} IS '{policy}'", BARE)
    old.psql(SETTINGS)


def make_bare(old):
    """A cluster in which no database has the extension, and one has a policy."""
    old.psql(f"CREATE DATABASE {BARE}")
    old.psql("CREATE TABLE kept (a int); INSERT INTO kept VALUES (5); SECURITY LABEL FOR pg_arrow_cache ON TABLE kept IS 'never'", BARE)


def ask(server, database, question):
    """(answer, status). Without the extension, where no function tells the status, it is what EXPLAIN shows to be coming next."""
    status = "SELECT concat_ws(' ', arrow_cache.last_status(), arrow_cache.last_reason())"
    if database == BARE:
        status = f"EXPLAIN (COSTS OFF) {question}"
    answer, told = server.psql(f"{question};\n\\echo ----\n{status};", database).split("----\n")
    if database == BARE:
        told = "HIT" if "Custom Scan (ArrowCache)" in told else "no hit"
    return answer.strip(), told


def uncached(server):
    """The answers of plain PostgreSQL, by database and question."""
    return {(database, question): server.psql(f"SET pg_arrow_cache.enabled = off; {question}", database)
            for database in ALL for question in QUESTIONS + REFUSED}


def write(server, old, database, content):
    """Changes the file of the foreign table, without the server's notice."""
    server.psql(f"COPY (SELECT {content}) TO '{feed(old, database)}'", database)


def hits(checks, old):
    """Answers are stored and served in the old cluster. Then the data changes, so that an answer from then would be wrong."""
    for database in ALL:
        for question in QUESTIONS:
            first, second = ask(old, database, question), ask(old, database, question)
            if database != BARE:
                checks.same(first[1], "MISS", f"old cluster: {database}: {question}: stored")
            checks.same(second, (first[0], "HIT"), f"old cluster: {database}: {question}: served")
        old.psql('UPDATE "Odd Schema"."Sales ""2026""" SET "Net €" = "Net €" + 1; INSERT INTO parted VALUES (1, \'zz\')', database)
        write(old, old, database, 2)
        checks.same(ask(old, database, FEED), ("1", "HIT"), f"old cluster: {database}: a trusted foreign table is answered from the cache")


def work(checks, server, old, answers, what, databases=(*ALL,)):
    """Everything works, with nothing in the cache before."""
    now = uncached(server)
    for database in databases:
        for question in QUESTIONS:
            right = answers[database, question]
            checks.same(now[database, question], right, f"{what}: {database}: {question}: without the cache")
            first = ask(server, database, question)
            checks.same(first, (right, first[1] if database == BARE else "MISS"), f"{what}: {database}: {question}: executed")
            checks.same(ask(server, database, question), (right, "HIT"), f"{what}: {database}: {question}: served")
        for question in REFUSED:
            ask(server, database, question)
            expected = (answers[database, question], "no hit" if database == BARE else "BYPASS policy_never")
            checks.same(ask(server, database, question), expected, f"{what}: {database}: {question}: its policy counts")
        if database != BARE:
            trigger(checks, server, old, database, what)
            uses(checks, server, database, what)


def trigger(checks, server, old, database, what):
    """A write to the noted table invalidates the relations that the trigger names, and nothing else does."""
    write(server, old, database, 3)
    checks.same(ask(server, database, FEED), ("2", "HIT"), f"{what}: {database}: the policy trusted counts")
    server.psql("INSERT INTO noted VALUES (1)", database)
    checks.same(ask(server, database, FEED), ("3", "STALE"), f"{what}: {database}: the trigger invalidates the foreign table")
    checks.same(ask(server, database, SALES)[1], "STALE", f"{what}: {database}: and the table with the odd name")
    checks.same(ask(server, database, FEED), ("3", "HIT"), f"{what}: {database}: the new answer is served")
    # As it was, for the next upgrade.
    write(server, old, database, 2)
    server.psql("UPDATE noted SET a = 2", database)
    checks.same(ask(server, database, FEED), ("2", "STALE"), f"{what}: {database}: the trigger fires on UPDATE")


def uses(checks, server, database, what):
    """Objects of users, and rights."""
    checks.same(server.psql("SELECT count(*) FROM plain; SELECT hits > 0, entries > 0, status FROM my_stats; SELECT my_flush() > 0", database),
                "2\nt|t|MISS\nt",
                f"{what}: {database}: a user's view and function")
    for role, statement, allowed in RIGHTS:
        try:
            server.psql(f"SET ROLE {role}; {statement}", database)
            result = True
        except RuntimeError as error:
            result = False if "permission denied" in str(error) or "must be owner" in str(error) else error
        checks.same(result, allowed, f"{what}: {database}: {role}: {statement}")
    if database == PRESENT:
        checks.same(server.psql("SHOW pg_arrow_cache.ttl", database), "10min", f"{what}: {database}: the setting of the database")
