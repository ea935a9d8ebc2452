"""Reads through ADBC's driver: what has no parameters as COPY … (FORMAT binary), or with that off."""

from urllib.parse import quote

import adbc_driver_postgresql
import adbc_driver_postgresql.dbapi
import talk


class Reader:
    def __init__(self, mode, host, port, database, user, password):
        self.use_copy = str(mode == "COPY").lower()
        uri = f"postgresql://{quote(user)}:{quote(password)}@{host}:{port}/{quote(database)}"
        self.connection = adbc_driver_postgresql.dbapi.connect(uri, autocommit=True)

    def read(self, sql, parameters):
        with self.connection.cursor() as cursor:
            cursor.adbc_statement.set_options(**{adbc_driver_postgresql.StatementOptions.USE_COPY.value: self.use_copy})
            cursor.execute(sql, parameters or None)
            return [row.values() for row in cursor.fetch_arrow_table().to_pylist()]

    def close(self):
        self.connection.close()


talk.serve(Reader)
