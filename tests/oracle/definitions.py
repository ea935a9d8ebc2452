"""Ways to change the meaning of names, types, views, policies and privileges. One process makes all of them.

A reader compares two uncached answers around a cached one. This tells a wrong answer from a changed definition only
if no definition changes and changes back in between. Locks prevent that for tables, views and policies. Definitions
without locks (privileges, memberships, function bodies, enum labels) get a value they never had before, or keep it
for HOLD_S before they change back; a reader that took longer than that draws no conclusion."""

from itertools import count

HOLD_S = 1.0

# The same name, another role.
RECREATE = "DROP OWNED BY dora; DROP ROLE dora; CREATE ROLE dora"


class Definitions:
    def __init__(self, rng, ages):
        self.rng, self.ages = rng, ages
        self.fresh = count(1)
        self.toggles = {}

    def either(self, name, forth, back):
        """Returns the changes `forth` and `back` in turn, and nothing while the last change is too recent."""
        if self.ages.age(name) < HOLD_S:
            return None
        self.ages.change(name)
        self.toggles[name] = not self.toggles.get(name, False)
        return forth if self.toggles[name] else back

    # -- what is protected by locks

    def rename_swap(self):
        return ("BEGIN; ALTER TABLE swap_live RENAME TO swap_other; ALTER TABLE swap_spare RENAME TO swap_live; "
                "ALTER TABLE swap_other RENAME TO swap_spare; COMMIT")

    def columns(self):
        n = next(self.fresh)
        return self.rng.choice((
            f"ALTER TABLE shape ADD COLUMN IF NOT EXISTS extra int DEFAULT {n}",
            f"ALTER TABLE shape ADD COLUMN IF NOT EXISTS extra2 text DEFAULT 'e' || random()::text",
            "ALTER TABLE shape DROP COLUMN IF EXISTS extra, DROP COLUMN IF EXISTS extra2",
            "BEGIN; ALTER TABLE shape ALTER a TYPE bigint; UPDATE shape SET a = a + 1; COMMIT",
            "ALTER TABLE shape ALTER a TYPE int",
            f"ALTER TABLE shape ALTER a SET DEFAULT {n}",
            "BEGIN; ALTER TABLE shape RENAME b TO bb; ROLLBACK",
            "BEGIN; ALTER TABLE shape SET SCHEMA two; ALTER TABLE two.shape SET SCHEMA public; COMMIT",
        ))

    def generated(self):
        """From 18 on the expression changes, at times of one part alone; before, a column with another one takes its place."""
        n = next(self.fresh)
        column, expression = self.rng.choice((("times", f"a * {n}"), ("times", f"a + {n}"), ("label", f"'m{n} ' || a::text")))
        kind = "int" if column == "times" else "text"
        table = self.rng.choice(("made", "made", "ONLY made", "made_odd", "made_even"))
        return f"""DO $$ BEGIN
            IF current_setting('server_version_num')::int >= 180000 THEN
                EXECUTE $d$ ALTER TABLE {table} ALTER {column} SET EXPRESSION AS ({expression}) $d$;
            ELSE
                EXECUTE $d$ ALTER TABLE made DROP {column}, ADD {column} {kind} GENERATED ALWAYS AS ({expression}) STORED $d$;
            END IF;
            IF {n} % 3 = 0 THEN RAISE EXCEPTION SQLSTATE '55000'; END IF;
        END $$"""

    def drop_and_create(self):
        n = next(self.fresh)
        return self.rng.choice((
            f"BEGIN; DROP TABLE shape; CREATE TABLE shape (id int PRIMARY KEY, a int, b text); "
            f"INSERT INTO shape SELECT g, g * {n}, 'new' FROM generate_series(1, 7) g; COMMIT",
            "BEGIN; CREATE TABLE model_next AS "
            f"SELECT customer, sum(amount) + {n} AS total FROM orders GROUP BY customer; "
            "DROP TABLE model; ALTER TABLE model_next RENAME TO model; COMMIT",
        ))

    def view(self):
        n = next(self.fresh)
        return self.rng.choice((
            f"CREATE OR REPLACE VIEW v_changing AS SELECT id, balance + {n} AS balance FROM account",
            f"CREATE OR REPLACE VIEW v_changing AS SELECT id, what::text::numeric AS balance FROM "
            f"(SELECT id, {n} AS what FROM one.stock) s",
            "CREATE OR REPLACE VIEW v_customer AS SELECT id, name, mood FROM customer WHERE id % 2 = 0",
            "CREATE OR REPLACE VIEW v_customer AS SELECT id, name, mood FROM customer WHERE id > 3",
            f"ALTER VIEW v_vault SET (security_invoker = {self.rng.choice(('on', 'off'))})",
            f"ALTER VIEW v_vault OWNER TO {self.rng.choice(('postgres', 'alice'))}",
        ))

    def attach(self):
        return self.rng.choice((
            "ALTER TABLE measure DETACH PARTITION measure_2",
            "ALTER TABLE measure ATTACH PARTITION measure_2 FOR VALUES FROM (20) TO (30)",
            "BEGIN; ALTER TABLE measure DETACH PARTITION measure_2; UPDATE measure_2 SET value = value + 1; "
            "ALTER TABLE measure ATTACH PARTITION measure_2 FOR VALUES FROM (20) TO (30); COMMIT",
        ))

    def detach_concurrently(self):
        return "ALTER TABLE measure DETACH PARTITION measure_3 CONCURRENTLY"

    def attach_again(self):
        return "ALTER TABLE measure ATTACH PARTITION measure_3 FOR VALUES FROM (30) TO (40)"

    def finalize(self):
        """For a detachment that a lock or a timeout interrupted."""
        return "ALTER TABLE measure DETACH PARTITION measure_3 FINALIZE"

    def inherit(self):
        return self.rng.choice(("ALTER TABLE dog NO INHERIT animal", "ALTER TABLE dog INHERIT animal"))

    def policy(self):
        return self.rng.choice((
            "ALTER POLICY own ON secret_user USING (owner = current_user AND id > 2)",
            "ALTER POLICY own ON secret_user USING (owner = current_user)",
            "ALTER POLICY tenant ON secret_tenant USING (tenant = current_setting('app.tenant', true) OR id = 1)",
            "ALTER POLICY tenant ON secret_tenant USING (tenant = current_setting('app.tenant', true))",
            "ALTER TABLE secret_user DISABLE ROW LEVEL SECURITY", "ALTER TABLE secret_user ENABLE ROW LEVEL SECURITY",
            "ALTER TABLE secret_user FORCE ROW LEVEL SECURITY", "ALTER TABLE secret_user NO FORCE ROW LEVEL SECURITY",
            "BEGIN; DROP POLICY own ON secret_user; CREATE POLICY own ON secret_user TO bob USING (id % 2 = 0); COMMIT",
            "BEGIN; DROP POLICY own ON secret_user; "
            "CREATE POLICY own ON secret_user USING (owner = current_user); COMMIT",
        ))

    def index(self):
        return self.rng.choice((
            "CREATE INDEX IF NOT EXISTS i ON account (balance)", "DROP INDEX IF EXISTS i", "REINDEX TABLE shape",
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS ic ON orders (amount)", "DROP INDEX CONCURRENTLY IF EXISTS ic",
        ))

    def maintenance(self):
        return self.rng.choice((
            "VACUUM hot_a", "VACUUM hot_b", "VACUUM ANALYZE", "VACUUM FULL orders", "VACUUM FREEZE customer",
            "CLUSTER account USING account_pkey", "CLUSTER linked_b USING linked_b_pkey", "ANALYZE account",
            "COMMENT ON TABLE account IS 'x'", "VACUUM FULL event", "VACUUM (FREEZE) hot_a", "VACUUM event", "VACUUM FULL account_log",
        ))

    def catalogs(self):
        """What rewrites the server's own tables, some of which are found by a map and not by their own rows."""
        return self.rng.choice(("VACUUM FULL pg_class", "VACUUM FULL pg_proc", "VACUUM FULL pg_enum", "VACUUM FREEZE pg_attribute",
                                "REINDEX TABLE pg_class", "REINDEX TABLE CONCURRENTLY account"))

    def leftovers(self):
        """A concurrent REINDEX that fails leaves an invalid index behind, and the next one doubles that, too: without an end they would be thousands."""
        return """DO $$ DECLARE left_over regclass; BEGIN
            FOR left_over IN SELECT indexrelid FROM pg_index WHERE NOT indisvalid AND indexrelid::regclass::text ~ '_cc(new|old)' LOOP
                BEGIN
                    EXECUTE format('DROP INDEX %s', left_over);
                EXCEPTION WHEN lock_not_available OR deadlock_detected THEN NULL;
                END;
            END LOOP; END $$"""

    def tablespace(self):
        place = self.rng.choice(("spare", "pg_default"))
        return self.rng.choice((
            f"ALTER TABLE orders SET TABLESPACE {place}", f"ALTER TABLE measure_2 SET TABLESPACE {place}",
            f"ALTER MATERIALIZED VIEW sales SET TABLESPACE {place}", f"ALTER INDEX orders_pkey SET TABLESPACE {place}",
            f"BEGIN; ALTER TABLE account SET TABLESPACE {place}; UPDATE account SET balance = balance + 1; COMMIT",
            f"BEGIN; ALTER TABLE customer SET TABLESPACE {place}; ROLLBACK",
        ))

    def written_catalog(self):
        """Rows of catalogs that are written like those of any table."""
        return self.rng.choice((
            f"UPDATE pg_proc SET prosrc = 'SELECT {next(self.fresh)}' WHERE oid = 'rate()'::regprocedure",
            f"BEGIN; SAVEPOINT s; UPDATE pg_proc SET prosrc = 'SELECT {next(self.fresh)}' WHERE oid = 'rate()'::regprocedure; "
            "ROLLBACK TO s; UPDATE pg_class SET reltuples = reltuples WHERE oid = 'account'::regclass; COMMIT",
            self.either("written policy", "UPDATE pg_class SET relrowsecurity = false WHERE oid = 'secret_ruled'::regclass",
                        "UPDATE pg_class SET relrowsecurity = true WHERE oid = 'secret_ruled'::regclass"),
        ))

    def refresh(self):
        return self.rng.choice(("REFRESH MATERIALIZED VIEW sales", "REFRESH MATERIALIZED VIEW CONCURRENTLY sales",
                                "BEGIN; REFRESH MATERIALIZED VIEW sales; ROLLBACK"))

    def temporary(self):
        return self.rng.choice((
            "BEGIN; CREATE TEMPORARY TABLE stock ON COMMIT DROP AS SELECT 0 AS id, 'temporary' AS what; "
            "SELECT * FROM stock; COMMIT",
            "CREATE TEMPORARY TABLE IF NOT EXISTS mine (a int); INSERT INTO mine VALUES (1); DROP TABLE mine",
        ))

    def elsewhere(self):
        return ("CREATE TABLE one.passing AS SELECT * FROM account; ALTER TABLE one.passing ADD COLUMN x int; "
                "DROP TABLE one.passing")

    def undone(self):
        return ("BEGIN; ALTER TABLE shape ADD COLUMN nobody_sees int; CREATE OR REPLACE VIEW v_customer AS "
                "SELECT id, 'undone' AS name, mood FROM customer; TRUNCATE swap_live; ROLLBACK")

    def another_database(self):
        name = self.rng.choice(("passing", "passing too"))
        return self.rng.choice((
            f"CREATE DATABASE \"{name}\" TEMPLATE template0 STRATEGY {self.rng.choice(('wal_log', 'file_copy'))}",
            f"DROP DATABASE IF EXISTS \"{name}\" WITH (FORCE)",
        ))

    def unlogged(self):
        """A standby cannot read such a table: the answer is an error."""
        return f"ALTER TABLE model SET {self.rng.choice(('UNLOGGED', 'LOGGED'))}"

    def thousands_of_subtransactions(self):
        """Every other time, since it takes a second. Each of three tables is changed by each of them: a standby cannot remember so many
        changes of a transaction that runs."""
        self.toggles["thousands"] = not self.toggles.get("thousands", False)
        if not self.toggles["thousands"]:
            return None
        return f"""BEGIN; SET LOCAL statement_timeout = '60s';
            DO $$ BEGIN
                UPDATE tenancy SET top = top + 1;
                FOR number IN 1..{self.rng.choice((10950, 12000))} LOOP
                    BEGIN
                        INSERT INTO scratch VALUES (9, number);
                        INSERT INTO scratch_two VALUES (9, number);
                        INSERT INTO scratch_three VALUES (9, number);
                        IF number % 50 = 0 THEN RAISE 'no'; END IF;
                    EXCEPTION WHEN raise_exception THEN NULL;
                    END;
                END LOOP;
                DELETE FROM scratch WHERE n > 80;
                DELETE FROM scratch_two WHERE n > 80 AND n < 10900;
                TRUNCATE scratch_three;
            END $$;
            {self.rng.choice(("COMMIT", "COMMIT", "ROLLBACK"))}"""

    # -- what is not

    def shadow(self):
        create = f"CREATE TABLE shadow.stock AS SELECT {next(self.fresh)} AS id, 'shadow'::text AS what"
        return self.either("shadow", create, "DROP TABLE shadow.stock")

    def shadow_function(self):
        create = f"CREATE FUNCTION shadow.rate() RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT {next(self.fresh)}'"
        return self.either("shadow function", create, "DROP FUNCTION shadow.rate()")

    def body(self):
        return f"CREATE OR REPLACE FUNCTION rate() RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT {next(self.fresh)}'"

    def called_body(self):
        """Of a function that another one calls, and of that other one."""
        n = next(self.fresh)
        return self.rng.choice((
            f"CREATE OR REPLACE FUNCTION step(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 + {n}'",
            f"CREATE OR REPLACE FUNCTION step(int) RETURNS int IMMUTABLE LANGUAGE sql RETURN $1 + {n}",
            f"CREATE OR REPLACE FUNCTION level(int) RETURNS int STABLE STRICT LANGUAGE sql AS 'SELECT coalesce(step($1), 0) * {n}'",
            f"CREATE OR REPLACE FUNCTION level(int) RETURNS int STABLE STRICT LANGUAGE plpgsql AS 'BEGIN RETURN step($1) - {n}; END'",
            f"BEGIN; DROP FUNCTION level(int); CREATE FUNCTION level(int) RETURNS int STABLE LANGUAGE sql AS 'SELECT step({n})'; COMMIT",
            f"BEGIN; CREATE OR REPLACE FUNCTION step(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT -{n}'; ROLLBACK",
            "ALTER FUNCTION level(int) SECURITY DEFINER", "ALTER FUNCTION level(int) SECURITY INVOKER",
            "ALTER FUNCTION level(int) VOLATILE", "ALTER FUNCTION level(int) STABLE",
        ))

    def reading_body(self):
        """Of functions that read, and the policies of what they read."""
        n = next(self.fresh)
        name, forth, back = self.rng.choice((
            ("hidden", "ALTER TABLE tenancy ENABLE ROW LEVEL SECURITY", "ALTER TABLE tenancy DISABLE ROW LEVEL SECURITY"),
            ("tenancy", "REVOKE SELECT ON tenancy FROM PUBLIC", "GRANT SELECT ON tenancy TO PUBLIC"),
            ("volatile", "ALTER FUNCTION balance_of(int) VOLATILE", "ALTER FUNCTION balance_of(int) STABLE"),
            ("immutable", "ALTER FUNCTION my_tenant() IMMUTABLE", "ALTER FUNCTION my_tenant() STABLE"),
        ))
        return self.rng.choice((
            self.either(f"reading {name}", forth, back),
            f"CREATE OR REPLACE FUNCTION balance_of(int) RETURNS numeric STABLE STRICT LANGUAGE sql AS 'SELECT balance + {n} FROM account WHERE id = $1'",
            f"CREATE OR REPLACE FUNCTION my_top() RETURNS int STABLE LANGUAGE sql BEGIN ATOMIC SELECT top + {n} % 3 FROM tenancy WHERE name = current_user; END",
            f"CREATE OR REPLACE FUNCTION seen_secrets() RETURNS bigint STABLE LANGUAGE sql AS 'SELECT count(*) + {n} FROM secret_user'",
            f"BEGIN; CREATE OR REPLACE FUNCTION seen_secrets() RETURNS bigint STABLE LANGUAGE sql AS 'SELECT -{n}::bigint'; ROLLBACK",
            f"BEGIN; DROP POLICY IF EXISTS p ON tenancy; CREATE POLICY p ON tenancy USING (name = current_user AND top <> {n}); COMMIT",
        ))

    def shadow_called(self):
        create = f"CREATE FUNCTION shadow.step(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 * {next(self.fresh)}'"
        return self.either("shadow called", create, "DROP FUNCTION shadow.step(int)")

    def labels(self):
        n = next(self.fresh)
        if n % 20 == 0:
            return f"ALTER TYPE mood ADD VALUE 'mood {n}' BEFORE 'cross'"
        return f"""DO $$ BEGIN EXECUTE format('ALTER TYPE mood RENAME VALUE %L TO %L',
            (SELECT enumlabel FROM pg_enum WHERE enumtypid = 'mood'::regtype AND enumlabel LIKE 'merry%'), 'merry {n}'); END $$"""

    def attributes(self):
        """Of a composite type."""
        return f"""DO $$ BEGIN EXECUTE format('ALTER TYPE place RENAME ATTRIBUTE %I TO %I',
            (SELECT attname FROM pg_attribute WHERE attrelid = 'place'::regclass AND attnum = 2), 'house_{next(self.fresh)}'); END $$"""

    def grants(self):
        name, forth, back = self.rng.choice((
            ("bob", "REVOKE SELECT ON vault FROM bob", "GRANT SELECT ON vault TO bob"),
            ("columns", "GRANT SELECT (id, open_part) ON vault TO carol",
             "REVOKE SELECT (id, open_part) ON vault FROM carol"),
            ("schema", "REVOKE USAGE ON SCHEMA two FROM PUBLIC", "GRANT USAGE ON SCHEMA two TO PUBLIC"),
            ("account", "REVOKE SELECT ON account FROM PUBLIC", "GRANT SELECT ON account TO PUBLIC"),
            ("undone", "BEGIN; REVOKE ALL ON vault FROM PUBLIC, alice, bob, guild; ROLLBACK", "ANALYZE vault"),
            ("function", "REVOKE EXECUTE ON FUNCTION rate() FROM PUBLIC", "GRANT EXECUTE ON FUNCTION rate() TO PUBLIC"),
        ))
        return self.either(name, forth, back)

    def roles(self):
        name, forth, back = self.rng.choice((
            ("member", "GRANT guild TO carol", "REVOKE guild FROM carol"),
            ("bypass", "ALTER ROLE carol BYPASSRLS", "ALTER ROLE carol NOBYPASSRLS"),
            ("owner", "GRANT alice TO bob", "REVOKE alice FROM bob"),
            ("again", RECREATE, f"{RECREATE}; GRANT SELECT ON vault TO dora"),
            ("again", RECREATE, f"{RECREATE} BYPASSRLS"),
        ))
        return self.either(f"role {name}", forth, back)


CHANGES = {
    "rename swap": Definitions.rename_swap,
    "columns": Definitions.columns,
    "generated columns": Definitions.generated,
    "drop and create": Definitions.drop_and_create,
    "view": Definitions.view,
    "attach, detach": Definitions.attach,
    "detach concurrently": Definitions.detach_concurrently,
    "attach again": Definitions.attach_again,
    "finalize detach": Definitions.finalize,
    "inherit": Definitions.inherit,
    "policy": Definitions.policy,
    "index": Definitions.index,
    "maintenance": Definitions.maintenance,
    "leftovers": Definitions.leftovers,
    "catalogs": Definitions.catalogs,
    "tablespace": Definitions.tablespace,
    "written catalog": Definitions.written_catalog,
    "refresh": Definitions.refresh,
    "temporary table": Definitions.temporary,
    "table elsewhere": Definitions.elsewhere,
    "undone definition": Definitions.undone,
    "shadow table": Definitions.shadow,
    "shadow function": Definitions.shadow_function,
    "function body": Definitions.body,
    "called function": Definitions.called_body,
    "shadow called function": Definitions.shadow_called,
    "function that reads": Definitions.reading_body,
    "enum labels": Definitions.labels,
    "attributes": Definitions.attributes,
    "grants": Definitions.grants,
    "roles": Definitions.roles,
}
# Those that only the primary of a standby makes. They take long on the server of the suite oracle, which syncs, or matter to replay only.
ON_PRIMARIES = {
    "another database": Definitions.another_database,
    "unlogged": Definitions.unlogged,
    "thousands of subtransactions": Definitions.thousands_of_subtransactions,
}
# Changes that only repair the failure of another one; a run may pass without them.
NOT_ALWAYS = {"finalize detach"}
