"""One session: answers after a write, moving windows, first runs, and planning. All sides take turns in each round."""

import re
from dataclasses import dataclass, field
from functools import partial

from dashboard_tables import first_day, view_of
from measure import Goal, Part, Ratio, Samples, markdown, milliseconds, processor_time, to_and_fro
from session import Session, digest

PLAIN, WORKERS, COMBINED = "plain, no workers", "plain", "cache"
REFRESH, CONCURRENT = "REFRESH + SELECT", "REFRESH CONCURRENTLY + SELECT"
WARMING_RUNS = 3


def within(name, ratio, limit, words):
    """A goal that is a ratio; `words` is how it is written."""
    return Goal(name, str(ratio), f"≤ {words}", ratio.median <= limit)


@dataclass
class Way:
    """One way to an answer, and how long it took."""

    ask: object           # takes the query, returns the answer
    session: Session
    times: Samples = field(default_factory=Samples)
    seconds: Samples = field(default_factory=Samples)   # of the session's own process, not of its workers

    @staticmethod
    def of(session):
        return Way(session.execute, session)

    def measure(self, query):
        before = processor_time(self.session.pid)
        answer = []
        self.times.add(milliseconds(lambda: answer.append(self.ask(query))))
        self.seconds.add(processor_time(self.session.pid) - before)
        return answer[0]


class Sessions:
    """One session for each side, and one that writes."""

    def __init__(self, server):
        self.writer = Session(server.dsn())
        self.cache, self.plain, self.workers = (Session(server.dsn()) for _ in range(3))
        self.cache.caching(True)
        for session in (self.plain, self.workers):
            session.caching(False)
        self.plain.execute("SET max_parallel_workers_per_gather = 0")

    def parts(self, query):
        """How many parts of a query are stored, and how many would be computed; None if it is not combined."""
        plan = self.cache.execute(f"EXPLAIN (COSTS OFF) {query}")
        text = "\n".join(plan.get_value(row, 0).decode() for row in range(plan.ntuples))
        stored, computed = re.search(r"Stored Parts: (\d+)", text), re.search(r"Computed Parts: (\d+)", text)
        return (int(stored[1]), int(computed[1])) if stored else None

    def close(self):
        for session in (self.writer, self.cache, self.plain, self.workers):
            session.close()

    def expect(self, query, computed):
        found = self.parts(query)
        if found is None or found[1] > computed:
            raise RuntimeError(f"parts (stored, computed) are {found} where {computed} had to be computed: {query}")


@dataclass
class Case:
    """A question that is asked after each write to the newest leaf, and what is expected of it."""

    name: str
    facts: object
    limit: float
    words: str
    query: object                # makes its text
    computed: int = 1            # parts that may be computed
    view: str = ""               # the materialized view that answers it
    writes: bool = True
    ways: dict = field(default_factory=dict)

    def prepare(self, sessions):
        plain, workers, cache = sessions.plain, sessions.workers, sessions.cache
        if self.view:
            workers.execute(view_of(self.view, self.query()))
        sessions.writer.execute(self.facts.insert())
        for _ in range(WARMING_RUNS):
            sessions.writer.execute(self.facts.insert())
            cache.execute(self.query())
        for session in (plain, workers):
            session.execute(self.query())
        sessions.writer.execute(self.facts.insert())
        sessions.expect(self.query(), self.computed)
        self.ways = {PLAIN: Way.of(plain), WORKERS: Way.of(workers), COMBINED: Way.of(cache)}
        if self.view:
            self.ways[REFRESH] = Way(partial(self.refreshed, workers, ""), workers)
            self.ways[CONCURRENT] = Way(partial(self.refreshed, workers, "CONCURRENTLY"), workers)

    def refreshed(self, session, how, _query):
        session.execute(f"REFRESH MATERIALIZED VIEW {how} {self.view}")
        return session.execute(f"SELECT * FROM {self.view} ORDER BY 1")

    def round(self, sessions, names):
        """All ways once, at the same state of the table: they must give the same answer."""
        query = self.query()
        if self.writes:
            sessions.writer.execute(self.facts.insert())
        answers = set()
        for name in names:
            answers.add(digest(self.ways[name].measure(query)))
            if name == COMBINED:
                sessions.cache.expect("MISS", "STALE")
        if len(answers) > 1:
            raise RuntimeError(f"{self.name}: the answers differ")

    def measure(self, sessions, rounds):
        self.prepare(sessions)
        for number in range(rounds):
            names = list(self.ways)
            self.round(sessions, names if number % 2 == 0 else names[::-1])

    def of(self, name):
        return Ratio.of(self.ways[COMBINED].times, self.ways[name].times)

    def goals(self):
        yield within(f"{self.name}, {self.facts.title}: of plain's time", self.of(WORKERS), self.limit, self.words)
        yield within("the same, of plain's without workers", self.of(PLAIN), self.limit, self.words)

    def row(self):
        def cell(name):
            return f"{self.ways[name].times.median:,.1f}" if name in self.ways else "–"

        names = [WORKERS, PLAIN, REFRESH, CONCURRENT, COMBINED]
        return [f"{self.name}, {self.facts.leaves} leaves", *map(cell, names), str(self.of(WORKERS)),
                str(self.of(PLAIN)), str(Ratio.of(self.ways[COMBINED].seconds, self.ways[PLAIN].seconds))]


def cases(small, large):
    for facts, limit, words in ((small, 1 / 12, "1/12"), (large, 1 / 40, "1/40")):
        yield Case("history in one row", facts, limit, words, facts.totals, view=f"totals_of_{facts.leaves}")
        yield Case("history by shop", facts, limit, words, facts.by_shop, view=f"by_shop_of_{facts.leaves}")
    yield Case("history by month", small, 1 / 12, "1/12", small.by_month, view=f"by_month_of_{small.leaves}")
    yield Case("star join by region", small, 1 / 10, "1/10", small.by_region, view=f"by_region_of_{small.leaves}")
    yield Case("window of 22 months, new literals", small, 1 / 8, "1/8", small.window, computed=2, writes=False)


def after_writes(sessions, small, large, size, progress):
    found = list(cases(small, large))
    for case in found:
        progress(f"dashboard: {case.name}, {case.facts.title}")
        case.measure(sessions, size.rounds)
    section = markdown(
        "After a write to the newest leaf",
        "Milliseconds until the client has the answer. Before each round, one row is inserted through the root; the window's literals are "
        f"new in each round, and nothing is inserted. *{WORKERS}* may use two parallel workers, as PostgreSQL does by default, and "
        f"*{PLAIN}* none. The views are read after each refresh. All answers of a round were compared.",
        ["question", WORKERS, PLAIN, REFRESH, CONCURRENT, COMBINED, "of plain", "of plain without workers",
         "processor time, of plain without workers"],
        [case.row() for case in found])
    figure = {f"{case.name}, {case.facts.leaves} leaves": {name: way.times.median for name, way in case.ways.items()} for case in found}
    return Part([goal for case in found for goal in case.goals()], [section], {"dashboard": figure})


def first_fill(sessions, facts, size, progress):
    """The run that computes and stores all parts."""
    progress(f"dashboard: first fill, {facts.title}")
    # Of a form of its own: what is known of the times of a form decides whether it is combined.
    query = facts.by_shop().replace("count(*)", "count(*) AS sales")
    sessions.cache.execute("SET pg_arrow_cache.debug_force_fragments = on")
    sides = {"all parts computed and stored": sessions.cache, WORKERS: sessions.workers, PLAIN: sessions.plain}
    ways = {name: Way.of(session) for name, session in sides.items()}
    for _, name in to_and_fro(list(ways), size.rounds):
        sessions.writer.flush()
        ways[name].measure(query)
    sessions.cache.execute("RESET pg_arrow_cache.debug_force_fragments")
    fill = ways["all parts computed and stored"].times
    return [f"first fill by shop, {facts.leaves} leaves",
            *(f"{ways[name].times.median:,.1f}" for name in (WORKERS, PLAIN, "all parts computed and stored")),
            str(Ratio.of(fill, ways[WORKERS].times)), str(Ratio.of(fill, ways[PLAIN].times))]


def runs_that_gain_nothing(server, facts, size, progress):
    """First runs of a form, and runs of a form that cannot be combined, in processor time of the session."""
    sessions = Sessions(server)
    for session in (sessions.cache, sessions.plain):
        session.execute("SET max_parallel_workers_per_gather = 0")
    names = iter(range(10**6))

    def first():
        return facts.by_shop().replace("count(*)", f"count(*) AS name_{next(names)}")

    goals, rows = [], []
    for name, query, limit in (("first run of a form", first, 0.03), ("run of a form that cannot be combined", facts.floats, 0.01)):
        progress(f"dashboard: {name}")
        ways = {"plain": Way.of(sessions.plain), "cache": Way.of(sessions.cache)}
        for session in (sessions.cache, sessions.plain):
            session.execute(query())
        for _, side in to_and_fro(list(ways), 4 * size.rounds):
            sessions.writer.execute(facts.insert())
            ways[side].measure(query())
        time = {side: way.times for side, way in ways.items()}
        spent = Ratio.of(ways["cache"].seconds, ways["plain"].seconds)
        goals.append(Goal(f"{name}: processor time, of plain's", str(spent), f"≤ {1 + limit:.2f}", spent.median <= 1 + limit))
        rows.append([name, f"{time['plain'].median:,.1f}", f"{time['cache'].median:,.1f}",
                     str(Ratio.of(time["cache"], time["plain"])), str(spent)])
    sessions.close()
    section = markdown(
        "Runs that gain nothing", f"{facts.title}; no workers; the newest leaf was written to before each run, so that nothing is answered "
        "from the cache. Milliseconds, and processor time of the session.",
        ["run", "plain ms", "cache ms", "of plain", "processor time, of plain"], rows)
    return Part(goals, [section])


def planning_time(session, query):
    plan = session.execute(f"EXPLAIN (SUMMARY ON) {query}")
    text = "\n".join(plan.get_value(row, 0).decode() for row in range(plan.ntuples))
    return float(re.search(r"Planning Time: ([\d.]+) ms", text)[1])


def plans(sessions, facts, rounds):
    """{side: Samples} of the planner's time, and of EXPLAIN until the client has it."""
    leaf = f"{facts.table}_{first_day(facts.months[-1]):%Y_%m}"
    query = facts.by_shop()
    for _ in range(WARMING_RUNS):
        sessions.writer.execute(facts.insert())
        sessions.cache.execute(query)
    sessions.writer.execute(facts.insert())
    sessions.expect(query, 1)
    sides = {"plain": (sessions.workers, query), "combined": (sessions.cache, query),
             "part": (sessions.workers, query.replace(facts.table, leaf))}
    planner, wall = ({side: Samples() for side in sides} for _ in range(2))
    for _, side in to_and_fro(list(sides), rounds):
        session, text = sides[side]
        planner[side].add(planning_time(session, text))
        wall[side].add(milliseconds(lambda: session.execute(f"EXPLAIN {text}")))
    return planner, wall


def plans_of_new_sessions(server, query, rounds):
    planner = {"plain": Samples(), "combined": Samples()}
    for _, side in to_and_fro(list(planner), rounds):
        session = Session(server.dsn())
        session.caching(side == "combined")
        planner[side].add(planning_time(session, query))
        session.close()
    return planner


def planning(server, facts, size, progress):
    """Planning a combined query of which one part is missing, and that part, beside planning the query as it is."""
    progress(f"dashboard: planning, {facts.title}")
    sessions = Sessions(server)
    planner, wall = plans(sessions, facts, 10 * size.rounds)
    new = plans_of_new_sessions(server, facts.by_shop(), 2 * size.rounds)
    sessions.close()

    def row(name, found):
        each = [found[side].median if side in found else None for side in ("plain", "combined", "part")]
        both = Samples([sum(values) for values in zip(*(found[side].values for side in found if side != "plain"))])
        ratio = Ratio.of(both, found["plain"])
        return [name, *("–" if value is None else f"{value:.3f}" for value in each), str(ratio)], ratio

    rows = [row("planning time, session that has planned it before", planner),
            row("EXPLAIN until the client has it, the same session", wall),
            row("planning time, new session, without the part", new)]
    section = markdown(
        "Planning", f"{facts.title}, of which one part is missing. That part is planned when the scan runs; its column "
        "is the planning of the same question, asked of the leaf. Milliseconds. EXPLAIN starts the plan, too, which "
        "looks for the stored parts.",
        ["", "plain", "combined", "the missing part", "combined and part, of plain"], [cells for cells, _ in rows])
    ratio = rows[0][1]
    goal = Goal(f"planning with {facts.leaves} leaves of which 1 is missing, and that part: of planning plain",
                str(ratio), "≤ 1.0", ratio.median <= 1.0)
    return Part([goal], [section])
