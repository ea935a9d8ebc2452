"""Who may see what: the texts of stored results, and what a query reads, only with the permissions for it."""

import psycopg
import pytest

PEOPLE = ("who_owner", "who_reader", "who_outsider", "who_monitor")


@pytest.fixture
def people(connect, session):
    """A session for each role, in the schema of the test. The owner's table has a view that the reader may read."""
    for role in PEOPLE:
        session.execute(f"CREATE ROLE {role}; GRANT USAGE ON SCHEMA {connect.schema} TO {role}")
    session.execute(f"GRANT pg_read_all_stats TO who_monitor; GRANT CREATE ON SCHEMA {connect.schema} TO who_owner")
    sessions = {role.removeprefix("who_"): connect(f"-c role={role}") for role in PEOPLE}
    sessions["owner"].execute("""
        CREATE TABLE secret (id int, open text, hidden text);
        INSERT INTO secret VALUES (1, 'public', 'private');
        CREATE TABLE notes (id int, who name);
        CREATE VIEW open_secret AS SELECT id, open FROM secret;
        GRANT SELECT ON open_secret TO who_reader;
        CREATE TABLE fenced (id int);
        ALTER TABLE fenced ENABLE ROW LEVEL SECURITY;
        CREATE POLICY own ON fenced USING (EXISTS (SELECT FROM notes WHERE notes.id = fenced.id AND who = current_user));
        GRANT SELECT ON fenced TO who_reader;
    """)
    yield sessions
    for one in sessions.values():
        one.close()
    session.execute(f"SET client_min_messages = warning; DROP OWNED BY {', '.join(PEOPLE)} CASCADE; DROP ROLE {', '.join(PEOPLE)}")


def stored(session, query):
    session.execute(query)
    session.execute(query)
    assert session.status() == "HIT"


def test_entries_of_others_are_not_shown(people):
    owner, reader = people["owner"], people["reader"]
    owner.execute("SET pg_arrow_cache.enabled = on")
    stored(owner, "SELECT open, hidden FROM secret")
    stored(reader, "SELECT open FROM open_secret")
    assert owner.rows("SELECT query, row_count, hits FROM arrow_cache.entries") == [("SELECT open, hidden FROM secret", 1, 1)]
    assert reader.rows("SELECT query, row_count, hits FROM arrow_cache.entries") == [("SELECT open FROM open_secret", 1, 1)]
    for view, function in ("entries", "entries_data()"), ("relations", "relations_data()"):
        assert people["outsider"].rows(f"SELECT * FROM arrow_cache.{view}") == []
        assert people["outsider"].rows(f"SELECT * FROM arrow_cache.{function}") == []
    assert len(people["monitor"].rows("SELECT FROM arrow_cache.entries WHERE query IS NOT NULL")) == 2
    assert len(people["monitor"].rows("SELECT FROM arrow_cache.entries_data() WHERE query IS NOT NULL")) == 2
    # A relation counts the results that one may see.
    counts = "SELECT entries FROM arrow_cache.relations WHERE relation = 'secret'::regclass"
    assert owner.rows(counts) == [(1,)]
    # The reader reads the view, not the table behind it: neither its name nor when it changes.
    assert reader.rows("SELECT relation::text FROM arrow_cache.relations") == [("open_secret",)]
    assert reader.rows("SELECT relations::text FROM arrow_cache.entries") == [("{open_secret}",)]
    assert owner.rows("SELECT relations::text FROM arrow_cache.entries") == [("{secret}",)]
    assert people["monitor"].rows(counts) == [(2,)]
    assert people["outsider"].rows("SELECT entries >= 2 FROM arrow_cache.stats") == [(True,)]


def test_a_condition_of_the_reader_sees_no_hidden_row(people, connect):
    """The planner may run a function in WHERE before a view has filtered its rows. The function must not see rows that
    the reader may not see."""
    stored(people["owner"], "SELECT open, hidden FROM secret")
    outsider = people["outsider"]
    outsider.execute("CREATE FUNCTION pg_temp.peek(text) RETURNS bool COST 0.0001 LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'seen: %', $1; END $$")
    assert outsider.rows("SELECT * FROM arrow_cache.entries WHERE pg_temp.peek(query)") == []
    assert outsider.rows("SELECT * FROM arrow_cache.relations WHERE pg_temp.peek(relation::text)") == []


# What the outsider may not run, and why: relation, column, what a view reads on its owner's account, what a policy reads on the
# reader's, a function, an aggregate.
FORBIDDEN = {
    "table": ("outsider", "SELECT id FROM secret", "table secret"),
    "table that is never read": ("outsider", "SELECT 1 FROM secret WHERE false", "table secret"),
    "column": ("outsider", "SELECT hidden FROM partly", "table partly"),
    "view": ("outsider", "SELECT id FROM open_secret", "view open_secret"),
    "table behind a view": ("reader", "SELECT id FROM secret", "table secret"),
    "in a subquery": ("outsider", "SELECT 1 WHERE EXISTS (SELECT FROM secret)", "table secret"),
    "in a WITH clause": ("outsider", "WITH w AS MATERIALIZED (SELECT id FROM secret) SELECT 1 FROM w", "table secret"),
    "table that a policy reads": ("reader", "SELECT id FROM fenced", "table notes"),
    "function": ("outsider", "SELECT closed(1)", "function closed"),
    "function in a condition": ("outsider", "SELECT id FROM partly WHERE closed(id) > 0", "function closed"),
    "aggregate": ("outsider", "SELECT closed_sum(id) FROM partly", "aggregate closed_sum"),
    "not cached, besides": ("outsider", "SELECT id, random() FROM secret", "table secret"),
    "locked": ("outsider", "SELECT id FROM secret FOR UPDATE", "table secret"),
    "schema": ("outsider", "SELECT id FROM who_closed.t", "schema who_closed"),
}


@pytest.fixture
def closed(people, session):
    session.execute("""
        SET ROLE who_owner;
        CREATE TABLE partly (id int, hidden text);
        GRANT SELECT (id) ON partly TO who_outsider;
        CREATE FUNCTION closed(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';
        CREATE AGGREGATE closed_sum(int) (SFUNC = int4pl, STYPE = int);
        REVOKE ALL ON FUNCTION closed(int), closed_sum(int) FROM PUBLIC;
        RESET ROLE;
        CREATE SCHEMA who_closed;
        CREATE TABLE who_closed.t (id int);
    """)
    yield people
    session.execute("RESET ROLE; DROP SCHEMA who_closed CASCADE")


@pytest.mark.parametrize("function", ["why(%s)", "schema(%s)"])
@pytest.mark.parametrize("case", FORBIDDEN)
def test_what_one_may_not_run_one_is_told_nothing_about(closed, case, function):
    role, query, denied = FORBIDDEN[case]
    session = closed[role]
    with pytest.raises(psycopg.errors.InsufficientPrivilege) as by_itself:
        session.execute(query)
    if (case, function) == ("locked", "schema(%s)"):
        # Refused by its form, whoever asks.
        with pytest.raises(psycopg.errors.SyntaxError, match="not one that locks rows"):
            session.execute(f"SELECT * FROM arrow_cache.{function}", [query])
        return
    with pytest.raises(psycopg.errors.InsufficientPrivilege) as asked:
        session.execute(f"SELECT * FROM arrow_cache.{function}", [query])
    assert asked.value.diag.message_primary == by_itself.value.diag.message_primary == f"permission denied for {denied}"


@pytest.mark.parametrize("query", [
    "INSERT INTO secret VALUES (1)", "DELETE FROM secret", "COPY secret TO STDOUT", "EXPLAIN SELECT hidden FROM secret", "DROP TABLE secret",
])
def test_why_says_no_more_of_other_statements_than_their_text(closed, query):
    """These statements are not cached, whatever they name, and no name is looked up for that."""
    [(cacheable, reason, _)] = closed["outsider"].rows("SELECT * FROM arrow_cache.why(%s)", [query])
    assert not cacheable and reason in ("not_select", "utility_statement", "explain")
    assert closed["outsider"].rows("SELECT * FROM arrow_cache.why(%s)", [query.replace("secret", "no_such_table")]) \
        == closed["outsider"].rows("SELECT * FROM arrow_cache.why(%s)", [query])


def test_what_one_may_run_is_told(people, connect):
    reader, owner = people["reader"], people["owner"]
    name = connect.schema
    # Relations behind a view are counted; their names are for those who may read them.
    assert owner.rows("SELECT * FROM arrow_cache.why('SELECT id FROM open_secret')") \
        == [(True, None, f"rests on {name}.open_secret, {name}.secret")]
    assert reader.rows("SELECT * FROM arrow_cache.why('SELECT id FROM open_secret')") \
        == [(True, None, f"rests on {name}.open_secret and 1 that you may not read")]
    assert [row[1:3] for row in reader.rows("SELECT ord, name, pg_type::text FROM arrow_cache.schema('SELECT id, open FROM open_secret')")] \
        == [("id", "integer"), ("open", "text")]
    # The same holds for the relation that is the reason.
    owner.execute("SELECT arrow_cache.set_policy('secret', 'never')")
    [(_, reason, detail)] = owner.rows("SELECT * FROM arrow_cache.why('SELECT id FROM open_secret')")
    assert reason == "policy_never" and detail.endswith(f" It reads {name}.secret.")
    [(_, reason, detail)] = reader.rows("SELECT * FROM arrow_cache.why('SELECT id FROM open_secret')")
    assert reason == "policy_never" and detail.endswith(" It reads a relation that you may not read.")
    # One column is enough to know the name.
    owner.execute("SELECT arrow_cache.set_policy('secret', 'default'); GRANT SELECT (id) ON secret TO who_reader")
    assert reader.rows("SELECT * FROM arrow_cache.why('SELECT id FROM open_secret')") \
        == [(True, None, f"rests on {name}.open_secret, {name}.secret")]


def test_asking_runs_nothing(people):
    owner = people["owner"]
    owner.execute("CREATE SEQUENCE asked; CREATE FUNCTION writes() RETURNS int LANGUAGE sql AS 'INSERT INTO notes VALUES (1) RETURNING id'")
    for query in "SELECT nextval('asked')", "SELECT writes()", "SELECT 1 / id, 1 / (id - 1) FROM secret":
        owner.execute("SELECT * FROM arrow_cache.why(%s)", [query])
        owner.execute("SELECT * FROM arrow_cache.schema(%s)", [query])
    assert owner.rows("SELECT is_called FROM asked") == [(False,)]
    assert owner.rows("SELECT count(*) FROM notes") == [(0,)]
