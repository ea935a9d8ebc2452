"""Random statements in two sessions with the cache and in one without, while random changes happen between them: the three
answers agree, errors included. What is asked and changed is a `World`, one for each test that uses this."""

import random
from dataclasses import dataclass

import psycopg

from support.placeholders import PLACEHOLDER, SHOW_PLANS

ROLES = ("regress_cache_random_1", "regress_cache_random_2")


@dataclass
class World:
    """The parts of a run. Texts may name {role1}, {role2}, {schema} and {front}, a schema that can come before it in the
    search path."""

    setup: str
    # {0} and {1} stand for a constant or a parameter, the latter for a text. Rows that may come in any order are compared as a set.
    queries: list
    constants: list
    texts: list
    # What the writer does while no transaction is open; {0} stands for a constant. Each may fail, as when something is there already.
    changes: list
    definitions: list
    # What all sessions do alike.
    settings: list
    # What a transaction of each session writes.
    own_writes: list
    # Of the sessions with the cache, for their start.
    options: str = ""


class Watched:
    """A session that counts how many of its statements got a placeholder."""

    def __init__(self, session):
        self.session, self.placeholders = session, 0
        session.add_notice_handler(self.note)

    def note(self, notice):
        self.placeholders += notice.message_primary == "plan:" and PLACEHOLDER in notice.message_detail

    def run(self, text):
        return shown(self.session.pgconn.exec_(text.encode()))

    def ask(self, way, number, simple, with_parameters, values):
        connection = self.session.pgconn
        if way == "simple":
            return shown(connection.exec_(simple.encode()))
        if way == "string":
            return shown(connection.exec_(f"{simple}; {simple}".encode()))
        if way == "named":
            name = b"s%d" % number
            result = connection.exec_prepared(name, values)
            if result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == b"26000":
                prepared = shown(connection.prepare(name, with_parameters.encode()))
                return shown(connection.exec_prepared(name, values)) if prepared[0] is None else prepared
            return shown(result)
        return shown(connection.exec_params(with_parameters.encode(), values, result_format=int(way == "binary")))


def shown(result):
    """All that a client can see of a result: the error, or the names, types and origins of the columns, and the rows."""
    columns = range(result.nfields)
    return (result.error_field(psycopg.pq.DiagnosticField.SQLSTATE), result.error_field(psycopg.pq.DiagnosticField.MESSAGE_PRIMARY),
            result.command_status,
            [(result.fname(c), result.ftype(c), result.fmod(c), result.ftablecol(c)) for c in columns],
            [[result.get_value(row, c) for c in columns] for row in range(result.ntuples)])


def comparable(answer, query):
    return answer if "ORDER BY" in query else (*answer[:4], sorted(answer[4], key=str))


def literal(text):
    return "'" + text.replace("'", "''") + "'"


class Run:
    """One run in a world, with its own sessions."""

    def __init__(self, connect, world, seed):
        self.world = world
        self.random = random.Random(seed)
        self.writer = connect()
        names = {"schema": connect.schema, "front": f"{connect.schema}_front", "role1": ROLES[0], "role2": ROLES[1]}
        self.names = names
        for role in ROLES:
            self.writer.execute(f"CREATE ROLE {role}")
        self.writer.execute(world.setup.format(**names))
        # Without sequential scans everything seems so expensive that it would be compiled.
        options = f"-c jit=off {world.options}"
        self.cached = [Watched(connect(options, prepare_threshold=None)) for _ in range(2)]
        self.plain = Watched(connect("-c jit=off -c pg_arrow_cache.enabled=off", prepare_threshold=None))
        self.all = [*self.cached, self.plain]
        # One that is in no transaction with them, and stores answers under the latest snapshot.
        self.fresh = Watched(connect(options, prepare_threshold=None))
        for watched in self.all:
            watched.run(SHOW_PLANS)
        self.failures = self.answers = 0

    def everywhere(self, text):
        assert len({watched.run(text)[0] for watched in self.all}) == 1, text

    def change(self, text):
        try:
            self.writer.execute(text)
        except psycopg.Error:
            self.writer.execute("ROLLBACK")

    def write(self, changes):
        self.change(self.random.choice(changes).format(self.random.choice(self.world.constants), **self.names))

    def choice(self):
        """The arguments of `Watched.ask`, and the key under which the answers are compared."""
        number = self.random.randrange(len(self.world.queries))
        query = self.world.queries[number]
        # Some constants come more often than others, so that there is something to be served.
        constants = self.world.constants
        constant = constants[min(self.random.randrange(len(constants)), self.random.randrange(len(constants)))]
        way = self.random.choice(("simple", "simple", "simple", "string", "named", "text", "binary"))
        return query, self.asked(query, way, number, constant)

    def asked(self, query, way, number, constant):
        """The arguments of `Watched.ask` for a query with a constant, and some text."""
        text = self.random.choice(self.world.texts)
        values = [None if constant == "NULL" else constant.encode(), text.encode()]
        simple = query.format(constant, literal(text))
        with_parameters = query.format("$1::int", "$2::text") if "{1}" in query else query.format("$1::int")
        values = values[:2 if "{1}" in query else 1 if "{0}" in query else 0]
        return way, number, simple, with_parameters, values

    def question(self, choice=None):
        query, asked = choice or self.choice()
        answers = [comparable(watched.ask(*asked), query)
                   for watched in self.random.sample(self.all, len(self.all))]
        assert answers[0] == answers[1] == answers[2], asked
        self.failures += answers[0][0] is not None
        self.answers += 1

    def snapshot(self):
        """The three sessions share an old snapshot, while others write and store newer answers."""
        exported = None
        for watched in reversed(self.all):
            watched.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
            if exported:
                assert watched.run(f"SET TRANSACTION SNAPSHOT '{exported}'")[0] is None
            else:
                exported = watched.run("SELECT pg_export_snapshot()")[4][0][0].decode()
        choices = [self.choice() for _ in range(4)]
        for _ in range(self.random.randrange(2, 5)):
            for choice in choices:
                self.question(choice)
                self.fresh.ask(*choice[1])
            self.write([change for change in self.world.changes if "TRUNCATE" not in change and "REFRESH" not in change])
        self.everywhere("ROLLBACK")

    def own_writes(self):
        """Each session has written the same and sees it, whatever was asked before with other constants."""
        choices = [self.choice() for _ in range(3)]
        query, (way, number, *_) = self.choice()
        choices += [(query, self.asked(query, way, number, constant)) for constant in self.world.constants]
        for choice in choices * 2:
            self.question(choice)
        self.everywhere("BEGIN")
        write = self.random.choice(self.world.own_writes).format(**self.names)
        self.everywhere(f"SAVEPOINT s; {write}")
        for choice in choices:
            self.question(choice)
        if self.random.random() < 0.5:
            self.everywhere("ROLLBACK TO s")
        for choice in choices[self.random.randrange(len(choices)):]:
            self.question(choice)
        self.everywhere("ROLLBACK")

    def end(self):
        for watched in (*self.all, self.fresh):
            for text in ("ROLLBACK", "RESET ROLE", "DISCARD TEMP"):
                watched.run(text)

    def step(self):
        kind = self.random.random()
        if kind < 0.90:
            self.question()
        elif kind < 0.94:
            self.write(self.world.changes)
        elif kind < 0.96:
            self.write(self.world.definitions)
        elif kind < 0.98:
            setting = self.random.choice(self.world.settings).format(**self.names)
            self.everywhere(setting)
            self.fresh.run(setting)
        elif kind < 0.985:
            self.snapshot()
        else:
            self.own_writes()

    def steps(self, count):
        """Takes that number of steps. Returns a description of them."""
        try:
            for number in range(count):
                self.step()
        except AssertionError as difference:
            raise AssertionError(f"step {number}") from difference
        finally:
            self.end()
        assert self.plain.placeholders == 0
        return {"answers": self.answers, "errors": self.failures,
                "placeholders": [watched.placeholders for watched in self.all]}


def remove(connect):
    """Removes what a run has made, apart from its empty schema."""
    with connect() as last:
        last.execute("SET client_min_messages = warning; SET lock_timeout = '10s'")
        last.execute(f"DROP SCHEMA IF EXISTS {connect.schema}, {connect.schema}_front CASCADE")
        for role in ROLES:
            last.execute(f"DROP ROLE IF EXISTS {role}")
        last.execute(f"CREATE SCHEMA {connect.schema}")
