"""The current schema is part of the key: it follows from search_path, from the schemas that there are, and from the rights of the role."""

QUERY = "SELECT id, {} AS schema FROM public.named WHERE id < 3 ORDER BY id"
WORDS = "current_schema()", "CURRENT_SCHEMA", "current_schema"


def answers(session, word):
    """What the cache answers, twice, and what executing gives; and what became of the second."""
    query = QUERY.format(word)
    found = [session.rows(query), session.rows(query)]
    outcome = session.outcome()
    assert found == [session.uncached(query)] * 2
    return found[0], outcome


def test_follows_path_schemas_and_rights(administrator, connect):
    administrator.execute("""
        DROP SCHEMA IF EXISTS first_schema, second_schema, renamed_schema CASCADE; DROP TABLE IF EXISTS public.named; DROP ROLE IF EXISTS schema_reader;
        CREATE TABLE public.named AS SELECT id FROM generate_series(1, 5) id; CREATE SCHEMA second_schema;
        CREATE ROLE schema_reader LOGIN; GRANT SELECT ON public.named TO schema_reader; GRANT USAGE ON SCHEMA second_schema TO schema_reader""")
    session = connect()
    session.autocommit = True
    for word in WORDS:
        session.execute("RESET ROLE; SET search_path = first_schema, second_schema, public")
        assert answers(session, word) == ([(1, "second_schema"), (2, "second_schema")], ("HIT", None))
        administrator.execute("CREATE SCHEMA first_schema")
        assert answers(session, word) == ([(1, "first_schema"), (2, "first_schema")], ("HIT", None))
        session.execute("SET ROLE schema_reader")
        assert answers(session, word)[0][0] == (1, "second_schema")
        administrator.execute("GRANT USAGE ON SCHEMA first_schema TO schema_reader")
        assert answers(session, word)[0][0] == (1, "first_schema")
        session.execute("RESET ROLE")
        administrator.execute("ALTER SCHEMA first_schema RENAME TO renamed_schema")
        assert answers(session, word)[0][0] == (1, "second_schema")
        administrator.execute("ALTER SCHEMA second_schema RENAME TO first_schema")
        assert answers(session, word)[0][0] == (1, "first_schema")
        administrator.execute("ALTER SCHEMA first_schema RENAME TO second_schema; DROP SCHEMA renamed_schema")
        for path, schema in ("pg_catalog, public", "pg_catalog"), ("public", "public"), ("nowhere", None), ("", None), ('"$user"', None):
            session.execute("SELECT set_config('search_path', %s, false)", [path])
            assert answers(session, word) == ([(1, schema), (2, schema)], ("HIT", None)), path
    administrator.execute("DROP TABLE public.named; DROP SCHEMA second_schema; DROP OWNED BY schema_reader; DROP ROLE schema_reader")


def test_the_schema_of_temporary_objects_is_never_made(administrator, connect):
    """Asking for the current schema makes it, if the path names it first. Asking the cache does not."""
    administrator.execute("DROP TABLE IF EXISTS public.named; CREATE TABLE public.named AS SELECT id FROM generate_series(1, 5) id")
    for path in "pg_temp, public", 'public, "pg_temp"':
        session = connect()
        session.autocommit = True
        session.execute("SELECT set_config('search_path', %s, false)", [path])
        for word in WORDS:
            [(cacheable, reason)] = session.rows("SELECT cacheable, reason FROM arrow_cache.why(%s)", [QUERY.format(word)])
            assert session.rows("SELECT pg_my_temp_schema() = 0") == [(True,)], (path, cacheable, reason)
        for _ in range(2):
            session.rows(QUERY.format("current_schema()"))
            assert session.outcome() == ("BYPASS", "session_function")
    administrator.execute("DROP TABLE public.named")
