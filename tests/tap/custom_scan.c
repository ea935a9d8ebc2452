/*
 * A library whose scan stands in the place of that of a table named `elsewhere`: it gives one row, with the value of a setting of its
 * own. So what a query reads is in no relation, as where tables are kept on other servers. 074_custom_scan.pl preloads it.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "fmgr.h"
#include "nodes/extensible.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

PG_MODULE_MAGIC;

void _PG_init(void);

static int value = 1;
static set_rel_pathlist_hook_type next_hook;

typedef struct
{
	CustomScanState custom;
	bool done;
} State;

static TupleTableSlot *
next_row(ScanState *state)
{
	TupleTableSlot *slot = state->ss_ScanTupleSlot;

	ExecClearTuple(slot);
	if (!((State *) state)->done)
	{
		((State *) state)->done = true;
		memset(slot->tts_isnull, true, slot->tts_tupleDescriptor->natts);
		slot->tts_values[0] = Int32GetDatum(value);
		slot->tts_isnull[0] = false;
		ExecStoreVirtualTuple(slot);
	}
	return slot;
}

static bool
recheck(ScanState *state, TupleTableSlot *slot)
{
	return true;
}

static void
begin(CustomScanState *state, EState *estate, int flags)
{
}

static TupleTableSlot *
execute(CustomScanState *state)
{
	return ExecScan(&state->ss, next_row, recheck);
}

static void
end(CustomScanState *state)
{
}

static void
rescan(CustomScanState *state)
{
	((State *) state)->done = false;
	ExecScanReScan(&state->ss);
}

static const CustomExecMethods exec_methods = {
	.CustomName = "Elsewhere", .BeginCustomScan = begin, .ExecCustomScan = execute, .EndCustomScan = end, .ReScanCustomScan = rescan,
};

static Node *
create_state(CustomScan *scan)
{
	State *state = palloc0(sizeof(State));

	NodeSetTag(state, T_CustomScanState);
	state->custom.methods = &exec_methods;
	return (Node *) state;
}

static const CustomScanMethods scan_methods = {.CustomName = "Elsewhere", .CreateCustomScanState = create_state};

static Plan *
plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);

	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = extract_actual_clauses(clauses, false);
	scan->scan.scanrelid = rel->relid;
	scan->methods = &scan_methods;
	return &scan->scan.plan;
}

static const CustomPathMethods path_methods = {.CustomName = "Elsewhere", .PlanCustomPath = plan};

static void
add_scan(PlannerInfo *root, RelOptInfo *rel, Index number, RangeTblEntry *entry)
{
	char *name = entry->rtekind == RTE_RELATION ? get_rel_name(entry->relid) : NULL;

	if (name && strcmp(name, "elsewhere") == 0)
	{
		CustomPath *path = makeNode(CustomPath);

		path->path.pathtype = T_CustomScan;
		path->path.parent = rel;
		path->path.pathtarget = rel->reltarget;
		path->path.rows = 1;
		path->methods = &path_methods;
		rel->pathlist = list_make1(path);
		rel->partial_pathlist = NIL;
	}
	if (next_hook)
		next_hook(root, rel, number, entry);
}

void
_PG_init(void)
{
	DefineCustomIntVariable("custom_scan.value", "What the scan gives.", NULL, &value, 1, 0, INT_MAX, PGC_USERSET, 0, NULL, NULL, NULL);
	RegisterCustomScanMethods(&scan_methods);
	next_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = add_scan;
}
