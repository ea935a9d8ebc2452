"""How a reading program talks with run.py: one line each way, of words that are encoded as in URLs.

    open MODE HOST PORT DATABASE USER PASSWORD     read SQL [PARAMETER…]     close

`read` is answered by a line `row` for each row, whose fields are `-` for NULL or `=` and the value; every request ends with `done` or
`failed MESSAGE`. A program in another language follows the same rules.
"""

import sys
from urllib.parse import quote_plus, unquote_plus


def field(value):
    return "-" if value is None else "=" + quote_plus(value.hex() if isinstance(value, bytes) else str(value))


def serve(opened):
    """`opened(mode, host, port, database, user, password)` returns an object with `read(sql, parameters)` and `close()`."""
    reader = None
    for line in sys.stdin:
        request, *words = [unquote_plus(word) for word in line.split()]
        try:
            if request == "open":
                reader = opened(*words)
            elif request == "read":
                for row in reader.read(words[0], words[1:]):
                    print("row", *map(field, row))
            elif request == "close":
                reader.close()
            print("done", flush=True)
        except Exception as error:  # the test shows it, and goes on with the next mode
            print("failed", quote_plus(f"{type(error).__name__}: {error}"), flush=True)
