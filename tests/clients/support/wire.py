"""A client of the frontend/backend protocol that sends and shows single messages, for what drivers hide."""

import socket
import struct

import psycopg.conninfo


class Message(tuple):
    """Type and body of a message from the server."""

    __slots__ = ()

    @property
    def type(self):
        return self[0]

    @property
    def body(self):
        return self[1]


def cstring(text):
    return text.encode() + b"\0"


class Wire:
    def __init__(self, dsn, protocol=(3, 0), **parameters):
        where = psycopg.conninfo.conninfo_to_dict(dsn)
        self.path = f"{where['host']}/.s.PGSQL.{where['port']}"
        self.socket = self.connection()
        self.out = b""
        self.buffer = b""
        startup = {"user": where["user"], "database": where["dbname"], **parameters}
        body = struct.pack("!HH", *protocol) + b"".join(cstring(k) + cstring(v) for k, v in startup.items()) + b"\0"
        self.socket.sendall(struct.pack("!i", len(body) + 4) + body)
        # Process and key for a request to cancel.
        [self.key] = [message.body for message in self.until_ready() if message.type == "K"]

    def connection(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(60)
        connection.connect(self.path)
        return connection

    def close(self):
        self.socket.close()

    def cancel(self):
        """Asks the server to cancel what this session does."""
        with self.connection() as connection:
            connection.sendall(struct.pack("!ii", 8 + len(self.key), 80877102) + self.key)
            connection.recv(1)

    # What is sent: messages collect until something waits for an answer.

    def add(self, kind, body=b""):
        self.out += kind + struct.pack("!i", len(body) + 4) + body
        return self

    def parse(self, query, name="", types=()):
        return self.add(b"P", cstring(name) + cstring(query) + struct.pack(f"!h{len(types)}I", len(types), *types))

    def bind(self, values=(), portal="", name="", value_format=0, result_format=0):
        body = cstring(portal) + cstring(name) + struct.pack("!hhh", 1, value_format, len(values))
        for value in values:
            body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
        return self.add(b"B", body + struct.pack("!hh", 1, result_format))

    def describe(self, portal=""):
        return self.add(b"D", b"P" + cstring(portal))

    def execute(self, portal="", max_rows=0):
        return self.add(b"E", cstring(portal) + struct.pack("!i", max_rows))

    def close_portal(self, portal=""):
        return self.add(b"C", b"P" + cstring(portal))

    def flush(self):
        return self.add(b"H")

    # What comes back.

    def send(self):
        self.socket.sendall(self.out)
        self.out = b""

    def read(self):
        while True:
            if len(self.buffer) >= 5:
                length = 1 + struct.unpack("!i", self.buffer[1:5])[0]
                if len(self.buffer) >= length:
                    message = Message((self.buffer[:1].decode(), self.buffer[5:length]))
                    self.buffer = self.buffer[length:]
                    return message
            received = self.socket.recv(1 << 16)
            if not received:
                raise ConnectionError("the server closed the connection")
            self.buffer += received

    def until(self, *types):
        """All messages up to one of these types, notices and parameter changes left out."""
        self.send()
        messages = []
        while True:
            message = self.read()
            if message.type not in "NSA":
                messages.append(message)
            if message.type in types:
                return messages

    def until_ready(self):
        return self.until("Z")

    def sync(self):
        return self.add(b"S").until_ready()

    def step(self, *types):
        """Sends a Flush instead of a Sync: the transaction and its portals go on."""
        return self.flush().until(*types)

    def query(self, text):
        """A simple query."""
        return self.add(b"Q", cstring(text)).until_ready()

    def value(self, text):
        """The first value of a simple query that gives one."""
        return data_rows(self.query(text))[0][0].decode()

    def status(self):
        return self.value("SELECT arrow_cache.last_status()")


def types(messages):
    return "".join(message.type for message in messages)


def data_rows(messages):
    """The values of all DataRow messages."""
    rows = []
    for message in messages:
        if message.type == "D":
            (columns,), at, row = struct.unpack_from("!h", message.body), 2, []
            for _ in range(columns):
                (length,) = struct.unpack_from("!i", message.body, at)
                at += 4
                row.append(None if length < 0 else message.body[at:at + length])
                at += max(length, 0)
            rows.append(row)
    return rows


def tags(messages):
    return [message.body.rstrip(b"\0").decode() for message in messages if message.type == "C"]


def error_fields(message):
    """The fields of an ErrorResponse, by their letter."""
    return {field[:1].decode(): field[1:].decode() for field in message.body.split(b"\0") if field}


def errors_by_message(answers):
    """Messages, each as its kind and bytes; errors by their code and message alone, without the place in the server's source."""
    return [(one.type, one.body) if one.type != "E" else ("E", b"".join(
        part for part in one.body.split(b"\0") if part[:1] in (b"C", b"M"))) for one in answers if one.type not in "Z"]


def has_error(messages, code):
    """Is there an error with this SQLSTATE among messages?"""
    return any(kind == "E" and b"C" + code in body for kind, body in messages)
