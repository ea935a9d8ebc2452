-- What a DBA and users have made of the extension: rights, comments, a trigger, a view and a function of their own.
CREATE TABLE noted (a int);
CREATE TRIGGER "tells: feed" AFTER INSERT OR UPDATE ON noted FOR EACH STATEMENT
    EXECUTE FUNCTION arrow_cache.invalidate_on_change('feed', '"Odd Schema"."Sales ""2026"""');
CREATE TRIGGER switched_off AFTER DELETE ON noted FOR EACH STATEMENT EXECUTE FUNCTION arrow_cache.invalidate_on_change();
ALTER TABLE noted DISABLE TRIGGER switched_off;
CREATE VIEW my_stats AS SELECT s.hits, s.entries, arrow_cache.last_status() AS status FROM arrow_cache.stats AS s;
CREATE FUNCTION my_flush() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT arrow_cache.flush(); END;
GRANT EXECUTE ON FUNCTION arrow_cache.flush(), arrow_cache.invalidate(regclass) TO dba;
GRANT EXECUTE ON FUNCTION arrow_cache.query(text, "any") TO "Odd ""role""" WITH GRANT OPTION;
REVOKE EXECUTE ON FUNCTION arrow_cache.why(text) FROM PUBLIC;
REVOKE SELECT ON arrow_cache.bypass_reasons FROM PUBLIC;
GRANT SELECT ON arrow_cache.bypass_reasons TO dba;
COMMENT ON FUNCTION arrow_cache.flush() IS 'only dba';
