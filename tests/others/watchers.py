"""Libraries that watch statements. What they see with the cache is compared with what they see without it."""

import re

from server import Failed, Session, dataset, expect, shown
from statements import QUERIES, SCRIPTS, of_demo

# Name of a step, what is set for it, and whether the data are changed before it.
STEPS = [
    ("a miss", {}, False), ("a hit", {}, False), ("a second hit", {}, False), ("outdated", {}, True),
    ("compared", {"pg_arrow_cache.verify_sample_rate": "1"}, False),
    ("a stale hit", {"pg_arrow_cache.max_stale": "60000"}, True),
]


def every_statement():
    return [*QUERIES, *SCRIPTS, *of_demo(dataset.queries())]


def same(seen, expected, step):
    return None if seen == expected else f"{step}: sees {seen}\n# instead of {expected}"


class Comparison:
    """Runs statements with the cache off, and then in each step. `observe(session, mark, action)` returns what the
    library has seen of an action that runs a statement with the mark. `agree(seen, expected, step)` tells what is
    wrong, or nothing."""

    def __init__(self, server, observe, agree=None, settings=None, sees_all=True):
        """`sees_all`: the library sees something of each statement without the cache."""
        self.server, self.observe, self.settings, self.sees_all = server, observe, settings or {}, sees_all
        self.agree = agree or same

    def run(self, statements):
        """Yields (name, what is wrong or nothing) for each statement and protocol."""
        for statement in statements:
            for mode in statement.modes:
                try:
                    yield f"{statement.name}, {mode}", self.of_statement(statement, mode)
                except Failed as failure:
                    yield f"{statement.name}, {mode}", str(failure)

    def of_statement(self, statement, mode):
        with Session(self.server, self.settings) as session:
            session.execute("SELECT arrow_cache.flush()")
            session.execute("SET pg_arrow_cache.enabled = off")
            rows, expected = self.seen(session, statement, mode)
            expect(expected or not self.sees_all, "sees nothing without the cache")
            session.execute("RESET pg_arrow_cache.enabled")
            for step, settings, is_changed in STEPS:
                if is_changed:
                    # By another session: one's own commits are seen whatever is accepted.
                    self.server.cluster.psql(statement.change)
                for name, value in settings.items():
                    session.execute(f"SET {name} = {value}")
                given, seen = self.seen(session, statement, mode)
                for name in settings:
                    session.execute(f"RESET {name}")
                expect(given == rows or not statement.is_constant, f"{step}: other rows")
                if problem := self.agree(seen, expected, step):
                    return problem
        return None

    def seen(self, session, statement, mode):
        mark, rows = self.server.mark(), []
        found = self.observe(session, mark, lambda: rows.append(session.run(statement, mode, mark)))
        return rows[0], found


def counted(server):
    """Checks that the ways that the comparison is about were taken."""
    with server.connect() as session:
        for counter in ("hits", "stale_hits", "fragment_runs", "verify_checks"):
            count = session.execute(f"SELECT {counter} FROM arrow_cache.stats").fetchone()[0]
            yield f"there were {counter}", None if count >= 10 else f"{count} only"
        count = session.execute("SELECT verify_mismatches FROM arrow_cache.stats").fetchone()[0]
        yield "all compared hits agreed", None if count == 0 else f"{count} did not"
        count = session.execute("SELECT count(*) FROM arrow_cache.check()").fetchone()[0]
        yield "check() finds nothing", None if count == 0 else f"{count} rows"


def notices(pattern):
    """Observes what the library sends to the client: the messages that match, without the mark."""
    def observe(session, mark, action):
        session.notices.clear()
        action()
        # The first number counts the statements of the session.
        return [re.sub(r"^(AUDIT: \w+,)\d+,", r"\1", message.replace(mark, "")) for message in session.notices
                if re.match(pattern, message) and mark in message]
    return observe


AUDIT_TO_CLIENT = {"pgaudit.log_client": "on", "pgaudit.log_level": "notice"}
AUDITS = {
    "session and object": {"pgaudit.log": "'all'", "pgaudit.log_relation": "on", "pgaudit.log_rows": "on",
                           "pgaudit.log_parameter": "on", "pgaudit.role": "auditor"},
    "object alone": {"pgaudit.log": "'none'", "pgaudit.role": "auditor"},
    "one record for each statement": {"pgaudit.log": "'read, write'"},
}


def pgaudit(server):
    server.cluster.psql("""
        CREATE EXTENSION IF NOT EXISTS pgaudit;
        DO $$ BEGIN IF to_regrole('auditor') IS NULL THEN CREATE ROLE auditor; END IF; END $$;
        GRANT SELECT ON readings, pay, kinds, of_pay, sales TO auditor; GRANT SELECT (v) ON indexed TO auditor""")
    for audit, settings in AUDITS.items():
        comparison = Comparison(server, notices("AUDIT: "), same_records, {**AUDIT_TO_CLIENT, **settings})
        statements = every_statement() if audit == "session and object" else [*QUERIES, *SCRIPTS]
        for name, problem in comparison.run(statements):
            yield f"{audit}: {name}", problem
    yield "the records of a miss and a hit are those of docs/neighbours.md", documented(server)
    yield "what a function reads is audited when it is executed", functions_read(server)
    yield from counted(server)


def documented(server):
    settings = {**AUDIT_TO_CLIENT, "pgaudit.log": "'read'", "pgaudit.log_relation": "on", "pgaudit.log_rows": "on"}
    with Session(server) as session:
        session.execute("SELECT arrow_cache.flush()")
    with Session(server, settings) as session:
        for _ in range(2):
            session.execute("SELECT count(*) FROM readings WHERE v > 7").fetchall()
        records = list(session.notices)
        expect(session.value("SELECT arrow_cache.last_status()") == "HIT", "no hit")
    return same(records, shown("AUDIT: "), "shown")


def functions_read(server):
    """A hit executes no function, so there is no record of what that reads."""
    server.cluster.psql("""
        CREATE TABLE IF NOT EXISTS secrets (secret text); TRUNCATE secrets; INSERT INTO secrets VALUES ('s');
        CREATE OR REPLACE FUNCTION newest() RETURNS text STABLE LANGUAGE plpgsql SET search_path = public AS
        $$ BEGIN RETURN (SELECT max(secret) FROM secrets); END $$;
        SECURITY LABEL FOR pg_arrow_cache ON FUNCTION newest() IS 'pure'""")
    settings = {**AUDIT_TO_CLIENT, "pgaudit.log": "'read, function'", "pgaudit.log_relation": "on"}
    with Session(server, settings) as session:
        session.execute("SELECT arrow_cache.flush()")
        tables = []
        for enabled in ("off", "on", "on"):
            session.execute(f"SET pg_arrow_cache.enabled = {enabled}")
            # PL/pgSQL's plans from before the cache was asked are no ground for an answer.
            session.execute("DISCARD PLANS")
            session.notices.clear()
            session.execute("SELECT newest(), name FROM kinds").fetchall()
            tables.append([message.split(",")[6] for message in session.notices])
        expect(session.value("SELECT arrow_cache.last_status()") == "HIT", "no hit")
        # Its rights are asked for at each hit.
        server.cluster.psql("""
            DO $$ BEGIN IF to_regrole('reader') IS NULL THEN CREATE ROLE reader; END IF; END $$;
            GRANT SELECT ON kinds TO reader""")
        session.execute("SET ROLE reader")
        try:
            session.execute("SELECT newest(), name FROM kinds")
            return "a role without the right to the function's table was given an answer"
        except Exception as error:
            if "permission denied for table secrets" not in str(error):
                return str(error)
    names = [sorted(set(audited)) for audited in tables]
    wanted = [["public.kinds", "public.newest", "public.secrets"]] * 2 + [["public.kinds"]]
    is_same = names == wanted and tables[0] == tables[1] and len(tables[2]) == 1
    return None if is_same else f"audited {tables} instead of {wanted}"


def same_records(seen, expected, step):
    """The same records, in their order. Those of relations that need no rights (the class is then unknown) are of the
    leaves that the plan has: a combined plan has none that hold no row of the answer."""
    def known(records):
        return [record for record in records if ",MISC,???," not in record]
    unknown = [record for record in seen if ",MISC,???," in record]
    if known(seen) != known(expected):
        return f"{step}: sees {seen}\n# instead of {expected}"
    if len(set(unknown)) != len(unknown) or not set(unknown) <= set(expected):
        return f"{step}: sees {unknown}\n# instead of some of {expected}"
    return None


def pgauditlogtofile(server):
    """The same records lie in the file."""
    server.cluster.psql("CREATE EXTENSION IF NOT EXISTS pgaudit; CREATE EXTENSION IF NOT EXISTS pgauditlogtofile")
    folder = server.cluster.data / "log"

    def observe(session, mark, action):
        action()
        text = "".join(file.read_text(errors="replace") for file in sorted(folder.glob("audit-*.log")))
        lines = [line.replace(mark, "") for line in text.splitlines() if mark in line]
        return [re.sub(r".*?,(SESSION|OBJECT),\d+,", r"\1,", line) for line in lines]
    settings = {"pgaudit.log": "'read'", "pgaudit.log_relation": "on", "pgaudit.log_rows": "on"}
    yield from Comparison(server, observe, settings=settings).run(QUERIES)


def auto_explain(server):
    settings = {"auto_explain.log_min_duration": "0", "auto_explain.log_level": "notice",
                "auto_explain.log_nested_statements": "on", "auto_explain.log_analyze": "on",
                "auto_explain.log_timing": "off", "auto_explain.log_verbose": "on"}
    observe = notices("duration: ")

    def texts(session, mark, action):
        """The plans are others; each statement is there, with its rows."""
        return [re.sub(r"\s+", " ", re.search(r"Query Text: (.*?)\n(?=\S)", message, re.DOTALL)[1]) +
                re.search(r"rows=\d+(?= loops)", message)[0] for message in observe(session, mark, action)]
    yield from Comparison(server, texts, settings=settings).run(every_statement())
    yield from counted(server)


def reading(sql):
    """Observes what the rows of `sql`, whose parameter is a pattern that finds the mark, are on another session."""
    def observe(session, mark, action):
        with session.server.connect(options="-c pg_arrow_cache.enabled=off") as other:
            other.execute("SELECT pg_stat_statements_reset()")
            action()
            rows = other.execute(sql, {"mark": f"%{mark}%"}).fetchall()
            return [(text.replace(mark, ""), *numbers) for text, *numbers in rows]
    return observe


def pg_stat_statements(server):
    server.cluster.psql("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    sql = "SELECT query, toplevel, calls, rows FROM pg_stat_statements WHERE query LIKE %(mark)s ORDER BY 1, 2"
    for track in ("all", "top"):
        settings = {"pg_stat_statements.track": f"'{track}'", "pg_stat_statements.track_planning": "on"}
        comparison = Comparison(server, reading(sql), settings=settings)
        for name, problem in comparison.run(every_statement() if track == "all" else QUERIES):
            yield f"track = {track}: {name}", problem
    yield from counted(server)


def pg_stat_kcache(server):
    """It counts no calls; each statement that the executor runs has its row, at its level."""
    server.cluster.psql("CREATE EXTENSION pg_stat_statements; CREATE EXTENSION pg_stat_kcache")
    sql = """SELECT s.query, k.top, s.calls, k.exec_user_time >= 0 AND k.exec_minflts >= 0 FROM pg_stat_kcache() AS k
             JOIN pg_stat_statements AS s
               ON (s.queryid, s.userid, s.dbid, s.toplevel) = (k.queryid, k.userid, k.dbid, k.top)
             WHERE s.query LIKE %(mark)s ORDER BY 1, 2"""
    settings = {"pg_stat_statements.track": "'all'", "pg_stat_kcache.track": "'all'"}
    yield from Comparison(server, reading(sql), settings=settings).run(QUERIES)
    yield from Comparison(server, reading(sql), settings=settings, sees_all=False).run(SCRIPTS)


def pg_qualstats(server):
    """Predicates are counted as they are executed: as without the cache by a miss, and by a hit none."""
    server.cluster.psql("CREATE EXTENSION pg_stat_statements; CREATE EXTENSION pg_qualstats")
    sql = """SELECT s.query, q.lrelid::regclass::text, a.attname, q.opno::regoperator::text, q.eval_type,
                    sum(q.occurences)
             FROM pg_qualstats() AS q JOIN pg_stat_statements AS s USING (queryid, userid, dbid)
             JOIN pg_attribute AS a ON (a.attrelid, a.attnum) = (q.lrelid, q.lattnum)
             WHERE s.query LIKE %(mark)s GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5"""
    read = reading(sql)

    def observe(session, mark, action):
        with session.server.connect() as other:
            other.execute("SELECT pg_qualstats_reset()")
        return read(session, mark, action)

    def agree(seen, expected, step):
        if step in ("a hit", "a second hit") and seen:
            return f"{step}: sees {seen}"
        new = [row for row in seen if row not in expected]
        return f"{step}: sees {new}, not among {expected}" if new else None
    settings = {"pg_qualstats.sample_rate": "1", "pg_stat_statements.track": "'all'"}
    yield from Comparison(server, observe, agree, settings).run(QUERIES)

    def executed(seen, expected, step):
        return same(seen, expected, step) if step == "a miss" else None
    for name, problem in Comparison(server, observe, executed, settings).run(QUERIES[:2]):
        yield f"executed: {name}", problem
