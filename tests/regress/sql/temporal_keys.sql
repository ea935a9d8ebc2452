-- Keys WITHOUT OVERLAPS and foreign keys with PERIOD. They are checked by a GiST index and by triggers, and the planner must not take the former for keys: several
-- rows may have the same scalar part.
\set status 'SELECT arrow_cache.last_status() AS status, arrow_cache.last_reason() AS reason;'
\pset footer off
\pset format unaligned
\pset null '-'
CREATE TABLE room (id int4range, valid daterange, seats int, PRIMARY KEY (id, valid WITHOUT OVERLAPS));
CREATE TABLE booking (no int, room int4range, during daterange, FOREIGN KEY (room, PERIOD during) REFERENCES room (id, PERIOD valid));
INSERT INTO room VALUES ('[1,2)', '[2026-01-01,2026-02-01)', 10), ('[1,2)', '[2026-02-01,2026-03-01)', 20), ('[2,3)', '[2026-01-01,2026-03-01)', 5);
INSERT INTO booking VALUES (1, '[1,2)', '[2026-01-15,2026-02-15)'), (2, '[2,3)', '[2026-01-05,2026-01-06)');
-- Two rows of the key match one booking: neither the join nor the group may go.
SELECT no, seats FROM booking LEFT JOIN room ON id = room AND valid && during ORDER BY no, seats;
SELECT no, seats FROM booking LEFT JOIN room ON id = room AND valid && during ORDER BY no, seats;
:status
SELECT count(*) FROM booking LEFT JOIN room ON id = room;
SELECT count(*) FROM booking LEFT JOIN room ON id = room;
:status
SELECT id, valid, seats, count(*) FROM room GROUP BY id, valid, seats ORDER BY valid, id;
SELECT id, valid, seats, count(*) FROM room GROUP BY id, valid, seats ORDER BY valid, id;
:status
SELECT r.seats FROM room r JOIN room s ON r.id = s.id AND r.valid = s.valid WHERE s.seats > 9 ORDER BY 1;
SELECT r.seats FROM room r JOIN room s ON r.id = s.id AND r.valid = s.valid WHERE s.seats > 9 ORDER BY 1;
:status
SELECT r.seats FROM room r WHERE r.valid @> date '2026-02-03' ORDER BY 1;
SELECT r.seats FROM room r WHERE r.valid @> date '2026-02-03' ORDER BY 1;
:status
-- A row that the key refuses changes nothing; one that it lets in does.
INSERT INTO room VALUES ('[1,2)', '[2026-02-20,2026-04-01)', 30);
INSERT INTO booking VALUES (3, '[1,2)', '[2026-02-20,2026-04-01)');
DELETE FROM room WHERE seats = 20;
SELECT count(*) FROM booking LEFT JOIN room ON id = room;
INSERT INTO room VALUES ('[1,2)', '[2026-03-01,2026-04-01)', 30);
SELECT count(*) FROM booking LEFT JOIN room ON id = room;
:status
INSERT INTO booking VALUES (3, '[1,2)', '[2026-02-20,2026-04-01)');
SELECT no, seats FROM booking LEFT JOIN room ON id = room AND valid && during ORDER BY no, seats;
:status
-- Without the key the same rows come out, and a row that overlaps may come in.
SELECT r.seats FROM room r JOIN room s ON r.id = s.id AND r.valid = s.valid WHERE s.seats > 9 ORDER BY 1;
SELECT r.seats FROM room r JOIN room s ON r.id = s.id AND r.valid = s.valid WHERE s.seats > 9 ORDER BY 1;
:status
ALTER TABLE room DROP CONSTRAINT room_pkey CASCADE;
INSERT INTO room VALUES ('[1,2)', '[2026-03-01,2026-04-01)', 31);
SELECT r.seats FROM room r JOIN room s ON r.id = s.id AND r.valid = s.valid WHERE s.seats > 9 ORDER BY 1;
:status
DROP TABLE booking, room;
SELECT arrow_cache.flush() >= 0 AS flushed;
TABLE cache_leftovers;
