"""Reads through SQLAlchemy over psycopg: plain, and `stream_results`, which declares a cursor."""

import sqlalchemy
import talk

PART = 500


class Reader:
    def __init__(self, mode, host, port, database, user, password):
        self.mode = mode
        url = sqlalchemy.URL.create("postgresql+psycopg", username=user, password=password, host=host, port=int(port), database=database)
        self.engine = sqlalchemy.create_engine(url)

    def read(self, sql, parameters):
        bound = {f"p{number}": value for number, value in enumerate(parameters, 1)}
        with self.engine.connect() as connection:
            if self.mode == "stream_results":
                connection = connection.execution_options(stream_results=True, yield_per=PART)
            return [tuple(row) for row in connection.execute(sqlalchemy.text(sql), bound)]

    def close(self):
        self.engine.dispose()


talk.serve(Reader)
