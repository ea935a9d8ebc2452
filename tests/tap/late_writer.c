/*
 * A library that writes at the last moment: in its own PRE_COMMIT and PRE_PREPARE callback, through SPI or straight into
 * a heap, as its settings say. 015_pre_commit_callbacks.pl builds and preloads it.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "utils/guc.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

PG_MODULE_MAGIC;

void _PG_init(void);

/* An SQL statement to run, and a table of one integer column to insert a zero into; none when empty. */
static char *statement;
static char *heap;

static void
run_statement(void)
{
	int result;

	PushActiveSnapshot(GetTransactionSnapshot());
	SPI_connect();
	result = SPI_execute(statement, false, 0);
	if (result < 0)
		elog(ERROR, "late_writer: %s", SPI_result_code_string(result));
	SPI_finish();
	PopActiveSnapshot();
}

/* What the executor, and so its hooks, know nothing of. */
static void
insert_into_heap(void)
{
#if PG_VERSION_NUM >= 160000
	List *names = stringToQualifiedNameList(heap, NULL);
#else
	List *names = stringToQualifiedNameList(heap);
#endif
	Relation relation = table_openrv(makeRangeVarFromNameList(names), RowExclusiveLock);
	Datum value = Int32GetDatum(0);
	bool is_null = false;

	simple_heap_insert(relation, heap_form_tuple(RelationGetDescr(relation), &value, &is_null));
	table_close(relation, NoLock);
}

static void
before_end(XactEvent event, void *arg)
{
	if (event != XACT_EVENT_PRE_COMMIT && event != XACT_EVENT_PRE_PREPARE)
		return;
	if (statement && *statement)
		run_statement();
	if (heap && *heap)
		insert_into_heap();
}

void
_PG_init(void)
{
	DefineCustomStringVariable("late_writer.statement", "Run before the end of a transaction.", NULL, &statement, "",
							   PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("late_writer.heap", "Written before the end of a transaction.", NULL, &heap, "",
							   PGC_USERSET, 0, NULL, NULL, NULL);
	RegisterXactCallback(before_end, NULL);
}
