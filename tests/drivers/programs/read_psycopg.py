"""Reads through psycopg 3: plain, prepared, server cursors, WITH HOLD, pipeline."""

import itertools

import psycopg
import talk

PART = 500


class Reader:
    def __init__(self, mode, host, port, database, user, password):
        self.mode, self.names = mode, itertools.count(1)
        simple = mode == "client-side binding"
        self.connection = psycopg.connect(
            host=host, port=port, dbname=database, user=user, password=password, autocommit=True,
            prepare_threshold=0 if mode == "prepared" else None,
            cursor_factory=psycopg.ClientCursor if simple else psycopg.Cursor)

    def read(self, sql, parameters):
        read = {"server cursor": self.server_cursor, "server cursor, scrollable": self.server_cursor,
                "WITH HOLD": self.with_hold, "pipeline": self.pipeline}.get(self.mode, self.plain)
        return read(sql, parameters or None)

    def plain(self, sql, parameters):
        return self.connection.execute(sql, parameters, binary=self.mode == "binary").fetchall()

    def server_cursor(self, sql, parameters):
        scrollable = True if self.mode.endswith("scrollable") else None
        with self.connection.transaction(), self.connection.cursor(f"part_{next(self.names)}", scrollable=scrollable) as cursor:
            cursor.itersize = PART
            cursor.execute(sql, parameters)
            return list(cursor)

    def with_hold(self, sql, parameters):
        """Declared in a transaction of its own, and read after it has ended."""
        with self.connection.cursor(f"held_{next(self.names)}", withhold=True) as cursor:
            cursor.itersize = PART
            cursor.execute(sql, parameters)
            return list(cursor)

    def pipeline(self, sql, parameters):
        """The statement shares its round trip with its neighbours, as in a batch of writes and reads."""
        with self.connection.pipeline():
            self.connection.execute("SET application_name = 'dashboard'")
            answer = self.connection.execute(sql, parameters)
            self.connection.execute("SET application_name = 'dashboard'")
            return answer.fetchall()

    def close(self):
        self.connection.close()


talk.serve(Reader)
