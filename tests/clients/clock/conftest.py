"""The server with a clock of its own, which all tests of this folder share."""

import pytest

from support.administrator import Administrator

RESET = """
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS public CASCADE;
CREATE SCHEMA public AUTHORIZATION pg_database_owner;
GRANT USAGE ON SCHEMA public TO PUBLIC;
DO $$
DECLARE role name;
BEGIN
    FOR role IN SELECT rolname FROM pg_roles WHERE oid >= 16384 LOOP EXECUTE format('DROP OWNED BY %1$I; DROP ROLE %1$I', role); END LOOP;
END $$;
SELECT arrow_cache.flush(), arrow_cache.reset_stats()
"""


@pytest.fixture(scope="module")
def server(faked_server):
    """Each file begins with nothing, at the same time."""
    faked_server.set("2026-01-01 00:00:00")
    faked_server.psql(RESET)
    return faked_server


@pytest.fixture(scope="module")
def writer(server):
    """Changes the tables of all tests of a file."""
    writer = Administrator(server.dsn())
    yield writer
    writer.close()
