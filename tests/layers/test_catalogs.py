"""What the source takes from the server's catalogs (catalog/pg_*.h of the server that the library is built for) is judged: each column that names a
relation says something about it to src/pg/own_rows.rs, or stands here with the reason why no answer rests on it; so does each column of a role
(src/pg/roles.rs). So a column that a later version of the server adds is noticed. See docs/architecture/borrowed.md."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import cluster  # noqa: E402  (it lives beside the other scripts)

HEADERS = {path.stem: path.read_text() for path in (Path(cluster.pg_config("--includedir-server")) / "catalog").glob("pg_*.h")
           if not path.stem.endswith("_d")}
OWN_ROWS = (ROOT / "src/pg/own_rows.rs").read_text()
OBJECT_IDS = (ROOT / "src/pg/object_ids.rs").read_text()
CATALOGS = (ROOT / "src/invalidation/catalogs.rs").read_text()
ROLES = (ROOT / "src/pg/roles.rs").read_text()

INDEX = "it says something about an index, which gives the rows of its table"
KIND = "it tells of which catalog an object is"
WRITES = "of those who write"
ESTIMATES = "an estimate of the planner"
REPLICATION = "of replication"

# Columns that name a relation on which no answer rests for that, in catalogs whose change does not outdate all answers.
WITHOUT = {
    "pg_class": {"reltoastrelid": "where long values lie", "relrewrite": "of a table while it is rewritten"},
    "pg_constraint": {"conindid": INDEX, "confrelid": "a foreign key says something about the table that has it"},
    "pg_depend": {"classid": KIND, "refclassid": KIND},
    "pg_index": {"indexrelid": INDEX},
    "pg_init_privs": {"classoid": KIND},
    "pg_partitioned_table": {"partdefid": "its own row in pg_class has its bound, that in pg_inherits its parent"},
    "pg_publication_rel": {"prrelid": REPLICATION},
    "pg_sequence": {"seqrelid": "sequences are not cached"},
    "pg_shdepend": {"classid": KIND, "refclassid": KIND},
    "pg_shseclabel": {"classoid": KIND},
    "pg_statistic": {"starelid": ESTIMATES},
    "pg_statistic_ext": {"stxrelid": ESTIMATES},
    "pg_subscription_rel": {"srrelid": REPLICATION},
    "pg_trigger": {"tgrelid": WRITES, "tgconstrrelid": WRITES, "tgconstrindid": WRITES},
    "pg_type": {"typrelid": "the attributes of a row type are those of its relation"},
}

# Columns of a role that say nothing about what it may do in a session.
NO_RIGHTS = {"rolconnlimit": "asked at login", "rolpassword": "asked at login", "rolvaliduntil": "asked at login"}


def columns(text):
    """(name, what is declared behind it) of each column of a catalog's header."""
    body = re.search(r"^CATALOG\([^{]*\{(.*?)^\}", re.sub(r"/\*.*?\*/|^#.*?$", "", text, flags=re.DOTALL | re.MULTILINE), re.DOTALL | re.MULTILINE)
    return [re.match(r"\w+\s+(\w+)(.*)", column.strip(), re.DOTALL).groups() for column in body[1].split(";") if column.strip()]


def number_of(catalog):
    return re.search(rf"^CATALOG\({catalog},(\d+),", HEADERS[catalog], re.MULTILINE)[1]


def indexes(catalog):
    """Each index of a catalog, by its name in C and by its number: the column that it begins with."""
    found = re.findall(r"^DECLARE_(?:UNIQUE_)?INDEX(?:_PKEY)?\(\w+, *(\d+), *(\w+), *(?:on )?\w+(?:,| using) btree\((\w+)", HEADERS[catalog], re.MULTILINE)
    return {key: column for number, name, column in found for key in (number, name)}


def descriptions():
    """(catalog, index, column) of each row of DESCRIPTIONS."""
    rows = re.findall(r'^    description\((\w+), (?:pg_sys::)?(\w+), c"(\w+)"', OWN_ROWS, re.MULTILINE)
    return [(constant.lower(), index, column) for constant, index, column in rows]


def unjudged(headers):
    """Columns that name a relation and that nobody has judged. A catalog that catalogs.rs does not list outdates all answers when it changes."""
    described = {(catalog, column) for catalog, _, column in descriptions()}
    return {f"{catalog}.{column}" for catalog, text in headers.items() if re.search(r"^CATALOG\(", text, re.MULTILINE)
            and re.search(rf"\b{number_of(catalog)}\b", CATALOGS)
            for column, behind in columns(text) if re.search(r"BKI_LOOKUP(_OPT)?\(pg_class\)", behind)
            and (catalog, column) not in described and column not in WITHOUT.get(catalog, {})}


class Catalogs(unittest.TestCase):
    def test_all_that_names_a_relation_is_judged(self):
        self.assertEqual(unjudged(HEADERS), set())

    def test_a_new_column_is_found(self):
        grown = HEADERS["pg_policy"].replace("\n\tOid\t\t\tpolrelid", "\n\tOid\t\t\tpolother BKI_LOOKUP_OPT(pg_class);\n\tOid\t\t\tpolrelid")
        self.assertEqual(unjudged({**HEADERS, "pg_policy": grown}), {"pg_policy.polother"})

    def test_each_description_is_read_by_its_index(self):
        self.assertEqual(len(descriptions()), OWN_ROWS.count("\n    description("))
        self.assertGreater(len(descriptions()), 9)
        for catalog, index, column in descriptions():
            self.assertEqual(indexes(catalog).get(index), column, (catalog, index))

    def test_numbers_of_catalogs_are_those_of_the_headers(self):
        named = re.findall(r"^pub const (PG_\w+): u32 = (\d+);", OBJECT_IDS, re.MULTILINE)
        listed = re.findall(r"^    (\w+),\s+// (pg_\w+)$", CATALOGS, re.MULTILINE)
        constants = dict(re.findall(r"const (\w+): u32 = (\d+);", CATALOGS))
        self.assertGreater(len(named), 5)
        self.assertGreater(len(listed), 40)
        for catalog, number in [*((name.lower(), number) for name, number in named), *((name, constants.get(one, one)) for one, name in listed)]:
            if catalog in HEADERS:
                self.assertEqual(number, number_of(catalog), catalog)

    def test_all_columns_of_a_role_are_judged(self):
        names = {column for column, _ in columns(HEADERS["pg_authid"])}
        read = set(re.findall(r"\b(?:rol\w+|oid)\b", re.search(r"FormData_pg_authid \{(.*?)\}", ROLES, re.DOTALL)[1]))
        self.assertGreater(len(names), 9)
        self.assertEqual(names - read, set(NO_RIGHTS) - read)


if __name__ == "__main__":
    unittest.main()
