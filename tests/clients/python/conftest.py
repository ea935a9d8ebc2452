"""The package of clients/python, from its wheel, and connections of all drivers."""

import pytest

from support.python_package import DRIVERS, build_wheel, imported
from support.session import DSN


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def package(wheel, tmp_path_factory):
    return imported(wheel, tmp_path_factory.mktemp("package"))


@pytest.fixture
def client_of(package, session, connect):
    """Makes connections, by the names of drivers, in the schema of the test."""
    opened = []

    def make(driver, dsn=DSN, **options):
        opened.append(DRIVERS[driver](package, dsn, connect.schema, **options))
        return opened[-1]

    yield make
    for client in opened:
        client.close()


@pytest.fixture(params=DRIVERS)
def client(client_of, request):
    return client_of(request.param)


@pytest.fixture
def plain(client, package):
    """A client as on a server without the extension: the package is told so. The server has it, and is compared with."""
    package.has_extension[client.connection] = False
    return client
