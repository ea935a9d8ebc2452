#!/usr/bin/env python3
"""What the packages say of themselves: META.json follows the specification of PGXN, and all places name the same version."""

import copy
import json
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SCHEMA = json.loads((Path(__file__).parent / "meta.schema.json").read_text())
META = json.loads((ROOT / "META.json").read_text())


def errors(value, schema, path="META.json"):
    """What is wrong with a value: the part of JSON Schema that meta.schema.json uses. A keyword beyond that is an error of the schema."""
    found = []
    for keyword, wanted in schema.items():
        found += [f"{path}{error}" for error in KEYWORDS[keyword](value, wanted, schema)]
    return found


def inside(value, schema, step):
    return errors(value, schema, step)


def of_type(value, wanted, _):
    kinds = {"object": dict, "array": list, "string": str}
    return [] if isinstance(value, kinds[wanted]) else [f": is not of type {wanted}"]


def reference(value, wanted, _):
    return inside(value, SCHEMA["$defs"][wanted.removeprefix("#/$defs/")], "")


def any_of(value, wanted, _):
    return [] if any(not inside(value, schema, "") for schema in wanted) else [": follows none of the forms"]


def properties(value, wanted, _):
    return [error for name in wanted if is_object(value) and name in value for error in inside(value[name], wanted[name], f".{name}")]


def additional(value, wanted, schema):
    if not is_object(value):
        return []
    patterns = schema.get("patternProperties", {})
    others = [name for name in value if name not in schema.get("properties", {}) and not any(re.search(pattern, name) for pattern in patterns)]
    if wanted is False:
        return [f".{name}: is not known" for name in others]
    return [error for name in others for error in inside(value[name], wanted, f".{name}")]


def property_names(value, wanted, _):
    return [error for name in value for error in inside(name, wanted, f" key {name}")] if is_object(value) else []


def items(value, wanted, _):
    return [error for number, item in enumerate(value) for error in inside(item, wanted, f"[{number}]")] if isinstance(value, list) else []


def is_object(value):
    return isinstance(value, dict)


KEYWORDS = {
    "$schema": lambda *_: [], "title": lambda *_: [], "$defs": lambda *_: [], "patternProperties": lambda *_: [],
    "type": of_type, "$ref": reference, "anyOf": any_of, "properties": properties, "additionalProperties": additional,
    "propertyNames": property_names, "items": items,
    "required": lambda value, wanted, _: [f".{name}: is missing" for name in wanted if is_object(value) and name not in value],
    "enum": lambda value, wanted, _: [] if value in wanted else [f": {value!r} is not one of {wanted}"],
    "pattern": lambda value, wanted, _: [f": {value!r} does not match {wanted}"] if isinstance(value, str) and not re.search(wanted, value) else [],
    "minLength": lambda value, wanted, _: [": is too short"] if isinstance(value, str) and len(value) < wanted else [],
    "maxLength": lambda value, wanted, _: [": is too long"] if isinstance(value, str) and len(value) > wanted else [],
    "minItems": lambda value, wanted, _: [": has too few items"] if isinstance(value, list) and len(value) < wanted else [],
    "minProperties": lambda value, wanted, _: [": is empty"] if is_object(value) and len(value) < wanted else [],
}


def first(file, pattern):
    return re.search(pattern, (ROOT / file).read_text(), re.MULTILINE)[1]


class Metadata(unittest.TestCase):
    def test_meta_follows_the_specification(self):
        self.assertEqual(errors(META, SCHEMA), [])

    def test_the_schema_finds_breaches(self):
        breaches = [
            lambda meta: meta.pop("maintainer"), lambda meta: meta.pop("meta-spec"), lambda meta: meta.update(version="0.1"),
            lambda meta: meta.update(version="01.0.0"), lambda meta: meta.update(license="PostgreSQL"), lambda meta: meta.update(provides={}),
            lambda meta: meta["provides"]["pg_arrow_cache"].pop("file"), lambda meta: meta["provides"].update({"a b": META["provides"]["pg_arrow_cache"]}),
            lambda meta: meta.update(unheard="of"), lambda meta: meta["prereqs"].update(later={}), lambda meta: meta.update(tags=["a/b"]),
            lambda meta: meta["prereqs"]["runtime"]["requires"].update(PostgreSQL="15"), lambda meta: meta.update(resources={"homepage": "nowhere"}),
            lambda meta: meta["meta-spec"].update(version="2.0.0"), lambda meta: meta.update(name="x"), lambda meta: meta.update(release_status="done"),
        ]
        for number, breach in enumerate(breaches):
            meta = copy.deepcopy(META)
            breach(meta)
            self.assertNotEqual(errors(meta, SCHEMA), [], f"breach {number}")

    def test_what_the_specification_allows_passes(self):
        for allowed in ({"license": ["postgresql", "mit"]}, {"license": {"PostgreSQL": "https://www.postgresql.org/about/licence"}}, {"maintainer": ["A <a@b>"]},
                        {"x_own": {"any": 1}}, {"resources": {"homepage": "https://a.example/", "bugtracker": {"mailto": "a@b"}}},
                        {"prereqs": {"runtime": {"requires": {"plpgsql": 0, "PostgreSQL": ">= 15.0.0, < 19.0.0"}}}}):
            self.assertEqual(errors({**META, **allowed}, SCHEMA), [], allowed)

    def test_all_places_name_the_same_version(self):
        version = first("pg_arrow_cache.control", r"^default_version = '(.*)'")
        self.assertEqual(META["version"], version)
        self.assertEqual(META["provides"]["pg_arrow_cache"]["version"], version)
        self.assertEqual(first("debian/changelog", r"^pg-arrow-cache \((.*)-\d+\)"), version, "write an entry in debian/changelog")
        self.assertEqual(first("Cargo.toml", r'^version = "(.*)"'), version)
        self.assertEqual(first("CHANGELOG.md", r"^## (\S+)"), version)
        self.assertEqual(first("clients/python/pg_arrow_cache/__init__.py", r'^__version__ = "(.*)"'), version)

    def test_files_that_meta_names_exist(self):
        for provided in META["provides"].values():
            for key in ("file", "docfile"):
                self.assertTrue((ROOT / provided[key]).is_file(), provided[key])

    def test_the_oldest_server_is_the_first_feature(self):
        majors = [int(major) for major in re.findall(r"^pg(\d+) = ", (ROOT / "Cargo.toml").read_text(), re.MULTILINE)]
        self.assertEqual(META["prereqs"]["runtime"]["requires"]["PostgreSQL"], f"{min(majors)}.0.0")

    def test_the_maintainer_is_the_same(self):
        self.assertEqual(first("debian/control.in", r"^Maintainer: (.*)"), META["maintainer"])


if __name__ == "__main__":
    unittest.main()
