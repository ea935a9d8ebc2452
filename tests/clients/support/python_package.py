"""The package clients/python as it is installed from its wheel, and the connections that it reads through."""

import asyncio
import contextlib
import importlib
import itertools
import subprocess
import sys
import zipfile
from pathlib import Path

import adbc_driver_postgresql.dbapi
import asyncpg
import psycopg
import psycopg2
from psycopg.conninfo import conninfo_to_dict

from support.asking import PATIENCE_S

SOURCE = Path(__file__).resolve().parents[3] / "clients" / "python"


def build_wheel(folder):
    """What pip would have built, without the time that pip takes."""
    program = "import sys, flit_core.buildapi; print(flit_core.buildapi.build_wheel(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", program, folder], cwd=SOURCE, check=True, stdout=subprocess.PIPE, text=True)
    return folder / done.stdout.strip()


def imported(wheel, folder):
    """The package, from what pip would have installed."""
    zipfile.ZipFile(wheel).extractall(folder)
    sys.path.insert(0, str(folder))
    package = importlib.import_module("pg_arrow_cache")
    assert Path(package.__file__).is_relative_to(folder)
    return package


class Sync:
    """A connection with a synchronous driver. `hole` is how its first parameter is written."""

    hole = "%s"
    takes_both = True

    def __init__(self, package, dsn, schema, autocommit=True):
        self.package = package
        self.connection = self.connect(dsn, autocommit)
        self.execute(f"SET search_path = {schema}")

    def read(self, query, parameters=None, **options):
        return self.package.read_arrow(self.connection, query, parameters, **options)

    def batches(self, query, parameters=None, count=None, then=None, **options):
        """The first `count` batches, read as a stream, or all of them. After them, within the block, `then` is called."""
        with self.package.open_arrow(self.connection, query, parameters, **options) as reader:
            found = list(itertools.islice(reader, count))
            if then is not None:
                then()
            return found

    def read_after_end(self, query):
        with self.package.open_arrow(self.connection, query) as reader:
            reader.read_next_batch()
        return reader.read_next_batch()

    def rows(self, statement):
        with contextlib.closing(self.connection.cursor()) as cursor:
            cursor.execute(statement)
            return [tuple(row) for row in cursor.fetchall()]

    def execute(self, statement):
        with contextlib.closing(self.connection.cursor()) as cursor:
            cursor.execute(statement)

    def close(self):
        self.connection.close()


class Psycopg(Sync):
    errors = psycopg.Error

    def connect(self, dsn, autocommit):
        return psycopg.connect(dsn, autocommit=autocommit)


class Psycopg2(Sync):
    errors = psycopg2.Error

    def connect(self, dsn, autocommit):
        connection = psycopg2.connect(dsn)
        connection.autocommit = autocommit
        return connection


class Adbc(Sync):
    errors = adbc_driver_postgresql.dbapi.Error
    hole = "$1"
    takes_both = False

    def connect(self, dsn, autocommit):
        return adbc_driver_postgresql.dbapi.connect(dsn, autocommit=autocommit)


class Async(Sync):
    """A connection with an asynchronous driver, for tests that are not."""

    def __init__(self, *arguments, **options):
        self.loop = asyncio.new_event_loop()
        super().__init__(*arguments, **options)

    def wait(self, awaitable):
        return self.loop.run_until_complete(asyncio.wait_for(awaitable, PATIENCE_S))

    def read(self, query, parameters=None, **options):
        return self.wait(self.package.aread_arrow(self.connection, query, parameters, **options))

    def batches(self, query, parameters=None, count=None, then=None, **options):
        async def read():
            async with self.package.aopen_arrow(self.connection, query, parameters, **options) as batches:
                found = []
                while len(found) != count and (batch := await anext(batches, None)) is not None:
                    found.append(batch)
                if then is not None:
                    await asyncio.to_thread(then)   # the driver may go on meanwhile
                return found

        return self.wait(read())

    def read_after_end(self, query):
        async def read():
            async with self.package.aopen_arrow(self.connection, query) as batches:
                await anext(batches)
            return await anext(batches)

        return self.wait(read())

    def close(self):
        self.wait(self.connection.close())
        self.loop.close()


class AsyncPsycopg(Async):
    errors = psycopg.Error

    def connect(self, dsn, autocommit):
        return self.wait(psycopg.AsyncConnection.connect(dsn, autocommit=autocommit))

    def rows(self, statement):
        async def read():
            return await (await self.connection.execute(statement)).fetchall()

        return self.wait(read())

    def execute(self, statement):
        self.wait(self.connection.execute(statement))


class Asyncpg(Async):
    """asyncpg commits by itself; a transaction begins with BEGIN."""

    errors = asyncpg.PostgresError, asyncpg.InterfaceError
    hole = "$1"
    takes_both = False

    def connect(self, dsn, autocommit):
        return self.wait(asyncpg.connect(**asyncpg_arguments(dsn)))

    def rows(self, statement):
        return [tuple(row) for row in self.wait(self.connection.fetch(statement))]

    def execute(self, statement):
        self.wait(self.connection.execute(statement))


def asyncpg_arguments(dsn):
    parts = conninfo_to_dict(dsn)
    return {"host": parts["host"], "port": parts["port"], "user": parts["user"], "database": parts["dbname"]}


DRIVERS = {"psycopg": Psycopg, "psycopg2": Psycopg2, "adbc": Adbc, "asyncpg": Asyncpg, "async psycopg": AsyncPsycopg}


def sqlstate(error):
    """The code of an error, as its driver has it."""
    return getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
