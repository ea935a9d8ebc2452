"""Cases that change rows: by a statement, by what it sets off, below a partitioned table, in a transaction."""

from staleness_case import ITEMS, By, Case, Copy, Parse, Run, by

INSERT = "INSERT INTO items VALUES (100, 1, 7)"

STATEMENTS = [
    Case("INSERT", change=(INSERT,)),
    Case("UPDATE", change=("UPDATE items SET price = price + 1 WHERE id = 7",)),
    Case("DELETE", change=("DELETE FROM items WHERE id = 7",)),
    Case("MERGE", change=("""
        MERGE INTO items USING (VALUES (7, 2, 99.5), (100, 3, 1.5)) AS news (id, grp, price) ON items.id = news.id
        WHEN MATCHED THEN UPDATE SET price = news.price
        WHEN NOT MATCHED THEN INSERT VALUES (news.id, news.grp, news.price)""",)),
    Case("INSERT … ON CONFLICT DO UPDATE",
         change=("INSERT INTO items VALUES (7, 3, 0) ON CONFLICT (id) DO UPDATE SET price = excluded.price",)),
    Case("writable WITH",
         change=("WITH gone AS (DELETE FROM items WHERE grp = 2 RETURNING id) SELECT count(*) FROM gone",)),
    Case("COPY FROM", change=(Copy("COPY items FROM STDIN (FORMAT csv)", "100,1,7\n101,2,8\n"),)),
    Case("TRUNCATE", change=("TRUNCATE items",)),
    Case("EXECUTE of a prepared INSERT", prepare=("PREPARE add (int) AS INSERT INTO items VALUES ($1, 1, 7)",),
         change=("EXECUTE add(100)",)),
    # Run once before: some caches know the tables of a statement only from its Parse.
    Case("INSERT prepared in the extended protocol",
         prepare=(Parse("add", "INSERT INTO items VALUES ($1::int, 1, 7)"), Run("add", (99,))),
         change=(Run("add", (100,)),)),
    Case("UPDATE, read by a prepared statement", Run("total", (5,)),
         state=(Parse("total", "SELECT count(*), sum(price) FROM items WHERE id > $1::int"),),
         change=("UPDATE items SET price = price + 1 WHERE id = 7",)),
    Case("second statement of a string", change=(f"SELECT 1; {INSERT}",)),
    Case("EXPLAIN ANALYZE of an INSERT", change=(f"EXPLAIN ANALYZE {INSERT}",)),
    Case("UPDATE at a cursor",
         change=("BEGIN", "DECLARE walk CURSOR FOR SELECT * FROM items FOR UPDATE", "FETCH 3 FROM walk",
                 "UPDATE items SET price = 0 WHERE CURRENT OF walk", "COMMIT")),
    Case("SELECT of a function that writes",
         setup=ITEMS + f"CREATE FUNCTION add_item() RETURNS int LANGUAGE sql AS '{INSERT} RETURNING id';",
         change=("SELECT add_item()",)),
    Case("procedure with COMMIT inside", setup=ITEMS + """
        CREATE PROCEDURE add_items() LANGUAGE plpgsql AS $$ BEGIN
            FOR n IN 100 .. 102 LOOP INSERT INTO items VALUES (n, 1, n); COMMIT; END LOOP; END $$;""",
         change=("CALL add_items()",)),
    Case("nextval", "SELECT last_value FROM numbers", setup="CREATE SEQUENCE numbers; SELECT nextval('numbers');",
         uncacheable="reads a sequence", change=("SELECT nextval('numbers')",)),
    Case("foreign table, its file changes", "SELECT count(*), sum(a) FROM outside", setup="""
        COPY (SELECT 1) TO PROGRAM 'cat > outside.txt';
        CREATE EXTENSION file_fdw;
        CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
        CREATE FOREIGN TABLE outside (a int) SERVER files OPTIONS (program 'cat outside.txt');""",
         uncacheable="reads a foreign table", change=("COPY (SELECT 2) TO PROGRAM 'cat > outside.txt'",)),
    Case("DO block", change=(f"DO $$ BEGIN {INSERT}; END $$",)),
]

ORDERS = """
    CREATE TABLE customers (id int PRIMARY KEY, name text);
    INSERT INTO customers SELECT n, 'customer ' || n FROM generate_series(1, 5) AS n;
    CREATE TABLE orders (id int PRIMARY KEY, customer int REFERENCES customers (id) ON DELETE {} ON UPDATE {});
    INSERT INTO orders SELECT n, n % 5 + 1 FROM generate_series(1, 30) AS n;
"""
ORDERS_TOTAL = "SELECT customer, count(*) FROM orders GROUP BY customer ORDER BY customer"
AUDITED = """
    CREATE TABLE log (id int, what text);
    INSERT INTO log VALUES (0, 'created');
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO log VALUES (new.id, tg_op); RETURN new; END $$;
""" + ITEMS
LOG = "SELECT count(*), sum(id) FROM log"

CONSEQUENCES = [
    Case("foreign key, ON DELETE CASCADE", ORDERS_TOTAL, setup=ORDERS.format("CASCADE", "CASCADE"),
         change=("DELETE FROM customers WHERE id = 2",)),
    Case("foreign key, ON UPDATE CASCADE", ORDERS_TOTAL, setup=ORDERS.format("CASCADE", "CASCADE"),
         change=("UPDATE customers SET id = 50 WHERE id = 2",)),
    Case("foreign key, ON DELETE SET NULL", ORDERS_TOTAL, setup=ORDERS.format("SET NULL", "CASCADE"),
         change=("DELETE FROM customers WHERE id = 2",)),
    Case("trigger that writes another table", LOG,
         setup=AUDITED + "CREATE TRIGGER note AFTER INSERT ON items FOR EACH ROW EXECUTE FUNCTION note();",
         change=(INSERT,)),
    Case("deferred trigger, at COMMIT", LOG,
         setup=AUDITED + """CREATE CONSTRAINT TRIGGER note AFTER INSERT ON items DEFERRABLE INITIALLY DEFERRED
                            FOR EACH ROW EXECUTE FUNCTION note();""",
         change=("BEGIN", INSERT, "COMMIT")),
    Case("INSTEAD OF trigger of a view", LOG,
         setup=AUDITED + """CREATE VIEW shown AS SELECT * FROM items;
                            CREATE TRIGGER note INSTEAD OF INSERT ON shown FOR EACH ROW EXECUTE FUNCTION note();""",
         change=("INSERT INTO shown VALUES (100, 1, 7)",)),
    Case("rule that writes another table", LOG,
         setup=AUDITED + "CREATE RULE note AS ON INSERT TO items DO ALSO INSERT INTO log VALUES (new.id, 'rule');",
         change=(INSERT,)),
    Case("write through an updatable view", setup=ITEMS + "CREATE VIEW cheap AS SELECT * FROM items WHERE price < 20;",
         change=("UPDATE cheap SET price = 1 WHERE id = 7",)),
]

PARTS = """
    CREATE TABLE sales (day int NOT NULL, amount int NOT NULL) PARTITION BY RANGE (day);
    CREATE TABLE sales_1 PARTITION OF sales FOR VALUES FROM (0) TO (10);
    CREATE TABLE sales_2 PARTITION OF sales FOR VALUES FROM (10) TO (20);
    CREATE TABLE sales_3 (day int NOT NULL, amount int NOT NULL);
    INSERT INTO sales SELECT n % 20, n FROM generate_series(1, 100) AS n;
    INSERT INTO sales_3 SELECT n % 10 + 20, n FROM generate_series(1, 50) AS n;
"""
ROOT_TOTAL = "SELECT count(*), sum(amount) FROM sales"
LEAF_TOTAL = "SELECT count(*), sum(amount) FROM sales_1"
FAMILY = """
    CREATE TABLE animals (name text, legs int);
    CREATE TABLE birds (wings int) INHERITS (animals);
    INSERT INTO animals VALUES ('dog', 4);
    INSERT INTO birds VALUES ('owl', 2, 2);
"""
LEGS = "SELECT count(*), sum(legs) FROM animals"

PARTITIONS = [
    Case("write to a leaf, read of the root", ROOT_TOTAL, setup=PARTS,
         change=("INSERT INTO sales_1 VALUES (3, 1000)",)),
    Case("write to the root, read of a leaf", LEAF_TOTAL, setup=PARTS, change=("INSERT INTO sales VALUES (3, 1000)",)),
    Case("row moved by UPDATE, read of its new leaf", LEAF_TOTAL, setup=PARTS,
         change=("UPDATE sales SET day = 3 WHERE day = 15",)),
    Case("TRUNCATE of a leaf, read of the root", ROOT_TOTAL, setup=PARTS, change=("TRUNCATE sales_2",)),
    Case("DROP of a partition", ROOT_TOTAL, setup=PARTS, change=("DROP TABLE sales_2",)),
    Case("ATTACH PARTITION", ROOT_TOTAL, setup=PARTS,
         change=("ALTER TABLE sales ATTACH PARTITION sales_3 FOR VALUES FROM (20) TO (30)",)),
    Case("DETACH PARTITION", ROOT_TOTAL, setup=PARTS, change=("ALTER TABLE sales DETACH PARTITION sales_2",)),
    Case("DETACH PARTITION CONCURRENTLY", ROOT_TOTAL, setup=PARTS,
         change=("ALTER TABLE sales DETACH PARTITION sales_2 CONCURRENTLY",)),
    Case("write to an inheriting table, read of its parent", LEGS, setup=FAMILY,
         change=("INSERT INTO birds VALUES ('emu', 2, 2)",)),
    Case("ALTER TABLE … NO INHERIT", LEGS, setup=FAMILY, change=("ALTER TABLE birds NO INHERIT animals",)),
]

# Without a unique key, so that the truth can repeat an uncommitted INSERT beside the reader's.
EVENTS = "CREATE TABLE events (amount int); INSERT INTO events SELECT generate_series(1, 20);"
EVENTS_TOTAL = "SELECT count(*), sum(amount) FROM events"
ADD_EVENT = "INSERT INTO events VALUES (1000)"

# Asked often enough for a cache to take the answer in: pgpool-II's processes need up to two questions first.
ASK_EVENTS = [EVENTS_TOTAL] * 3
# While a change is prepared the old answer is right. A cache that dropped it too early takes it in again here.
REPEAT_OLD_ANSWER = by("reader", *ASK_EVENTS)

TRANSACTIONS = [
    Case("COMMIT by another session", EVENTS_TOTAL, setup=EVENTS, change=by("writer", "BEGIN", ADD_EVENT, "COMMIT")),
    Case("write made straight at the server", change=by("server", INSERT), note="a proxy cannot know of it"),
    Case("own uncommitted change", EVENTS_TOTAL, setup=EVENTS, context=("BEGIN", ADD_EVENT)),
    Case("uncommitted change of another, read by both", EVENTS_TOTAL, setup=EVENTS,
         change=by("writer", "BEGIN", ADD_EVENT, *ASK_EVENTS), answer_changes=False),
    Case("ROLLBACK after a read inside", EVENTS_TOTAL, setup=EVENTS,
         change=("BEGIN", ADD_EVENT, *ASK_EVENTS, "ROLLBACK"), answer_changes=False),
    Case("ROLLBACK TO SAVEPOINT after a read inside", EVENTS_TOTAL, setup=EVENTS,
         change=("BEGIN", "SAVEPOINT one", ADD_EVENT, *ASK_EVENTS, "ROLLBACK TO one", "COMMIT"), answer_changes=False),
    Case("RELEASE of a savepoint, then COMMIT", EVENTS_TOTAL, setup=EVENTS,
         change=("BEGIN", "SAVEPOINT one", ADD_EVENT, "RELEASE one", "COMMIT")),
    Case("PREPARE TRANSACTION, not yet committed", EVENTS_TOTAL, setup=EVENTS,
         change=("BEGIN", ADD_EVENT, "PREPARE TRANSACTION 'later'", *REPEAT_OLD_ANSWER), answer_changes=False,
         cleanup=("ROLLBACK PREPARED 'later'",)),
    Case("COMMIT PREPARED by another session", EVENTS_TOTAL, setup=EVENTS,
         change=("BEGIN", ADD_EVENT, "PREPARE TRANSACTION 'later'", *REPEAT_OLD_ANSWER,
                 By("writer", "COMMIT PREPARED 'later'")),
         cleanup=("ROLLBACK PREPARED 'later'",)),
    Case("older snapshot of REPEATABLE READ", EVENTS_TOTAL, setup=EVENTS + "CREATE TABLE other (a int);",
         opened=("BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM other"),
         change=by("writer", ADD_EVENT, *ASK_EVENTS), answer_changes=False,
         note="the new answer is in the cache, but must not be shown"),
]

GROUPS = {
    "Statements": STATEMENTS,
    "Consequences of a statement": CONSEQUENCES,
    "Partitions and inheritance": PARTITIONS,
    "Transactions": TRANSACTIONS,
}
