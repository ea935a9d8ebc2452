/*
 * A library in the manner of those that audit or count: it writes to the log what passes each of its executor hooks, with the text of
 * the statement, the relations of the checked plan, and the rows of each run. As pgaudit does, it keeps the statement that is being
 * started, and knows a started one by the memory context of its execution. It also tells which functions are about to be executed, and
 * of a planner's state that has no query. 033_seen_once.pl builds it twice, under two names (WITNESS), and preloads one before the cache
 * and one after it. The one whose hooks come behind the cache's starts a copy of the plan (COPIES), as a library that changes plans does.
 */
#include "postgres.h"

#include "catalog/objectaccess.h"
#include "catalog/pg_proc.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "nodes/parsenodes.h"
#include "nodes/pathnodes.h"
#include "optimizer/plancat.h"
#include "utils/lsyscache.h"

PG_MODULE_MAGIC;

void _PG_init(void);

static ExecutorStart_hook_type next_start;
static ExecutorRun_hook_type next_run;
static ExecutorFinish_hook_type next_finish;
static ExecutorEnd_hook_type next_end;
static ExecutorCheckPerms_hook_type next_check;
static object_access_hook_type next_access;
static get_relation_info_hook_type next_info;

/* The text of the statement that is being started; NULL if there is none. */
static const char *starting;

/* A started statement, in its own memory. */
typedef struct Started
{
	MemoryContextCallback callback;
	MemoryContext memory;
	struct Started *next;
} Started;

static Started *started;

/* The memory of a statement goes: it has ended, or failed. */
static void
forget(void *arg)
{
	for (Started **place = &started; *place; place = &(*place)->next)
	{
		if (*place == arg)
		{
			*place = (*place)->next;
			return;
		}
	}
}

static void
remember(QueryDesc *query)
{
	MemoryContext memory = query->estate->es_query_cxt;
	Started    *it = MemoryContextAllocZero(memory, sizeof(Started));

	it->memory = memory;
	it->next = started;
	started = it;
	it->callback.func = forget;
	it->callback.arg = it;
	MemoryContextRegisterResetCallback(memory, &it->callback);
}

/* What is wrong with a statement that runs or ends, if anything. */
static const char *
known(QueryDesc *query)
{
	for (Started *it = started; it; it = it->next)
		if (it->memory == query->estate->es_query_cxt)
			return "";
	return " NOTHING THAT WAS STARTED";
}

/* One line for each event. Texts are written on one line. */
static void
note(const char *event, const char *text, const char *detail)
{
	char	   *line = pstrdup(text);

	for (char *c = line; *c; c++)
		if (*c == '\n' || *c == '\t')
			*c = ' ';
	elog(LOG, "witness " WITNESS ": %s %s of: %s", event, detail, line);
	pfree(line);
}

#ifdef COPIES
/* A copy lies in memory that was used before, so that nothing but zeros or what was copied is what it was. */
static void
copy_plan(QueryDesc *query)
{
	void	   *chunks[32];

	for (int i = 0; i < lengthof(chunks); i++)
		chunks[i] = memset(palloc(256), 0x7e, 256);
	for (int i = 0; i < lengthof(chunks); i++)
		pfree(chunks[i]);
	query->plannedstmt = copyObject(query->plannedstmt);
}
#endif

static void
witness_start(QueryDesc *query, int flags)
{
	const char *outer = starting;

	starting = query->sourceText;
#ifdef COPIES
	copy_plan(query);
#endif
	note("start", starting, flags & EXEC_FLAG_EXPLAIN_ONLY ? "explain" : "");
	PG_TRY();
	{
		if (next_start)
			next_start(query, flags);
		else
			standard_ExecutorStart(query, flags);
	}
	PG_FINALLY();
	{
		starting = outer;
	}
	PG_END_TRY();
	remember(query);
}

/* Which relations a range table has more than once. */
static void
append_repeated(StringInfo names, List *range_table)
{
	List	   *seen = NIL;
	ListCell   *cell;

	foreach(cell, range_table)
	{
		RangeTblEntry *entry = lfirst_node(RangeTblEntry, cell);

		if (entry->rtekind != RTE_RELATION)
			continue;
		if (list_member_oid(seen, entry->relid))
			appendStringInfo(names, "%s again ", get_rel_name(entry->relid));
		seen = lappend_oid(seen, entry->relid);
	}
}

/* Which relations of a range table the role needs rights to, in their order. */
#if PG_VERSION_NUM >= 160000
static char *
checked(List *range_table, List *permissions)
{
	StringInfoData names;
	ListCell   *cell;

	initStringInfo(&names);
	foreach(cell, permissions)
	{
		RTEPermissionInfo *info = lfirst_node(RTEPermissionInfo, cell);

		if (info->requiredPerms != 0)
			appendStringInfo(&names, "%s ", get_rel_name(info->relid));
	}
	append_repeated(&names, range_table);
	return names.data;
}
#else
static char *
checked(List *range_table)
{
	StringInfoData names;
	ListCell   *cell;

	initStringInfo(&names);
	foreach(cell, range_table)
	{
		RangeTblEntry *entry = lfirst_node(RangeTblEntry, cell);

		if (entry->rtekind == RTE_RELATION && entry->requiredPerms != 0)
			appendStringInfo(&names, "%s ", get_rel_name(entry->relid));
	}
	append_repeated(&names, range_table);
	return names.data;
}
#endif

/* The executor asks while it starts a statement, and nobody else asks. */
static void
note_check(const char *relations)
{
	note("check", starting ? starting : "NOTHING THAT IS BEING STARTED", relations);
}

#if PG_VERSION_NUM >= 160000
static bool
witness_check(List *range_table, List *permissions, bool raise)
{
	note_check(checked(range_table, permissions));
	return next_check == NULL || next_check(range_table, permissions, raise);
}
#else
static bool
witness_check(List *range_table, bool raise)
{
	note_check(checked(range_table));
	return next_check == NULL || next_check(range_table, raise);
}
#endif

#if PG_VERSION_NUM >= 180000
static void
witness_run(QueryDesc *query, ScanDirection direction, uint64 count)
{
	if (next_run)
		next_run(query, direction, count);
	else
		standard_ExecutorRun(query, direction, count);
	note("run", query->sourceText, psprintf(UINT64_FORMAT "%s", query->estate->es_processed, known(query)));
}
#else
static void
witness_run(QueryDesc *query, ScanDirection direction, uint64 count, bool once)
{
	if (next_run)
		next_run(query, direction, count, once);
	else
		standard_ExecutorRun(query, direction, count, once);
	note("run", query->sourceText, psprintf(UINT64_FORMAT "%s", query->estate->es_processed, known(query)));
}
#endif

static void
witness_finish(QueryDesc *query)
{
	note("finish", query->sourceText, known(query));
	if (next_finish)
		next_finish(query);
	else
		standard_ExecutorFinish(query);
}

static void
witness_end(QueryDesc *query)
{
	note("end", query->sourceText, known(query));
	if (next_end)
		next_end(query);
	else
		standard_ExecutorEnd(query);
}

static void
witness_access(ObjectAccessType access, Oid class, Oid object, int part, void *arg)
{
	if (access == OAT_FUNCTION_EXECUTE && class == ProcedureRelationId)
		elog(LOG, "witness " WITNESS " executes: %s", get_func_name(object));
	if (next_access)
		next_access(access, class, object, part, arg);
}

static void
witness_info(PlannerInfo *root, Oid relation, bool inherited, RelOptInfo *known)
{
	if (root->parse == NULL || root->parse->rtable == NIL)
		elog(LOG, "witness " WITNESS ": %s of NOTHING THAT IS BEING PLANNED", get_rel_name(relation));
	if (next_info)
		next_info(root, relation, inherited, known);
}

void
_PG_init(void)
{
	next_start = ExecutorStart_hook;
	ExecutorStart_hook = witness_start;
	next_run = ExecutorRun_hook;
	ExecutorRun_hook = witness_run;
	next_finish = ExecutorFinish_hook;
	ExecutorFinish_hook = witness_finish;
	next_end = ExecutorEnd_hook;
	ExecutorEnd_hook = witness_end;
	next_check = ExecutorCheckPerms_hook;
	ExecutorCheckPerms_hook = witness_check;
	next_access = object_access_hook;
	object_access_hook = witness_access;
	next_info = get_relation_info_hook;
	get_relation_info_hook = witness_info;
}
