-- Which functions of PostGIS 3.3 are cached once it is trusted. Not part of `make test`, which does not install PostGIS. In a database of a server that
-- preloads the library: psql -v ON_ERROR_STOP=1 -f tests/others/postgis.sql
BEGIN;
CREATE EXTENSION IF NOT EXISTS postgis;
CREATE TEMPORARY TABLE expected (cacheable boolean, query text);
CREATE TABLE poi AS SELECT i AS id, ST_SetSRID(ST_MakePoint(i, i), 3857) AS geom, ST_Point(i % 90, i % 90)::geography AS place FROM generate_series(1, 1000) i;
COMMIT;
CREATE INDEX ON poi USING gist (geom);
ANALYZE poi;
INSERT INTO expected VALUES
    (true, 'SELECT count(*) FROM poi WHERE geom && ST_MakeEnvelope(0, 0, 300, 300, 3857)'),
    (true, 'SELECT ST_X(geom), ST_Y(geom), ST_SRID(geom), ST_AsText(geom) FROM poi WHERE id < 10'),
    (true, 'SELECT id FROM poi WHERE ST_Intersects(geom, ST_MakeEnvelope(0, 0, 30, 30, 3857))'),
    (true, 'SELECT id FROM poi WHERE ST_DWithin(geom, ST_SetSRID(ST_MakePoint(5, 5), 3857), 10)'),
    (true, 'SELECT id FROM poi ORDER BY geom <-> ST_SetSRID(ST_MakePoint(5, 5), 3857) LIMIT 5'),
    (true, 'SELECT geom, count(*) FROM poi GROUP BY geom'),
    (true, 'SELECT ST_AsBinary(ST_Buffer(ST_Centroid(geom), 2)) FROM poi'),
    (true, 'SELECT ST_AsMVTGeom(geom, ST_TileEnvelope(4, 8, 8)) FROM poi'),
    (true, 'SELECT ST_Extent(geom), ST_Union(geom) FROM poi'),
    (true, 'SELECT (ST_DumpPoints(geom)).geom, id FROM poi'),
    (true, 'SELECT g.geom FROM poi, ST_SquareGrid(100, poi.geom) g'),
    (false, 'SELECT ST_Transform(geom, 4326) FROM poi'),
    (false, 'SELECT ST_AsGeoJSON(geom) FROM poi'),
    (false, 'SELECT geom::json FROM poi'),
    (false, 'SELECT ST_GeomFromGeoJSON(''{"type":"Point","coordinates":[1,2]}''::text || left(id::text, 0)) FROM poi'),
    (false, 'SELECT ST_AsGML(geom) FROM poi'),
    (false, 'SELECT ST_AsKML(geom) FROM poi'),
    (false, 'SELECT ST_AsTWKB(geom) FROM poi'),
    (false, 'SELECT ST_GeneratePoints(geom, 3, 7) FROM poi'),
    (false, 'SELECT ST_Area(place) FROM poi'),
    (false, 'SELECT ST_Distance(place, place) FROM poi'),
    (false, 'SELECT geom::geography FROM poi'),
    (false, 'SELECT ST_AsMVT(poi) FROM poi'),
    (false, 'SELECT PostGIS_Full_Version() FROM poi');
SET pg_arrow_cache.trusted_extensions = '';
DO $$ DECLARE e expected; BEGIN
    FOR e IN SELECT * FROM expected LOOP
        ASSERT NOT (SELECT cacheable FROM arrow_cache.why(e.query)), 'not trusted: ' || e.query;
    END LOOP;
END $$;
SET pg_arrow_cache.trusted_extensions = 'postgis';
DO $$ DECLARE e expected; why record; BEGIN
    FOR e IN SELECT * FROM expected LOOP
        SELECT * INTO why FROM arrow_cache.why(e.query);
        ASSERT why.cacheable = e.cacheable, e.query || ': ' || why.detail;
    END LOOP;
END $$;
-- A version that nobody has judged.
SELECT extversion AS version FROM pg_extension WHERE extname = 'postgis' \gset
UPDATE pg_extension SET extversion = '9.9.9' WHERE extname = 'postgis';
DO $$ BEGIN
    ASSERT NOT (SELECT cacheable FROM arrow_cache.why('SELECT ST_X(geom), ''9.9'' FROM poi')), 'another version';
END $$;
UPDATE pg_extension SET extversion = :'version' WHERE extname = 'postgis';
DROP TABLE poi;
