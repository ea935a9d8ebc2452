"""Tables of mixed types, which more than one program of the bench reads."""

from pathlib import Path

SQL = Path(__file__).resolve().parent / "mixed.sql"


def mixed_table(name, rows):
    """What makes psql create such a table, once in a database."""
    return f"\\set name {name}\n\\set rows {rows}\n{SQL.read_text()}"
