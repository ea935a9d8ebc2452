/*
 * A library in the manner of those that audit: it writes to the log each COPY that passes its ProcessUtility hook, how many rows
 * came of it, and each check of permissions that passes its executor hook. 030_export_neighbours.pl builds it twice, under
 * two names (WITNESS), and preloads one before the cache and one after it.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "fmgr.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"
#include "utils/lsyscache.h"

PG_MODULE_MAGIC;

void _PG_init(void);

static ProcessUtility_hook_type next_utility;
static ExecutorCheckPerms_hook_type next_check;

static void
witness_utility(PlannedStmt *pstmt, const char *text, bool read_only_tree, ProcessUtilityContext context, ParamListInfo params,
				QueryEnvironment *environment, DestReceiver *dest, QueryCompletion *completion)
{
	bool copy = IsA(pstmt->utilityStmt, CopyStmt);
	int start = Max(pstmt->stmt_location, 0);
	int length = pstmt->stmt_len > 0 ? pstmt->stmt_len : (int) strlen(text + start);

	if (copy)
		elog(LOG, "witness " WITNESS " sees %s: %.*s;", context == PROCESS_UTILITY_TOPLEVEL ? "top" : "nested", length, text + start);
	if (next_utility)
		next_utility(pstmt, text, read_only_tree, context, params, environment, dest, completion);
	else
		standard_ProcessUtility(pstmt, text, read_only_tree, context, params, environment, dest, completion);
	if (copy && completion)
		elog(LOG, "witness " WITNESS " counts %s " UINT64_FORMAT, GetCommandTagName(completion->commandTag),
			 completion->nprocessed);
}

/* What the hook is given differs by version; the first argument is the range table in all of them. */
#if PG_VERSION_NUM >= 160000
static bool
witness_check(List *range_table, List *permissions, bool raise)
#else
static bool
witness_check(List *range_table, bool raise)
#endif
{
	ListCell *cell;

	foreach(cell, range_table)
	{
		RangeTblEntry *entry = lfirst_node(RangeTblEntry, cell);

		if (entry->rtekind == RTE_RELATION && entry->relid >= FirstNormalObjectId)
			elog(LOG, "witness " WITNESS " checks %s", get_rel_name(entry->relid));
	}
#if PG_VERSION_NUM >= 160000
	return next_check == NULL || next_check(range_table, permissions, raise);
#else
	return next_check == NULL || next_check(range_table, raise);
#endif
}

void
_PG_init(void)
{
	next_utility = ProcessUtility_hook;
	ProcessUtility_hook = witness_utility;
	next_check = ExecutorCheckPerms_hook;
	ExecutorCheckPerms_hook = witness_check;
}
