"""The servers on which the documents' blocks are run: one with the library and the defaults of its settings, and when a section needs them,
one without it yet, and a managed one that publishes."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from support.documents import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import cluster as private  # noqa: E402  (it lives beside the other scripts)

LIMIT_S = 120
TABLES = """
CREATE TABLE stores (store_id int PRIMARY KEY, name text, region text);
INSERT INTO stores SELECT i, 'Store ' || i, (ARRAY['North', 'East', 'South', 'West'])[1 + i % 4] FROM generate_series(1, 20) AS i;
CREATE TABLE products (product_id int PRIMARY KEY, name text);
INSERT INTO products SELECT i, 'Product ' || i FROM generate_series(1, 100) AS i;
CREATE TABLE sales (sale_id int PRIMARY KEY, store_id int, product_id int, region text, year int, sold_at timestamptz, quantity int,
                    unit_price numeric(10, 2), amount numeric(12, 2));
INSERT INTO sales
SELECT i, 1 + i % 20, 1 + i % 100, (ARRAY['North', 'East', 'South', 'West'])[1 + i % 4], 2020 + i % 6, timestamptz '2025-01-01' + i * interval '1 minute',
       1 + i % 9, 3 + i % 2400 / 100.0, (1 + i % 9) * (3 + i % 2400 / 100.0)
FROM generate_series(1, 60000) AS i;
VACUUM ANALYZE;
"""
CACHE = """
CREATE EXTENSION pg_arrow_cache;
CREATE EXTENSION pg_stat_statements;
CREATE SCHEMA app;
CREATE FUNCTION app.tenant() RETURNS text STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN current_user; END $$;
"""
ROLES = "batch dba dashboard replicator"
CONF = {"max_wal_senders": 4, "compute_query_id": "on"}


class Shop:
    """Runs things in the database `shop` of one of the servers."""

    def __init__(self, directory):
        self.directory = directory
        self.stack = contextlib.ExitStack()
        self.managed = self.server = None

    def __enter__(self):
        self.cached = self.start("", preload="pg_stat_statements,pg_arrow_cache", conf=CONF)
        self.cached.psql(TABLES + CACHE, "shop_as_new")
        self.work = private.server_dir(f"{self.directory}-work")
        self.stack.callback(private.Cluster.discard, self.work)
        return self

    def __exit__(self, *_):
        self.stack.close()

    def start(self, name, **options):
        server = self.stack.enter_context(private.Cluster(Path(f"{self.directory}{name}"), **options))
        server.psql("".join(f"CREATE ROLE {role};" for role in ROLES.split()) + "ALTER ROLE replicator SUPERUSER LOGIN")
        server.psql("CREATE DATABASE shop_as_new")
        return server

    def prepare(self, document, heading):
        """A database as new for the blocks of a section."""
        if self.managed is not None:
            self.cached.psql("DROP SUBSCRIPTION IF EXISTS dashboard", "shop")
            self.managed = None
        self.server, self.directory_of_commands = self.cached, self.work
        template = "shop_as_new"
        if (document, heading) == ("README.md", "Installation"):
            self.server = self.start("-plain", preload="")
            self.directory_of_commands = self.server.data
        if heading == "A subscriber beside a managed server":
            self.managed = self.start("-managed", preload="", conf={"wal_level": "logical"})
            self.managed.psql("CREATE DATABASE shop")
            self.managed.psql(TABLES, "shop")
            template = "template0"
        self.server.psql(f"DROP DATABASE IF EXISTS shop WITH (FORCE); CREATE DATABASE shop TEMPLATE {template}".replace(";", "\n\\g\n"))

    def restart(self):
        self.server.restart()

    def psql(self, script, *options):
        """What psql prints. The publisher's statements go to the managed server."""
        server = self.managed if "CREATE PUBLICATION" in script else self.server
        return self.run(server.client("psql", "-X", "-v", "ON_ERROR_STOP=1", "-d", "shop", *options), script)

    def bash(self, script):
        return self.run(["bash", "-euo", "pipefail"], script)

    def run(self, command, script):
        """Gives a program its input. What it prints is shown if it fails."""
        server = self.server
        environment = {**server.environment(), "PGHOST": str(server.socket_dir), "PGPORT": str(server.port), "PGUSER": private.SUPERUSER,
                       "PGDATABASE": "shop", "PYTHONPATH": str(ROOT / "clients" / "python"), "PATH": os.pathsep.join(map(str, (server.bindir, Path(sys.executable).parent, os.environ["PATH"])))}
        done = subprocess.run(list(map(str, command)), input=self.reachable(script), env=environment, cwd=self.directory_of_commands,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S)
        print(done.stdout)
        done.check_returncode()
        return done.stdout

    def reachable(self, script):
        """The managed server has no name that the network knows."""
        return script if self.managed is None else script.replace("host=managed", f"host={self.managed.socket_dir} port={self.managed.port}")
