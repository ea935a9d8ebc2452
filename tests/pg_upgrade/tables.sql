-- What each database of the old cluster has, with the extension or without: relations of all kinds that can have a policy, and odd names.
CREATE SCHEMA "Odd Schema";
CREATE TABLE "Odd Schema"."Sales ""2026""" ("a.b ""c""" text, "Net €" numeric);
INSERT INTO "Odd Schema"."Sales ""2026""" SELECT 'part ' || g % 3, g FROM generate_series(1, 300) AS g;
CREATE TABLE parted (a int, note text) PARTITION BY LIST (a);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2);
INSERT INTO parted SELECT 1 + g % 2, 'note ' || g FROM generate_series(1, 100) AS g;
CREATE TABLE "Parted; never" (a int) PARTITION BY LIST (a);
CREATE TABLE "Parted; never 1" PARTITION OF "Parted; never" FOR VALUES IN (1);
INSERT INTO "Parted; never" VALUES (1);
CREATE TABLE half (a int) PARTITION BY LIST (a);
CREATE TABLE half_1 PARTITION OF half FOR VALUES IN (1);
CREATE TABLE half_2 PARTITION OF half FOR VALUES IN (2);
INSERT INTO half VALUES (1), (2);
CREATE TABLE plain (a int);
INSERT INTO plain VALUES (1), (2);
CREATE VIEW "over plain" AS SELECT a FROM plain;
CREATE MATERIALIZED VIEW stored AS SELECT sum(a) AS total FROM plain;
CREATE TABLE "Odd Schema"."its own" (a int);
INSERT INTO "Odd Schema"."its own" VALUES (7);
ALTER TABLE "Odd Schema"."its own" OWNER TO "Odd ""role""";
GRANT USAGE ON SCHEMA "Odd Schema" TO "Odd ""role""";
CREATE EXTENSION file_fdw;
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
SELECT format('COPY (SELECT %s) TO %L', 1, :'file') \gexec
SELECT format('CREATE FOREIGN TABLE feed (a int) SERVER files OPTIONS (filename %L)', :'file') \gexec
