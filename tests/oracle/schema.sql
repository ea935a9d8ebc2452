-- The database of the oracle: few rows, many kinds of objects. Loaded once, by the superuser.

CREATE ROLE alice;
CREATE ROLE bob;
CREATE ROLE carol;
CREATE ROLE dora;                        -- dropped and created again
CREATE ROLE guild;                       -- its members come and go
GRANT CREATE ON SCHEMA public TO alice;

CREATE SCHEMA one;
CREATE SCHEMA two;
CREATE SCHEMA shadow;                    -- first in some search paths; tables appear here and go again
GRANT USAGE ON SCHEMA one, two, shadow TO PUBLIC;

-- Pairs: in every committed state all rows of a group have one version, and the two tables of a pair are equal.
-- Nobody changes the definition of these tables, nor truncates them.

CREATE TABLE hot_a (grp int, n int, version bigint, PRIMARY KEY (grp, n)) WITH (fillfactor = 30);
CREATE TABLE hot_b (LIKE hot_a INCLUDING ALL);
CREATE TABLE warm_a (LIKE hot_a INCLUDING ALL);
CREATE TABLE warm_b (LIKE hot_a INCLUDING ALL);
CREATE TABLE linked_a (LIKE hot_a INCLUDING ALL);
CREATE TABLE linked_b (LIKE hot_a INCLUDING ALL);
CREATE TABLE late_a (LIKE hot_a INCLUDING ALL);
CREATE TABLE late_b (LIKE hot_a INCLUDING ALL);
CREATE TABLE cool_a (grp int, n int, version bigint, PRIMARY KEY (grp, n)) PARTITION BY LIST (grp);
CREATE TABLE cool_a_0 PARTITION OF cool_a FOR VALUES IN (0, 1);
CREATE TABLE cool_a_1 PARTITION OF cool_a FOR VALUES IN (2, 3);
CREATE TABLE cool_b (grp int, n int, version bigint);
CREATE TABLE cool_b_1 () INHERITS (cool_b);

INSERT INTO hot_a SELECT grp, n, 1 FROM generate_series(0, 3) grp, generate_series(0, 2) n;
INSERT INTO hot_b TABLE hot_a;
INSERT INTO warm_a TABLE hot_a;
INSERT INTO warm_b TABLE hot_a;
INSERT INTO linked_a TABLE hot_a;
INSERT INTO linked_b TABLE hot_a;
INSERT INTO late_a TABLE hot_a;
INSERT INTO late_b TABLE hot_a;
INSERT INTO cool_a TABLE hot_a;
INSERT INTO cool_b SELECT * FROM hot_a WHERE grp < 2;
INSERT INTO cool_b_1 SELECT * FROM hot_a WHERE grp >= 2;

CREATE FUNCTION copy_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('UPDATE %I SET version = $1 WHERE grp = $2 AND n = $3', TG_ARGV[0])
        USING NEW.version, NEW.grp, NEW.n;
    RETURN NULL;
END $$;
CREATE TRIGGER copy AFTER UPDATE ON linked_a FOR EACH ROW EXECUTE FUNCTION copy_version('linked_b');
CREATE CONSTRAINT TRIGGER copy AFTER UPDATE ON late_a DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION copy_version('late_b');

CREATE FUNCTION bump(pair text, which int) RETURNS TABLE (grp int, version bigint) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('UPDATE %I t SET version = t.version + 1 WHERE t.grp = $1', pair || '_a') USING which;
    RETURN QUERY EXECUTE format(
        'UPDATE %I t SET version = t.version + 1 WHERE t.grp = $1 RETURNING t.grp, t.version', pair || '_b')
        USING which;
END $$;
CREATE PROCEDURE bump_thrice(pair text, which int) LANGUAGE plpgsql AS $$
BEGIN
    FOR round IN 1..3 LOOP
        PERFORM bump(pair, which);
        IF round = 2 THEN ROLLBACK; ELSE COMMIT; END IF;
    END LOOP;
END $$;

-- What many subtransactions leave behind.
CREATE TABLE scratch (grp int, n int);
CREATE TABLE scratch_two (LIKE scratch);
CREATE TABLE scratch_three (LIKE scratch);

-- Cascades.

CREATE TYPE mood AS ENUM ('calm', 'merry', 'cross');
CREATE DOMAIN price AS numeric(10, 2);
CREATE TYPE place AS (street text, house int);

CREATE TABLE customer (id int PRIMARY KEY, name text, mood mood, since timestamptz, tags text[], home place, note text);
CREATE TABLE orders (id int PRIMARY KEY, customer int REFERENCES customer ON DELETE CASCADE ON UPDATE CASCADE,
                     amount price, placed timestamp, doc jsonb);
CREATE TABLE line (id int PRIMARY KEY, order_id int REFERENCES orders ON DELETE CASCADE, quantity int, until date);
CREATE TABLE wish (customer int REFERENCES customer ON DELETE SET NULL, what text);
INSERT INTO customer
SELECT g, 'customer ' || g, (enum_range(NULL::mood))[1 + g % 3],
       timestamptz '2024-01-01 12:00+00' + g * interval '36 hours',
       ARRAY['t' || g % 3, NULL], ROW('street ' || g % 4, g)::place, repeat('x', g)
FROM generate_series(1, 20) g;
INSERT INTO orders
SELECT g, 1 + g % 20, g * 1.25, timestamp '2024-02-01' + g * interval '5 hours',
       jsonb_build_object('n', g, 'deep', ARRAY[g, -g])
FROM generate_series(1, 40) g;
INSERT INTO line SELECT g, 1 + g % 40, g % 7, date '2024-03-01' + g FROM generate_series(1, 60) g;
INSERT INTO wish SELECT 1 + g % 20, 'wish ' || g FROM generate_series(1, 15) g;

-- Triggers that copy: by row, and by statement with transition tables.

CREATE TABLE account (id int PRIMARY KEY, owner text, balance numeric);
CREATE TABLE account_log (id int, was numeric, became numeric);
CREATE TABLE account_total (changes bigint, total numeric);
INSERT INTO account_total VALUES (0, 0);
CREATE FUNCTION log_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM account_log WHERE id = coalesce(NEW.id, OLD.id);
    INSERT INTO account_log VALUES (coalesce(NEW.id, OLD.id), OLD.balance, NEW.balance);
    RETURN NULL;
END $$;
CREATE FUNCTION total_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE account_total SET changes = changes + 1, total = (SELECT sum(balance) FROM account);
    RETURN NULL;
END $$;
CREATE TRIGGER log AFTER INSERT OR UPDATE OR DELETE ON account FOR EACH ROW EXECUTE FUNCTION log_account();
CREATE TRIGGER total AFTER INSERT OR UPDATE OR DELETE ON account FOR EACH STATEMENT EXECUTE FUNCTION total_account();
INSERT INTO account SELECT g, (ARRAY['alice', 'bob', 'carol'])[1 + g % 3], g * 10.5 FROM generate_series(1, 12) g;
CREATE FUNCTION pay(who int, how_much numeric) RETURNS numeric LANGUAGE sql
    AS 'UPDATE account SET balance = balance + how_much WHERE id = who RETURNING balance';
CREATE PROCEDURE pay_in_steps(who int) LANGUAGE plpgsql AS $$
BEGIN
    FOR step IN 1..3 LOOP
        UPDATE account SET balance = balance + step WHERE id = who;
        IF step = 2 THEN ROLLBACK; ELSE COMMIT; END IF;
    END LOOP;
END $$;

-- Partitions and inheritance.

CREATE TABLE measure (day int, kind text, value float8) PARTITION BY RANGE (day);
CREATE TABLE measure_0 PARTITION OF measure FOR VALUES FROM (0) TO (10);
CREATE TABLE measure_1 PARTITION OF measure FOR VALUES FROM (10) TO (20) PARTITION BY LIST (kind);
CREATE TABLE measure_1_x PARTITION OF measure_1 FOR VALUES IN ('x');
CREATE TABLE measure_1_y PARTITION OF measure_1 FOR VALUES IN ('y', 'z');
CREATE TABLE measure_2 PARTITION OF measure FOR VALUES FROM (20) TO (30);
CREATE TABLE measure_3 PARTITION OF measure FOR VALUES FROM (30) TO (40);
INSERT INTO measure SELECT g, (ARRAY['x', 'y', 'z'])[1 + g % 3], g / 4.0 FROM generate_series(0, 39) g;

CREATE TABLE animal (id int, name text);
CREATE TABLE cat (lives int) INHERITS (animal);
CREATE TABLE dog (id int, name text, tricks text[]);
ALTER TABLE dog INHERIT animal;
INSERT INTO animal SELECT g, 'animal ' || g FROM generate_series(1, 5) g;
INSERT INTO cat SELECT g, 'cat ' || g, 9 FROM generate_series(6, 10) g;
INSERT INTO dog SELECT g, 'dog ' || g, ARRAY['sit'] FROM generate_series(11, 15) g;

-- What changes its definition.

CREATE TABLE event (id int, at timestamptz, what text);
INSERT INTO event SELECT g, timestamptz '2024-06-01 00:00+02' + g * interval '1 hour', 'event ' || g
FROM generate_series(1, 10) g;
CREATE INDEX event_at ON event (at);
CREATE INDEX customer_since ON customer (since DESC NULLS LAST);
CREATE TABLE swap_live (id int, side text);
CREATE TABLE swap_spare (id int, side text);
INSERT INTO swap_live SELECT g, 'left' FROM generate_series(1, 5) g;
INSERT INTO swap_spare SELECT g, 'right' FROM generate_series(1, 6) g;
CREATE TABLE shape (id int PRIMARY KEY, a int, b text);
INSERT INTO shape SELECT g, g * g, 'b' || g FROM generate_series(1, 8) g;
-- Generated columns, whose expressions change: virtual from 18 on, stored before. A part has an expression of its own where that is possible.
DO $$
DECLARE kind text := CASE WHEN current_setting('server_version_num')::int >= 180000 THEN 'VIRTUAL' ELSE 'STORED' END;
BEGIN
    EXECUTE format($ddl$
        CREATE TABLE made (id int, a int, times int GENERATED ALWAYS AS (a * 2) %1$s, label text GENERATED ALWAYS AS ('m' || a::text) %1$s) PARTITION BY LIST (id);
        CREATE TABLE made_odd PARTITION OF made FOR VALUES IN (1, 3, 5);
        CREATE TABLE made_even PARTITION OF made FOR VALUES IN (2, 4, 6);
    $ddl$, kind);
    IF kind = 'VIRTUAL' THEN
        EXECUTE 'ALTER TABLE made_even ALTER times SET EXPRESSION AS (a * 1000)';
    END IF;
END $$;
INSERT INTO made SELECT g, g FROM generate_series(1, 6) g;
CREATE TABLE model AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer;
CREATE FUNCTION rate() RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 1';
-- Not put in the place of its call, because it is STRICT: the server resolves the name in its body when it runs.
CREATE FUNCTION step(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 + 1';
CREATE FUNCTION level(int) RETURNS int STABLE STRICT LANGUAGE sql AS 'SELECT coalesce(step($1), 0)';
CREATE FUNCTION tenant() RETURNS text STABLE LANGUAGE sql AS $$ SELECT current_setting('app.tenant', true) $$;
CREATE VIEW v_customer AS SELECT id, name, mood FROM customer WHERE id > 3;
CREATE VIEW v_orders WITH (security_barrier) AS
    SELECT o.id, c.name, o.amount FROM orders o JOIN customer c ON c.id = o.customer;
CREATE VIEW v_changing AS SELECT id, balance FROM account;
CREATE VIEW v_rate AS SELECT id, balance * rate() AS balance FROM account;
CREATE MATERIALIZED VIEW sales AS
    SELECT c.id, c.name, count(o.id) AS orders, sum(o.amount) AS amount
    FROM customer c LEFT JOIN orders o ON o.customer = c.id GROUP BY c.id;
CREATE UNIQUE INDEX sales_id ON sales (id);

-- Who may see what.

CREATE TABLE vault (id int PRIMARY KEY, owner text, open_part text, closed_part text);
INSERT INTO vault SELECT g, (ARRAY['alice', 'bob', 'carol'])[1 + g % 3], 'open ' || g, 'closed ' || g
FROM generate_series(1, 9) g;
CREATE VIEW v_vault AS SELECT id, owner, open_part FROM vault;
CREATE VIEW v_vault_invoker WITH (security_invoker) AS SELECT id, owner, open_part FROM vault;
CREATE TABLE secret_user (id int, owner text, what text);
CREATE TABLE secret_tenant (id int, tenant text, what text);
INSERT INTO secret_user SELECT id, owner, closed_part FROM vault;
INSERT INTO secret_tenant SELECT id, 't' || id % 3, closed_part FROM vault;
ALTER TABLE secret_user ENABLE ROW LEVEL SECURITY;
ALTER TABLE secret_tenant ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON secret_user USING (owner = current_user);
CREATE POLICY tenant ON secret_tenant USING (tenant = current_setting('app.tenant', true));
ALTER TABLE secret_user OWNER TO alice;          -- whom the policy binds only while it is forced

-- What functions read, and a policy that calls one of them.
CREATE TABLE tenancy (name name PRIMARY KEY, tenant text, top int);
INSERT INTO tenancy VALUES ('postgres', 't0', 9), ('alice', 't1', 4), ('bob', 't2', 6), ('carol', 't0', 2), ('dora', 't1', 9);
CREATE FUNCTION my_tenant() RETURNS text STABLE LANGUAGE sql AS 'SELECT tenant FROM tenancy WHERE name = current_user';
CREATE FUNCTION my_top() RETURNS int STABLE LANGUAGE sql BEGIN ATOMIC SELECT top FROM tenancy WHERE name = current_user; END;
CREATE FUNCTION balance_of(int) RETURNS numeric STABLE STRICT LANGUAGE sql AS 'SELECT balance FROM account WHERE id = $1';
CREATE FUNCTION seen_secrets() RETURNS bigint STABLE LANGUAGE sql AS 'SELECT count(*) FROM secret_user';
CREATE FUNCTION seen_customers() RETURNS bigint STABLE LANGUAGE sql AS 'SELECT count(*) + (SELECT count(*) FROM v_changing WHERE balance > 50) FROM v_customer';
-- Declared by their owner, who promises that the names in them stand for nothing else.
CREATE FUNCTION declared_tenant() RETURNS text STABLE LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN RETURN (SELECT tenant FROM public.tenancy WHERE name = current_user); END $$;
CREATE FUNCTION declared_balance(which int) RETURNS numeric STABLE LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE found numeric;
BEGIN
    IF which > 6 THEN SELECT sum(quantity) INTO found FROM public.line WHERE id < which * 2;
    ELSE SELECT a.balance + public.rate() INTO found FROM public.account a WHERE a.id = which; END IF;
    RETURN found;
END $$;
-- A primary that does not preload the library lacks the provider of the labels. It may have got them from an earlier time.
DO $$
BEGIN
    SECURITY LABEL FOR pg_arrow_cache ON FUNCTION declared_tenant() IS 'pure';
    SECURITY LABEL FOR pg_arrow_cache ON FUNCTION declared_balance(int) IS 'pure';
EXCEPTION WHEN invalid_parameter_value THEN
    INSERT INTO pg_seclabel SELECT f, 'pg_proc'::regclass, 0, 'pg_arrow_cache', 'pure'
    FROM unnest(ARRAY['declared_tenant()', 'declared_balance(int)']::regprocedure[]) f;
END $$;
CREATE TABLE secret_ruled (id int, tenant text, what text);
INSERT INTO secret_ruled SELECT id, 't' || id % 3, open_part FROM vault;
CREATE TABLE secret_declared AS TABLE secret_ruled;
ALTER TABLE secret_declared ENABLE ROW LEVEL SECURITY;
CREATE POLICY declared ON secret_declared USING (tenant = declared_tenant());
ALTER TABLE secret_ruled ENABLE ROW LEVEL SECURITY;
CREATE POLICY ruled ON secret_ruled USING (tenant = my_tenant() OR id < my_top());

SET check_function_bodies = off;
-- Its table is found by the reader's search_path.
CREATE FUNCTION named_in_stock(int) RETURNS text STABLE LANGUAGE sql AS 'SELECT max(what) FROM stock WHERE id <> $1';
RESET check_function_bodies;

CREATE TABLE one.stock (id int, what text);
CREATE TABLE two.stock (LIKE one.stock);
INSERT INTO one.stock SELECT g, 'one ' || g FROM generate_series(1, 4) g;
INSERT INTO two.stock SELECT g, 'two ' || g FROM generate_series(1, 5) g;

GRANT SELECT ON ALL TABLES IN SCHEMA public, one, two TO PUBLIC;
REVOKE SELECT ON vault FROM PUBLIC;
GRANT SELECT ON vault TO alice, bob, guild;
ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC;
