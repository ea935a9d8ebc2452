"""Answers that the application keeps in Redis, under tags that it moves when it writes: one for each table, or one for each tenant.

The versions of the tags are part of the key, and read before the answer is computed; they move when the transaction has
been committed. So what is wrong is not due to a race of the two, but to a change that no tag stands for."""

import pickle

import redis

from session import digest
from tenants_tables import TABLES

TABLE_TAGS = "table tags"


def tags_of(side, tables, tenant):
    """The tags of what reads or changes these tables for a tenant. A change of many tenants, or of none, has no tenant's tag."""
    if side == TABLE_TAGS:
        return [f"tag:{table}" for table in TABLES if table in tables]
    return [] if tenant is None else [f"tag:{tenant}"]


class Tagged:
    """What stands between a reader and the server."""

    def __init__(self, socket, side, execute):
        self.redis, self.side, self.execute = redis.Redis(unix_socket_path=socket), side, execute
        self.status = None

    def ask(self, statement, values, tenant):
        versions = self.redis.mget(tags_of(self.side, statement.tables, tenant))
        key = pickle.dumps((statement.name, tenant, values, versions))
        stored = self.redis.get(key)
        self.status = "MISS" if stored is None else "HIT"
        if stored is None:
            result = self.execute(statement, values)
            rows = [[result.get_value(row, column) for column in range(result.nfields)] for row in range(result.ntuples)]
            own = digest(result)
            self.redis.set(key, pickle.dumps((own, rows)))
            return own
        return pickle.loads(stored)[0]


class Teller:
    """What a writer does after each transaction."""

    def __init__(self, socket, side):
        self.redis, self.side = redis.Redis(unix_socket_path=socket), side

    def of(self, change):
        for tag in tags_of(self.side, change.tables, change.tenant):
            self.redis.incr(tag)
