"""Reads through asyncpg: fetch, fetchrow, fetchval, cursor. All of them send Execute with a row limit but fetch."""

import asyncio

import asyncpg
import talk

PART = 500


class Reader:
    def __init__(self, mode, host, port, database, user, password):
        self.mode, self.loop = mode, asyncio.new_event_loop()
        # Behind a pooler, which may give every transaction another server process, no statement keeps a name.
        cached = {"statement_cache_size": 0} if mode.endswith("no statement cache") else {}
        self.connection = self.loop.run_until_complete(
            asyncpg.connect(host=host, port=int(port), database=database, user=user, password=password, **cached))

    def read(self, sql, parameters):
        return self.loop.run_until_complete(self.rows(sql, parameters))

    async def rows(self, sql, parameters):
        way = self.mode.partition(",")[0]
        if way == "fetchrow":
            row = await self.connection.fetchrow(sql, *parameters)
            return [] if row is None else [row]
        if way == "fetchval":
            return [[await self.connection.fetchval(sql, *parameters)]]
        if way == "cursor":
            async with self.connection.transaction():
                return [row async for row in self.connection.cursor(sql, *parameters, prefetch=PART)]
        return await self.connection.fetch(sql, *parameters)

    def close(self):
        self.loop.run_until_complete(self.connection.close())


talk.serve(Reader)
