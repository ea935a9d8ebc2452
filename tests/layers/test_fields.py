"""All fields of the nodes that a cacheable query may have are judged: the walk that identifies a query (src/query/identity/) writes a field,
or the server's walkers show what is in it, or it stands here with the reason why no answer depends on it. So a field that a later version
of the server adds is noticed before two questions have one hash. So are the fields of a plan, of which a served plan shares some with the real
one. See docs/architecture/borrowed.md."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import cluster  # noqa: E402  (it lives beside the other scripts)

HEADERS = Path(cluster.pg_config("--includedir-server")) / "nodes"
TABLE = (ROOT / "src/query/node_table.rs").read_text()
WALK = "".join(path.read_text() for path in [
    ROOT / "src/query/identity.rs", *sorted((ROOT / "src/query/identity").glob("*.rs")), ROOT / "src/pg/compat/tree.rs"])

# Read by the walk, though no kinds of the table.
PARTS = {"Alias", "CaseWhen", "RTEPermissionInfo"}
# Its kinds that have no structure of their own, or one that has no fields but cells.
LISTS = {"List", "DistinctExpr", "NullIfExpr"}
PLACE = "a place in the text"
SHOWN = "how the server prints it as SQL"
PLANNED = "the planner fills it in"
CHANGED = "of statements that change data"
DERIVED = "follows from other fields"

# What the walk writes itself. Each name stands in it.
WRITTEN = {
    "Alias": "colnames",
    "Var": "varno varattno vartype vartypmod varcollid varlevelsup",
    "Const": "consttype consttypmod constcollid constlen constvalue constisnull constbyval",
    "Param": "paramkind paramid",
    "Aggref": "aggfnoid inputcollid aggdirectargs args aggorder aggdistinct aggstar aggvariadic aggkind agglevelsup",
    "GroupingFunc": "agglevelsup",
    "WindowFunc": "winfnoid inputcollid args winref winstar winagg",
    "SubscriptingRef": "refcontainertype refelemtype refupperindexpr reflowerindexpr",
    "FuncExpr": "funcid funcresulttype funcretset funcvariadic funccollid inputcollid args",
    "NamedArgExpr": "argnumber",
    "OpExpr": "opno opresulttype opcollid inputcollid args",
    "ScalarArrayOpExpr": "opno useOr inputcollid",
    "BoolExpr": "boolop args",
    "SubLink": "subLinkType subLinkId",
    "FieldSelect": "fieldnum",
    "FieldStore": "fieldnums",
    "CollateExpr": "collOid",
    "CaseExpr": "args",
    "RowExpr": "colnames",
    "RowCompareExpr": "rctype cmptype opnos opfamilies inputcollids",
    "MinMaxExpr": "inputcollid op",
    "SQLValueFunction": "op",
    "NullTest": "nulltesttype argisrow",
    "BooleanTest": "booltesttype",
    "TargetEntry": "expr resno resname ressortgroupref resorigtbl resorigcol resjunk",
    "RangeTblRef": "rtindex",
    "JoinExpr": "jointype rtindex",
    "FromExpr": "fromlist quals",
    "Query": "commandType hasDistinctOn hasRecursive hasModifyingCTE hasForUpdate hasRowSecurity groupDistinct groupingSets limitOption "
             "rowMarks utilityStmt rteperminfos",
    "RangeTblEntry": "rtekind relid relkind tablesample security_barrier jointype funcordinality ctename ctelevelsup self_reference coltypes "
                     "coltypmods colcollations alias eref lateral inh requiredPerms checkAsUser selectedCols perminfoindex securityQuals",
    "RTEPermissionInfo": "relid requiredPerms checkAsUser selectedCols",
    "RangeTblFunction": "funccolcount funccolnames funccoltypes funccoltypmods funccolcollations",
    "SortGroupClause": "tleSortGroupRef eqop sortop nulls_first hashable",
    "GroupingSet": "kind content",
    "WindowClause": "frameOptions startInRangeFunc endInRangeFunc inRangeColl inRangeAsc inRangeNullsFirst winref",
    "CommonTableExpr": "ctename ctematerialized cterecursive ctecolnames",
    "SetOperationStmt": "op all colTypes colCollations groupClauses",
}

# What exprType, exprCollation and exprTypmod tell of it, which the walk writes (`type_of`).
TYPE = {
    "Param": "paramtype paramtypmod paramcollid", "Aggref": "aggtype aggcollid", "WindowFunc": "wintype wincollid",
    "SubscriptingRef": "refrestype reftypmod refcollid", "FieldSelect": "resulttype resulttypmod resultcollid", "FieldStore": "resulttype",
    "RelabelType": "resulttype resulttypmod resultcollid", "CoerceViaIO": "resulttype resultcollid",
    "ArrayCoerceExpr": "resulttype resulttypmod resultcollid", "ConvertRowtypeExpr": "resulttype", "CaseExpr": "casetype casecollid",
    "CaseTestExpr": "typeId typeMod collation", "ArrayExpr": "array_typeid array_collid", "RowExpr": "row_typeid",
    "CoalesceExpr": "coalescetype coalescecollid", "MinMaxExpr": "minmaxtype minmaxcollid", "SQLValueFunction": "type typmod",
}

# What the server's walkers show to the walk.
BELOW = {
    "Aggref": "aggfilter", "GroupingFunc": "args", "WindowFunc": "aggfilter", "SubscriptingRef": "refexpr refassgnexpr", "NamedArgExpr": "arg",
    "ScalarArrayOpExpr": "args", "SubLink": "testexpr subselect", "FieldSelect": "arg", "FieldStore": "arg newvals", "RelabelType": "arg",
    "CoerceViaIO": "arg", "ArrayCoerceExpr": "arg elemexpr", "ConvertRowtypeExpr": "arg", "CollateExpr": "arg", "CaseExpr": "arg defresult",
    "CaseWhen": "expr result", "ArrayExpr": "elements", "RowExpr": "args", "RowCompareExpr": "largs rargs", "CoalesceExpr": "args",
    "MinMaxExpr": "args", "NullTest": "arg", "BooleanTest": "arg", "JoinExpr": "larg rarg quals",
    "Query": "cteList rtable jointree targetList groupClause havingQual windowClause distinctClause sortClause limitOffset limitCount setOperations",
    "RangeTblEntry": "subquery joinaliasvars functions values_lists groupexprs",
    "RangeTblFunction": "funcexpr", "WindowClause": "partitionClause orderClause startOffset endOffset",
    "CommonTableExpr": "ctequery search_clause cycle_clause", "CTECycleClause": "cycle_mark_value cycle_mark_default",
    "SetOperationStmt": "larg rarg",
}

# What no answer depends on.
WITHOUT = {
    "Alias": {"aliasname": SHOWN},
    "Var": {"varnosyn": SHOWN, "varattnosyn": SHOWN, "varnullingrels": "which joins it is above", "varreturningtype": CHANGED},
    "Aggref": {"aggtranstype": PLANNED, "aggargtypes": DERIVED, "aggpresorted": PLANNED, "aggsplit": PLANNED, "aggno": PLANNED, "aggtransno": PLANNED},
    "GroupingFunc": {"refs": "which columns the arguments are", "cols": PLANNED},
    "WindowFunc": {"runCondition": PLANNED},
    "FuncExpr": {"funcformat": "shown, and whether it sets a length: the walk writes the modifier"},
    "NamedArgExpr": {"name": "its number says which argument it is"},
    "OpExpr": {"opfuncid": "that of the operator", "opretset": "that of the operator"},
    "ScalarArrayOpExpr": {"opfuncid": "that of the operator", "hashfuncid": PLANNED, "negfuncid": PLANNED},
    "SubLink": {"operName": "the comparison has the operator"},
    "RelabelType": {"relabelformat": SHOWN}, "CoerceViaIO": {"coerceformat": SHOWN}, "ArrayCoerceExpr": {"coerceformat": SHOWN},
    "ConvertRowtypeExpr": {"convertformat": SHOWN}, "RowExpr": {"row_format": SHOWN},
    "ArrayExpr": {"element_typeid": "that of the array", "multidims": "the elements are arrays", "list_start": PLACE, "list_end": PLACE},
    "JoinExpr": {"isNatural": "the condition says so", "usingClause": "the condition says so", "join_using_alias": SHOWN, "alias": SHOWN},
    "Query": {
        "querySource": "of a rule: the query of a client is an original one", "queryId": "of libraries that count", "canSetTag": "of what a rule adds",
        "resultRelation": CHANGED, "hasAggs": DERIVED, "hasWindowFuncs": DERIVED, "hasTargetSRFs": DERIVED, "hasSubLinks": DERIVED,
        "hasGroupRTE": DERIVED, "isReturn": SHOWN, "mergeActionList": CHANGED, "mergeUseOuterJoin": CHANGED, "mergeTargetRelation": CHANGED,
        "mergeJoinCondition": CHANGED, "override": CHANGED, "onConflict": CHANGED, "returningOldAlias": CHANGED, "returningNewAlias": CHANGED,
        "returningList": CHANGED, "constraintDeps": "why GROUP BY may leave out columns; the parser has asked", "withCheckOptions": CHANGED,
        "stmt_location": PLACE, "stmt_len": PLACE},
    "RangeTblEntry": {
        "rellockmode": "how it is locked until the end", "joinmergedcols": "the columns of the join are written", "joinleftcols": SHOWN,
        "joinrightcols": SHOWN, "join_using_alias": SHOWN, "tablefunc": "refused", "enrname": "of triggers, which no query of a client sees",
        "enrtuples": "an estimate", "inFromCl": "of the parser", "insertedCols": CHANGED, "updatedCols": CHANGED, "extraUpdatedCols": CHANGED},
    "RTEPermissionInfo": {"inh": "that of its entry", "insertedCols": CHANGED, "updatedCols": CHANGED},
    "RangeTblFunction": {"funcparams": PLANNED},
    "SortGroupClause": {"reverse_sort": "follows from its operator"},
    "GroupingSet": {},
    "WindowClause": {"name": SHOWN, "refname": SHOWN, "runCondition": PLANNED, "copiedOrder": "of the parser"},
    "CTESearchClause": dict.fromkeys(
        ("search_col_list", "search_breadth_first", "search_seq_column"), "the rewriter has put what it means into the query of the CTE"),
    "CTECycleClause": dict.fromkeys(
        ("cycle_col_list", "cycle_mark_column", "cycle_path_column", "cycle_mark_type", "cycle_mark_typmod", "cycle_mark_collation",
         "cycle_mark_neop"), "the rewriter has put what it means into the query of the CTE"),
    "CommonTableExpr": {
        "aliascolnames": "ctecolnames has them", "cterefcount": DERIVED, "ctecoltypes": "those of its query", "ctecoltypmods": "those of its query",
        "ctecolcollations": "those of its query"},
    "SetOperationStmt": {"colTypmods": "follows from the queries below it"},
}

# Of a plan (PlannedStmt): what a copy with another tree shares, as it is about the statement or about its range table, and what it replaces
# (src/serve/scan_plan.rs), as it is about the tree.
SHARED = ("commandType queryId planId hasReturning hasModifyingCTE canSetTag transientPlan dependsOnRole rtable unprunableRelids permInfos "
          "resultRelations rowMarks relationOids invalItems utilityStmt stmt_location stmt_len")
REPLACED = "parallelModeNeeded jitFlags planTree partPruneInfos appendRelations subplans rewindPlanIDs paramExecTypes"


def structs(text):
    """The fields of each structure of a header, without its tag and the place in the text."""
    text = re.sub(r"/\*.*?\*/|^#.*?$", "", text, flags=re.DOTALL | re.MULTILINE)
    for name, body in re.findall(r"^typedef struct (\w+)\s*\{(.*?)^\}", text, re.DOTALL | re.MULTILINE):
        body = re.sub(r"pg_node_attr\((?:[^()]|\([^()]*\))*\)", "", body)
        fields = [re.search(r"(\w+)(?:\[\w*\])?\s*$", declared)[1] for declared in body.split(";") if declared.strip()]
        yield name, [field for field in fields[1:] if field != "location"]


def known():
    """The kinds that the table of nodes does not refuse."""
    rows = re.findall(r"((?:Tag::T_\w+[\s|]*)+)=>\s*known\(", TABLE[:TABLE.index("pub fn in_plan(")])
    return set(re.findall(r"T_(\w+)", "".join(rows)))


def judged(name):
    return [*(field for kinds in (WRITTEN, TYPE, BELOW) for field in kinds.get(name, "").split()), *WITHOUT.get(name, {})]


def unjudged(text):
    """Fields of the structures of a header that nobody has judged."""
    return {f"{name}.{field}" for name, fields in structs(text) if name in known() | PARTS for field in fields if field not in judged(name)}


class Fields(unittest.TestCase):
    def test_all_fields_are_judged(self):
        for header in ("primnodes.h", "parsenodes.h"):
            self.assertEqual(unjudged((HEADERS / header).read_text()), set())

    def test_all_kinds_have_been_looked_for(self):
        found = {name for header in ("primnodes.h", "parsenodes.h") for name, _ in structs((HEADERS / header).read_text())}
        self.assertGreater(len(known()), 40)
        self.assertEqual(known() - found - LISTS, set())

    def test_a_new_field_is_found(self):
        text = (HEADERS / "primnodes.h").read_text()
        grown = re.sub(r"(typedef struct NullTest\s*\{.*?)(\n\})", r"\1\n\tbool\t\tnew_meaning; /* not yet */\2", text, count=1, flags=re.DOTALL)
        self.assertEqual(unjudged(grown), {"NullTest.new_meaning"})

    def test_what_is_written_stands_in_the_walk(self):
        names = {field for fields in WRITTEN.values() for field in fields.split()}
        self.assertEqual({name for name in names if not re.search(rf"\.{name}\b", WALK)}, set())

    def test_all_fields_of_a_plan_are_judged(self):
        fields = dict(structs((HEADERS / "plannodes.h").read_text()))["PlannedStmt"]
        self.assertEqual(set(fields) - set(SHARED.split()) - set(REPLACED.split()), set())
        replaced = "".join((ROOT / path).read_text() for path in ("src/serve/scan_plan.rs", "src/pg/compat/plans.rs"))
        self.assertEqual([field for field in REPLACED.split() if not re.search(rf"(?:\(\*plan\)|stub)\.{field} = ", replaced)], [])

    def test_each_is_judged_once(self):
        for name in known() | PARTS:
            self.assertEqual(len(judged(name)), len(set(judged(name))), name)


if __name__ == "__main__":
    unittest.main()
