#!/usr/bin/env python3
"""Which share of the statements of real tools is answered from the cache?

    bench/coverage.py FOLDER [--write docs/coverage.md] [--rest FILE] [--conf NAME=VALUE]… [--variable NAME=VALUE]…

FOLDER holds corpora: NAME.schema.sql creates the tables of one, with some rows, and NAME.queries.sql holds its statements. Comments in
the latter say where they come from (`-- source: TEXT`), and with which others they are summed up (`-- kind: dashboards`). Macros and variables of Grafana are expanded (grafana.py), and parameters such
as $1 get a value of their type. Every SELECT is put to arrow_cache.why() and executed twice on a private server. What fails is counted
apart, since the cache has no part in it. `--rest` writes each statement that was no hit, with the reason.
"""

import argparse
import collections
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import grafana
import plans
import statements
from program import ROOT, private, progress
from session import Session, digest

CONF = {"pg_arrow_cache.min_execution_time": "0", "timezone": "'UTC'", "statement_timeout": "60s", "shared_buffers": "256MB"}

# What stands for a parameter of a type; a parameter of another type is NULL.
VALUES = {
    **dict.fromkeys(["smallint", "integer", "bigint", "numeric", "real", "double precision", "oid"], "1"),
    **dict.fromkeys(["text", "character varying", "character", "name", "bytea"], "'a'"),
    **dict.fromkeys(["timestamp with time zone", "timestamp without time zone", "date"], "'2024-03-01'"),
    **dict.fromkeys(["json", "jsonb"], "'{}'"),
    "boolean": "true", "uuid": "'00000000-0000-0000-0000-000000000001'", "interval": "'1 day'", "inet": "'127.0.0.1'",
}

BEGIN, END = "<!-- made by bench/coverage.py -->", "<!-- end -->"


# A plan that names a relation of this schema reads no table of users.
CATALOGS = "pg_catalog", "information_schema"


@dataclass
class Corpus:
    name: str
    source: str
    kind: str = ""
    selects: int = 0
    cacheable: int = 0
    hits: int = 0
    # SELECTs that read tables of users. No answer of a cache could be of use to others.
    over_tables: int = 0
    no_select: int = 0
    reasons: collections.Counter = field(default_factory=collections.Counter)
    failed: list = field(default_factory=list)
    schema_errors: list = field(default_factory=list)
    rest: list = field(default_factory=list)
    wrong: list = field(default_factory=list)


# What has another value in each statement, when it stands in a column.
OWN_TIME = re.compile(r"\b(statement|clock)_timestamp\b|\btimeofday\b", re.I)


def literal(text):
    return "'" + text.replace("'", "''") + "'"


class Database:
    """One corpus on the server."""

    def __init__(self, server, number, schema):
        name = f"corpus_{number}"
        server.psql(f"CREATE DATABASE {name}")
        server.psql("CREATE EXTENSION pg_arrow_cache", name)
        self.schema_errors, search_path = self._create(server, name, schema)
        server.psql("VACUUM ANALYZE", name)
        self.session = Session(server.dsn(name))
        # pg_dump leaves none, and names everything with its schema.
        if search_path not in ("", '""'):
            self.session.execute(f"SET search_path = {search_path}")

    @staticmethod
    def _create(server, name, schema):
        """Goes on after an error, which is counted: a table without an extension's type is missing, and others are there.
        Returns the errors, and the search_path that the file has set."""
        done = subprocess.run(server.client("psql", "-X", "-q", "-A", "-t", "-d", name, "-f", "-"), text=True, capture_output=True,
                              input=schema + "\n;SHOW search_path", env=server.environment())
        errors = [error.partition("ERROR:")[2].strip() for error in done.stderr.splitlines() if "ERROR:" in error]
        return errors, (done.stdout.splitlines() or [""])[-1].strip()

    def setting(self, statement):
        """Of what is no SELECT only settings are executed: others depend on them."""
        if re.match(r"set\b", statements.bare(statement), re.I):
            self.session.execute(statement)

    def filled_in(self, statement):
        """Without parameters."""
        if not statements.parameters(statement):
            return statement
        self.session.execute(f"PREPARE coverage AS {statement}")
        try:
            types = self.session.execute("SELECT unnest(parameter_types)::text FROM pg_prepared_statements WHERE name = 'coverage'")
            names = [types.get_value(row, 0).decode() for row in range(types.ntuples)]
        finally:
            self.session.execute("DEALLOCATE coverage")
        values = [f"{VALUES.get(name, literal('{}') if name.endswith('[]') else 'NULL')}::{name}" for name in names]
        return statements.with_values(statement, values)

    def why(self, statement):
        """(may it be cached?, reason, detail)"""
        result = self.session.execute(f"SELECT cacheable, reason, detail FROM arrow_cache.why({literal(statement)})")
        cacheable, reason, detail = [(result.get_value(0, column) or b"").decode() for column in range(3)]
        return cacheable == "t", reason, detail

    def reads_tables(self, statement):
        """Does its plan name a table of users?"""
        plan = self.session.execute(f"EXPLAIN (VERBOSE, FORMAT JSON, COSTS OFF) {statement}").get_value(0, 0).decode()
        return any(schema not in CATALOGS for schema in plans.schemas_read(json.loads(plan)))

    def status(self):
        result = self.session.execute("SELECT arrow_cache.last_status(), arrow_cache.last_reason()")
        return [(result.get_value(0, column) or b"").decode() for column in range(2)]


def judge(corpus, database, statement):
    """Runs a SELECT twice in one transaction, which has one `now()`, and counts what became of it."""
    database.session.execute("BEGIN")
    try:
        judge_in_transaction(corpus, database, statement)
    finally:
        database.session.execute("ROLLBACK")


def judge_in_transaction(corpus, database, statement):
    # What PostgreSQL refuses is no matter of the cache, so it is executed before anything is asked about it.
    try:
        statement = database.filled_in(statement)
        first = digest(database.session.execute(statement))
    except RuntimeError as error:
        corpus.failed.append((str(error).splitlines()[0], statement))
        return
    corpus.selects += 1
    try:
        cacheable, reason, detail = database.why(statement)
        second = digest(database.session.execute(statement))
        status, last_reason = database.status()
    except RuntimeError as error:
        corpus.wrong.append((f"why() or the second execution failed: {str(error).splitlines()[0]}", statement))
        return
    corpus.cacheable += cacheable
    corpus.hits += status == "HIT"
    corpus.over_tables += status == "HIT" or database.reads_tables(statement)
    if status == "HIT":
        if not cacheable:
            corpus.wrong.append((f"a hit, but why() says {reason}", statement))
        if first != second and not OWN_TIME.search(statement):
            corpus.wrong.append(("a hit with other values than the first execution", statement))
        return
    reason = last_reason if cacheable else reason
    corpus.reasons[reason or status] += 1
    corpus.rest.append((reason or status, detail, statement))


def run(server, number, schema, queries, variables):
    text = queries.read_text()
    said = dict(re.findall(r"^-- (source|kind): (.*)$", text, re.M))
    corpus = Corpus(schema.name.removesuffix(".schema.sql"), said.get("source", "").strip(), said.get("kind", "").strip())
    progress(f"{corpus.name}")
    database = Database(server, number, schema.read_text())
    corpus.schema_errors = database.schema_errors
    for statement in statements.split(grafana.expand(text, variables)):
        if statements.is_select(statement):
            judge(corpus, database, statement)
        else:
            corpus.no_select += 1
            database.setting(statement)
    database.session.close()
    return corpus


def share(part, whole):
    return f"{part} ({100 * part / whole:.0f} %)" if whole else "0"


def table(corpora):
    lines = ["| corpus | statements | SELECTs that ran | cacheable | hit at the second run | of those over tables | reasons of the rest | not run |",
             "|---|---|---|---|---|---|---|---|"]
    for corpus in corpora:
        reasons = ", ".join(f"`{reason}` {count}" for reason, count in corpus.reasons.most_common())
        apart = [f"{corpus.no_select} no SELECT"] * bool(corpus.no_select) + [f"{len(corpus.failed)} failed"] * bool(corpus.failed)
        lines.append(f"| {corpus.name} | {corpus.selects + corpus.no_select + len(corpus.failed)} | {figures([corpus])} | "
                     f"{reasons} | {', '.join(apart)} |")
    for kind in dict.fromkeys(corpus.kind for corpus in corpora if corpus.kind):
        lines.append(f"| all {kind} | | {figures([corpus for corpus in corpora if corpus.kind == kind])} | | |")
    lines.append(f"| all | | {figures(corpora)} | | |")
    return "\n".join(lines)


def figures(corpora):
    """The cells that can be summed up."""
    selects, cacheable, hits, over_tables = [sum(getattr(corpus, name) for corpus in corpora)
                                             for name in ("selects", "cacheable", "hits", "over_tables")]
    return f"{selects} | {share(cacheable, selects)} | {share(hits, selects)} | {share(hits, over_tables)}"


def sources(corpora):
    return "\n".join(f"* {corpus.name}: {corpus.source}" for corpus in corpora if corpus.source)


def write_between_marks(file, text):
    """What people have written around the table stays."""
    before, _, rest = file.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    if not rest or END not in rest:
        sys.exit(f"coverage: {file} has no lines {BEGIN} and {END}")
    file.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def troubles(corpora):
    """What stood in the way of running, as counts of messages."""
    lines = []
    for corpus in corpora:
        counts = collections.Counter([f"schema: {error}" for error in corpus.schema_errors] + [error for error, _ in corpus.failed])
        lines += [f"{corpus.name}: {count} × {error}" for error, count in counts.most_common()]
    return "\n".join(lines)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", type=Path, metavar="FILE", help="replaces the table in this file")
    parser.add_argument("--rest", type=Path, metavar="FILE", help="writes each statement that was no hit to this file")
    parser.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of the server")
    parser.add_argument("--variable", action="append", default=[], metavar="NAME=VALUE", help="a variable of Grafana")
    given = parser.parse_args()
    given.conf, given.variable = [dict(word.split("=", 1) for word in words) for words in (given.conf, given.variable)]
    schemas = sorted(given.folder.glob("*.schema.sql"))
    given.corpora = [(schema, schema.with_name(schema.name.replace(".schema.sql", ".queries.sql"))) for schema in schemas]
    missing = [str(queries) for _, queries in given.corpora if not queries.exists()]
    if not schemas or missing:
        parser.error(f"{given.folder} holds no NAME.schema.sql" if not schemas else f"missing: {' '.join(missing)}")
    return given


def main():
    given = arguments()
    private.exit_on_sigterm()
    with private.Cluster(ROOT / "target" / "coverage", conf={**CONF, **given.conf}) as server:
        corpora = [run(server, number, *files, given.variable) for number, files in enumerate(given.corpora)]
    print(table(corpora))
    print("\n" + troubles(corpora))
    if given.write:
        write_between_marks(given.write, table(corpora) + "\n\nWhere the statements come from:\n\n" + sources(corpora))
    if given.rest:
        given.rest.write_text("".join(f"-- {corpus.name}: {reason}: {detail}\n{statement};\n\n"
                                      for corpus in corpora for reason, detail, statement in corpus.rest) +
                              "".join(f"-- {corpus.name}: failed: {error}\n{statement};\n\n"
                                      for corpus in corpora for error, statement in corpus.failed))
    wrong = [f"{corpus.name}: {what}\n{statement}" for corpus in corpora for what, statement in corpus.wrong]
    if wrong:
        sys.exit("coverage: the cache contradicts itself:\n" + "\n".join(wrong))


if __name__ == "__main__":
    main()
