"""What parts cost: memory, temporary files, and the time of planning them."""

from support.placeholders import SHOW_PLANS

FORCED = "-c pg_arrow_cache.debug_force_fragments=on"


def peak_memory(session):
    pid = session.rows("SELECT pg_backend_pid()")[0][0]
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def test_memory_of_a_part_goes_with_it(connect, world):
    """Planning seven joins takes a megabyte or more for each of many leaves."""
    world.execute("CREATE TABLE d (k int PRIMARY KEY, name text); INSERT INTO d SELECT g, 'n' || g FROM generate_series(0, 6) g;"
                  "CREATE TABLE lots (id int, p int, v int) PARTITION BY LIST (p);"
                  "DO $$ BEGIN FOR i IN 0..199 LOOP EXECUTE format('CREATE TABLE lots_%s PARTITION OF lots FOR VALUES IN (%s)', i, i); END LOOP; END $$;"
                  "INSERT INTO lots SELECT g, g % 200, g % 7 FROM generate_series(1, 2000) g; ANALYZE d, lots")
    joins = " ".join(f"JOIN d d{i} ON lots.v = d{i}.k" for i in range(7))
    query = f"SELECT d0.name, count(*) FROM lots {joins} GROUP BY 1 ORDER BY 1"
    plain = connect("-c pg_arrow_cache.enabled=off", prepare_threshold=None)
    expected = plain.rows(query)
    reader = connect(FORCED, prepare_threshold=None)
    assert reader.rows(query) == expected
    assert peak_memory(reader) < 1.5 * peak_memory(plain) + 30_000


def test_rows_of_parts_take_no_temporary_files(connect, world):
    """The server keeps these groups in memory, of which it gives more to hash tables than to other things."""
    world.execute("CREATE TABLE big (p int, t text) PARTITION BY RANGE (p);"
                  "CREATE TABLE big_1 PARTITION OF big FOR VALUES FROM (0) TO (1); CREATE TABLE big_2 PARTITION OF big FOR VALUES FROM (1) TO (2);"
                  "INSERT INTO big SELECT 0, repeat(md5(g::text), 30) FROM generate_series(1, 6000) g; ANALYZE big")
    reader = connect(f"{FORCED} -c temp_file_limit=0 -c work_mem=4MB", prepare_threshold=None)
    for _ in range(2):
        assert reader.rows("SELECT count(*) FROM (SELECT t, count(*) AS c FROM big GROUP BY t) s") == [(6000,)]


def assert_ends(is_combined):
    """Ten runs in a row are not combined. A run that is disturbed by others on the machine may make the next one seem worth it."""
    combined = [True]
    while any(combined[-10:]):
        combined.append(is_combined(len(combined)))
        assert len(combined) < 400


def test_what_takes_much_longer_is_not_combined_for_long(connect, world):
    """Planning a join for each leaf takes longer than running it."""
    names = [f"d{number}" for number in range(9)]
    for name in names:
        world.execute(f"CREATE TABLE {name} AS SELECT g AS id, g % 10 AS next FROM generate_series(0, 9) g; ANALYZE {name}")
    joined = " ".join(f"JOIN {name} ON {name}.id = {before}.next" for before, name in zip(names, names[1:]))
    reader = connect("-c pg_arrow_cache.fragment_min_time=0 -c join_collapse_limit=1", prepare_threshold=None)

    def is_combined(number):
        runs = "SELECT fragment_runs FROM arrow_cache.stats"
        before = world.rows(runs)
        reader.rows(f"SELECT count(*) FROM p JOIN d0 ON d0.id = p.x % 10 {joined} WHERE p.x = {number}")
        return world.rows(runs) != before

    assert_ends(is_combined)


def test_planning_counts_where_definitions_keep_changing(connect, world):
    """Runs that are bypassed since a definition has changed while their parts were planned are noted nevertheless."""
    names = [f"d{number}" for number in range(9)]
    for name in names:
        world.execute(f"CREATE TABLE {name} AS SELECT g AS id, g % 10 AS next FROM generate_series(0, 9) g; ANALYZE {name}")
    joined = " ".join(f"JOIN {name} ON {name}.id = {before}.next" for before, name in zip(names, names[1:]))
    reader, plans = connect("-c pg_arrow_cache.fragment_min_time=0", prepare_threshold=None), []
    reader.add_notice_handler(lambda notice: plans.append(notice.message_detail) if notice.message_primary == "plan:" else None)
    query = f"SELECT count(*) FROM p JOIN d0 ON d0.id = p.x % 10 {joined} WHERE p.x = "
    reader.rows(query + "1")
    reader.execute(SHOW_PLANS)
    # The transaction that creates it is under way all the time.
    world.execute("BEGIN; CREATE TABLE other (a int)")

    def is_combined(number):
        plans.clear()
        reader.rows(query + str(number))
        return any("ArrowCacheFragments" in plan for plan in plans)

    assert_ends(is_combined)
    world.execute("ROLLBACK")
