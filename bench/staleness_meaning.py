"""Cases that leave the rows and change what they mean: definitions, names, settings, and who may see them."""

from staleness_case import ITEMS, ITEMS_TOTAL, Case, Parse, Run, by

REPLACEMENT = "SELECT id, grp, price * 2 AS price FROM items"
MOODS = """
    CREATE TYPE mood AS ENUM ('sad', 'glad');
    CREATE TABLE people (id int, feels mood);
    INSERT INTO people VALUES (1, 'sad'), (2, 'glad');
"""
PRICED = ITEMS + """
    CREATE FUNCTION gross(numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 1.19';
"""
USER_FUNCTION = "calls a function of the user's"

DEFINITIONS = [
    Case("DROP and CREATE under the same name",
         change=("DROP TABLE items", "CREATE TABLE items (id int, grp int, price numeric)",
                 "INSERT INTO items VALUES (1, 1, 1)")),
    Case("DROP and CREATE TABLE AS",
         change=(f"CREATE TABLE kept AS {REPLACEMENT}", "DROP TABLE items",
                 "CREATE TABLE items AS SELECT * FROM kept")),
    Case("DROP and SELECT INTO",
         change=("SELECT id, grp, price * 2 AS price INTO kept FROM items", "DROP TABLE items",
                 "SELECT * INTO items FROM kept")),
    Case("DROP TABLE, which must raise", change=("DROP TABLE items",)),
    Case("swap by RENAME", setup=ITEMS + f"CREATE TABLE items_new AS {REPLACEMENT};",
         change=("BEGIN", "ALTER TABLE items RENAME TO items_old", "ALTER TABLE items_new RENAME TO items", "COMMIT")),
    Case("swap by RENAME, read by a prepared statement", Run("total"), state=(Parse("total", ITEMS_TOTAL),),
         setup=ITEMS + f"CREATE TABLE items_new AS {REPLACEMENT};",
         change=("BEGIN", "ALTER TABLE items RENAME TO items_old", "ALTER TABLE items_new RENAME TO items", "COMMIT")),
    Case("ALTER TABLE ADD COLUMN, read by SELECT *", "SELECT * FROM items ORDER BY id",
         change=("ALTER TABLE items ADD COLUMN note text DEFAULT 'none'",)),
    Case("ALTER TABLE DROP COLUMN, read by SELECT *", "SELECT * FROM items ORDER BY id",
         change=("ALTER TABLE items DROP COLUMN price",)),
    Case("ALTER COLUMN TYPE", "SELECT id, price FROM items ORDER BY id",
         change=("ALTER TABLE items ALTER COLUMN price TYPE int",)),
    Case("ALTER TABLE SET SCHEMA uncovers another", setup=ITEMS + f"""
        CREATE SCHEMA attic; CREATE SCHEMA later; CREATE TABLE later.items AS {REPLACEMENT};""",
         state=("SET search_path = public, later",),
         change=("ALTER TABLE public.items SET SCHEMA attic",)),
    Case("ALTER TYPE … RENAME VALUE", "SELECT id, feels FROM people ORDER BY id", setup=MOODS,
         change=("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'",)),
    Case("CREATE OR REPLACE FUNCTION", "SELECT sum(gross(price)) FROM items", setup=PRICED, uncacheable=USER_FUNCTION,
         change=("""CREATE OR REPLACE FUNCTION gross(numeric) RETURNS numeric LANGUAGE sql IMMUTABLE
                    AS 'SELECT $1 * 1.07'""",)),
    Case("CREATE OR REPLACE VIEW", "SELECT count(*), sum(price) FROM cheap",
         setup=ITEMS + "CREATE VIEW cheap AS SELECT * FROM items WHERE price < 20;",
         change=("CREATE OR REPLACE VIEW cheap AS SELECT * FROM items WHERE price < 10",)),
    Case("REFRESH MATERIALIZED VIEW", "SELECT * FROM totals ORDER BY grp",
         setup=ITEMS + "CREATE MATERIALIZED VIEW totals AS SELECT grp, sum(price) FROM items GROUP BY grp;",
         prepare=("DELETE FROM items WHERE id < 10",), change=("REFRESH MATERIALIZED VIEW totals",)),
    Case("REFRESH MATERIALIZED VIEW CONCURRENTLY", "SELECT * FROM totals ORDER BY grp", setup=ITEMS + """
        CREATE MATERIALIZED VIEW totals AS SELECT grp, sum(price) FROM items GROUP BY grp;
        CREATE UNIQUE INDEX ON totals (grp);""",
         prepare=("DELETE FROM items WHERE id < 10",), change=("REFRESH MATERIALIZED VIEW CONCURRENTLY totals",)),
]

VISITS = """
    CREATE TABLE visits (id int, at timestamptz, day date, note bytea, weight float8);
    INSERT INTO visits VALUES (1, '2026-07-01 12:00+00', '2026-07-01', '\\x00ff', 0.1);
"""
HIDE_ITEMS = "CREATE TEMPORARY TABLE items AS SELECT 1 AS id, 1 AS grp, 1.0 AS price"

NAMES_AND_SETTINGS = [
    Case("new table in an earlier schema of search_path", setup=ITEMS + "CREATE SCHEMA front;",
         state=("SET search_path = front, public",), change=(f"CREATE TABLE front.items AS {REPLACEMENT}",)),
    Case("SET search_path", setup=ITEMS + f"CREATE SCHEMA front; CREATE TABLE front.items AS {REPLACEMENT};",
         context=("SET search_path = front, public",)),
    Case("temporary table of the same name", context=(HIDE_ITEMS,)),
    Case("temporary table of the same name, read by a prepared statement", Run("total"),
         state=(Parse("total", ITEMS_TOTAL),), context=(HIDE_ITEMS,)),
    Case("SET TimeZone", "SELECT id, at FROM visits", setup=VISITS, context=("SET TimeZone = 'Asia/Tokyo'",)),
    Case("SET DateStyle", "SELECT id, day FROM visits", setup=VISITS, context=("SET DateStyle = 'German'",)),
    Case("SET bytea_output", "SELECT id, note FROM visits", setup=VISITS, context=("SET bytea_output = 'escape'",)),
    Case("SET extra_float_digits", "SELECT id, weight / 3 FROM visits", setup=VISITS,
         context=("SET extra_float_digits = -5",)),
    Case("SET client_encoding", "SELECT name FROM names",
         setup="CREATE TABLE names (name text); INSERT INTO names VALUES (U&'caf\\00E9');",
         context=("SET client_encoding = 'LATIN1'",)),
    Case("time passes a limit compared with now()", "SELECT count(*) FROM offers WHERE ends > now()",
         setup="CREATE TABLE offers AS SELECT clock_timestamp() + interval '2 s' AS ends;",
         uncacheable="asks for the time",
         change=("SELECT pg_sleep(extract(epoch FROM max(ends) - clock_timestamp()) + 0.01) FROM offers",)),
]

GRANTED = ITEMS + "GRANT SELECT ON items TO reader;"
FENCED = GRANTED + """
    ALTER TABLE items ENABLE ROW LEVEL SECURITY;
    CREATE POLICY fence ON items USING (grp < 2);
"""
PER_ROLE = ITEMS + """
    GRANT SELECT ON items TO reader, other_reader;
    ALTER TABLE items ENABLE ROW LEVEL SECURITY;
    CREATE POLICY one ON items TO reader USING (grp = 1);
    CREATE POLICY two ON items TO other_reader USING (grp = 2);
"""

PERMISSIONS = [
    Case("REVOKE, which must raise", setup=GRANTED, user="reader",
         change=by("admin", "REVOKE SELECT ON items FROM reader")),
    Case("REVOKE of a column, which must raise", "SELECT id, price FROM items ORDER BY id", user="reader",
         setup=ITEMS + "GRANT SELECT (id, price) ON items TO reader;",
         change=by("admin", "REVOKE SELECT (price) ON items FROM reader")),
    Case("REVOKE of a membership, which must raise", user="reader",
         setup=ITEMS + "GRANT SELECT ON items TO other_reader; GRANT other_reader TO reader;",
         change=by("admin", "REVOKE other_reader FROM reader")),
    Case("SET ROLE to one who may not", context=("SET ROLE reader",)),
    Case("SET SESSION AUTHORIZATION to one who may not", context=("SET SESSION AUTHORIZATION reader",)),
    Case("ENABLE ROW LEVEL SECURITY", user="reader", setup=GRANTED + "CREATE POLICY fence ON items USING (grp < 2);",
         change=by("admin", "ALTER TABLE items ENABLE ROW LEVEL SECURITY")),
    Case("ALTER POLICY", user="reader", setup=FENCED,
         change=by("admin", "ALTER POLICY fence ON items USING (grp = 3)")),
    Case("SET ROLE under row policies per role", setup=PER_ROLE, state=("SET ROLE reader",),
         context=("SET ROLE other_reader",)),
    Case("SET row_security = off, which must raise", user="reader", setup=FENCED, context=("SET row_security = off",)),
]

GROUPS = {
    "Definitions": DEFINITIONS,
    "Names, settings and time": NAMES_AND_SETTINGS,
    "Permissions": PERMISSIONS,
}
