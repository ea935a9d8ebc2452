"""Tools that make their SQL themselves, the pages that a program of each asks them for, and which of these are no hits, by which reason."""

import re
import sys

from dashboard import ANOTHER_QUESTION, Panel
from modes import PREPARED, PROGRAMS, UNTIL_GENERIC, Driver, Mode

HERE = PROGRAMS.parent
# Pages that are no hits: the reason. The column of the time has no index.
REFUSED = {"the time of the application": ANOTHER_QUESTION, "a row lock": "row_locks", "a random order": "volatile_function",
           "now() in WHERE": "moving_clock"}
COUNTED = "page with count"
COMMON = ["list", "detail", "aggregate", COUNTED, "related rows", "since midnight"]
NO_HITS = ["the time of the application", "a row lock", "a random order"]


class Tool(Driver):
    """`package` names it in its registry; `page` is that of docs/tools."""

    def __init__(self, name, package, page, command, needs, panels, modes=(Mode("pages"),)):
        super().__init__(name, command, needs, None, list(modes), panels)
        self.package, self.page = package, page

    @property
    def version(self):
        """As it is pinned."""
        pins = [HERE / "requirements.txt", PROGRAMS / "tools" / "node" / "package.json", PROGRAMS / "tools" / "java" / "pom.xml"]
        package = re.escape(self.package)
        pattern = rf'^{package}(?:\[.*\])?==(.+)$|"{package}": "(.+)"|<artifactId>{package}</artifactId><version>(.+?)</version>'
        return next(filter(None, re.search(pattern, "".join(pin.read_text() for pin in pins), re.MULTILINE).groups()))


def pages(*names, twos=(COUNTED,), threes=()):
    """One statement for each page, and two or three for those that are named so."""
    return [Panel(name, "", statements=1 + (name in twos) + 2 * (name in threes), refused=REFUSED.get(name)) for name in names]


def of_python(name, package, module, program, panels, modes=(Mode("pages"),)):
    venv = PREPARED / "venv"
    installed = venv / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages" / module
    return Tool(name, package, module, [venv / "bin" / "python", "-B", PROGRAMS / "tools" / program], [installed], panels, modes)


def of_node(name, package, page, panels, runs=2):
    return Tool(name, package, page, ["node", PROGRAMS / "tools" / "node" / f"{name.lower()}.js", PREPARED / "tools"],
                [PREPARED / "tools" / "node_modules" / package], panels, [Mode("pages", runs=runs)])


def of_java(name, package, page, program, panels):
    path = ":".join(map(str, (PREPARED / "pgjdbc.jar", PREPARED / "java", PREPARED / "java-tools", PREPARED / "jars" / "*")))
    return Tool(name, package, page, ["java", "-XX:+UseSerialGC", "-cp", path, program],
                [PREPARED / "jars" / f"{package}-*.jar", PREPARED / "java-tools" / f"{program}.class"], panels, [Mode("pages", runs=UNTIL_GENERIC)])


TOOLS = [
    of_python("Django's ORM", "Django", "django", "django_pages.py", pages(
        *COMMON, "prefetch_related", "TruncMonth", "exists(), in_bulk()", *NO_HITS, twos=(COUNTED, "prefetch_related", "exists(), in_bulk()"))),
    of_python("SQLAlchemy's ORM", "SQLAlchemy", "sqlalchemy", "sqlalchemy_pages.py", pages(
        *COMMON, "selectinload", "date_trunc", "pandas.read_sql", "func.current_date()", "now() in WHERE", *NO_HITS, twos=(COUNTED, "selectinload")),
        [Mode("transactions", runs=UNTIL_GENERIC), Mode("AUTOCOMMIT"), Mode("REPEATABLE READ")]),
    of_python("Ibis", "ibis-framework", "ibis", "ibis_pages.py", pages(
        *COMMON, "truncate", "ibis.today()", "now() in WHERE", "the time of the application", "a random order"),
        [Mode("to_pyarrow"), Mode("to_pandas")]),
    of_node("Prisma", "@prisma/client", "prisma", pages(
        *COMMON, "related rows, join", "$transaction", "$queryRaw", *NO_HITS, twos=(COUNTED, "related rows", "$transaction"))),
    of_node("Sequelize", "sequelize", "sequelize", pages(
        *COMMON, "related rows, separate", "transaction", *NO_HITS, twos=(COUNTED, "related rows, separate"))),
    of_node("TypeORM", "typeorm", "typeorm", pages(
        *COMMON, "related rows, a page", "related rows, query", "transaction", *NO_HITS,
        twos=(COUNTED, "related rows, a page"), threes=("related rows, query",))),
    of_java("Hibernate", "hibernate-core", "hibernate", "HibernatePages", pages(
        *COMMON, "lazy rows", "local date", *NO_HITS, twos=(COUNTED, "lazy rows"))),
    of_node("Knex", "knex", "query-builders", pages(*COMMON, "transaction", "raw(CURRENT_DATE)", "now() in WHERE", *NO_HITS)),
    of_node("Drizzle", "drizzle-orm", "query-builders", pages(*COMMON, "transaction", "a prepared statement", *NO_HITS), UNTIL_GENERIC),
    of_java("jOOQ", "jooq", "query-builders", "JooqPages", pages(*COMMON, "count().over()", "multiset", *NO_HITS)),
]
