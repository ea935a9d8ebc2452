"""How bench/coverage.py cuts files into statements, expands what Grafana writes into them, and reads plans."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import grafana
import plans
import statements


class Statements(unittest.TestCase):
    def test_semicolons_inside_of_words_and_comments_end_nothing(self):
        sql = """SELECT ';', E'\\';', ";" /* ; /* ; */ */ -- ;
                 ; SELECT $a$;$$;$a$ ;; -- nothing but a comment"""
        self.assertEqual(len(statements.split(sql)), 2)

    def test_what_counts_as_a_select(self):
        for select in ("select 1", "/* a */ (SELECT 1) UNION TABLE t", "-- with\nWITH a AS (SELECT 1) SELECT", "VALUES (1)"):
            self.assertTrue(statements.is_select(select), select)
        for other in ("UPDATE t SET a = 1", "-- select\nDELETE FROM t", "selection"):
            self.assertFalse(statements.is_select(other), other)

    def test_parameters_in_texts_are_none(self):
        sql = "SELECT '$9', $2, $1 /* $7 */"
        self.assertEqual(statements.parameters(sql), 2)
        self.assertEqual(statements.with_values(sql, ["a", "b"]), "SELECT '$9', b, a /* $7 */")


class Plans(unittest.TestCase):
    def test_relations_anywhere_in_a_plan(self):
        scan = {"Node Type": "Seq Scan", "Relation Name": "t", "Schema": "shop"}
        plan = [{"Plan": {"Node Type": "Result", "Plans": [{"Plans": [scan, {**scan, "Schema": "pg_catalog"}]}, {"Schema": "none"}]}}]
        self.assertEqual(list(plans.schemas_read(plan)), ["shop", "pg_catalog"])


class Grafana(unittest.TestCase):
    def test_macros(self):
        for written, expected in (
                ("$__timeFilter(a.b)", "a.b BETWEEN '2024-01-01T00:00:00Z' AND '2024-07-01T00:00:00Z'"),
                ("$__timeGroup(t, '5m')", "floor(extract(epoch from t)/300)*300"),
                ("$__timeGroupAlias(f(t, ')'),$__interval)", "floor(extract(epoch from f(t, ')'))/3600)*3600 AS \"time\""),
                ("x >= $__timeFrom() AND x < $__timeTo()", "x >= '2024-01-01T00:00:00Z' AND x < '2024-07-01T00:00:00Z'"),
                ("$__unixEpochFilter(t)", "t >= 1704067200 AND t <= 1719792000"),
                ("${__to:date:seconds} - ${__from:date:seconds}", "1719792000 - 1704067200"),
                ("$__timezone", "UTC")):
            self.assertEqual(grafana.expand(written, {}), expected)

    def test_variables(self):
        there = {"car": "1", "hosts": ["a", "b's"]}
        for written, expected in (("$car ${car} [[car]]", "1 1 1"), ("IN ($hosts)", "IN ('a','b''s')"), ("${hosts:csv}", "a,b's"),
                                  ("$unknown $1 $$text$$", "$unknown $1 $$text$$"), ("$__timeFilter($car)", None)):
            expanded = grafana.expand(written, there)
            self.assertEqual(expanded, expected or "1 BETWEEN '2024-01-01T00:00:00Z' AND '2024-07-01T00:00:00Z'")

    def test_statements_of_a_dashboard_in_their_order(self):
        dashboard = {"panels": [{"targets": [{"rawSql": "SELECT 1"}], "panels": [{"targets": [{"rawSql": "SELECT 2"}, {"rawSql": " "}]}]}]}
        self.assertEqual(list(grafana.statements(dashboard)), ["SELECT 1", "SELECT 2"])

