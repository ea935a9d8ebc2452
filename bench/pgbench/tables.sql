BEGIN;
CREATE TEMPORARY TABLE scratch (id int PRIMARY KEY, value text) ON COMMIT DROP;
INSERT INTO scratch SELECT g, 'value ' || g FROM generate_series(1, 100) AS g;
COMMIT;
CREATE TABLE kept_:client_id AS SELECT g AS id, 'value ' || g AS value FROM generate_series(1, 100) AS g;
CREATE INDEX ON kept_:client_id (value);
ALTER TABLE kept_:client_id ADD added int DEFAULT 1;
DROP TABLE kept_:client_id;
