/*
 * Functions that change and read rows of a table (id int, tenant int, v int, note text) without the executor.
 * test_noted_rows.py builds it.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(insert_into_heap);
PG_FUNCTION_INFO_V1(insert_into_table);
PG_FUNCTION_INFO_V1(insert_many);
PG_FUNCTION_INFO_V1(delete_from_table);
PG_FUNCTION_INFO_V1(count_heap);

static HeapTuple
row(Relation relation, int id, int tenant)
{
	Datum values[4] = {Int32GetDatum(id), Int32GetDatum(tenant), Int32GetDatum(1), (Datum) 0};
	bool nulls[4] = {false, false, false, true};

	return heap_form_tuple(RelationGetDescr(relation), values, nulls);
}

/* (table, id, tenant): straight into the heap. */
Datum
insert_into_heap(PG_FUNCTION_ARGS)
{
	Relation relation = table_open(PG_GETARG_OID(0), RowExclusiveLock);

	simple_heap_insert(relation, row(relation, PG_GETARG_INT32(1), PG_GETARG_INT32(2)));
	table_close(relation, NoLock);
	PG_RETURN_VOID();
}

/* (table, id, tenant): by the access method of the table. */
Datum
insert_into_table(PG_FUNCTION_ARGS)
{
	Relation relation = table_open(PG_GETARG_OID(0), RowExclusiveLock);
	TupleTableSlot *slot = table_slot_create(relation, NULL);

	ExecForceStoreHeapTuple(row(relation, PG_GETARG_INT32(1), PG_GETARG_INT32(2)), slot, true);
	simple_table_tuple_insert(relation, slot);
	ExecDropSingleTupleTableSlot(slot);
	table_close(relation, NoLock);
	PG_RETURN_VOID();
}

/* (table, id, tenant): two rows at once. */
Datum
insert_many(PG_FUNCTION_ARGS)
{
	Relation relation = table_open(PG_GETARG_OID(0), RowExclusiveLock);
	TupleTableSlot *slots[2];
	int i;

	for (i = 0; i < 2; i++)
	{
		slots[i] = table_slot_create(relation, NULL);
		ExecForceStoreHeapTuple(row(relation, PG_GETARG_INT32(1) + i, PG_GETARG_INT32(2)), slots[i], true);
	}
	table_multi_insert(relation, slots, 2, GetCurrentCommandId(true), 0, NULL);
	for (i = 0; i < 2; i++)
		ExecDropSingleTupleTableSlot(slots[i]);
	table_close(relation, NoLock);
	PG_RETURN_VOID();
}

/* (table, tenant): the first row of the tenant, found by a scan, is deleted. */
Datum
delete_from_table(PG_FUNCTION_ARGS)
{
	Relation relation = table_open(PG_GETARG_OID(0), RowExclusiveLock);
	Snapshot snapshot = GetActiveSnapshot();
	TableScanDesc scan = table_beginscan(relation, snapshot, 0, NULL);
	HeapTuple tuple;

	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		bool is_null;

		if (DatumGetInt32(heap_getattr(tuple, 2, RelationGetDescr(relation), &is_null)) == PG_GETARG_INT32(1))
		{
			simple_table_tuple_delete(relation, &tuple->t_self, snapshot);
			break;
		}
	}
	table_endscan(scan);
	table_close(relation, NoLock);
	PG_RETURN_VOID();
}

/* (table, statement): counts the rows as pgstattuple does, and runs a statement at every tenth. */
Datum
count_heap(PG_FUNCTION_ARGS)
{
	Relation relation = table_open(PG_GETARG_OID(0), AccessShareLock);
	char *statement = text_to_cstring(PG_GETARG_TEXT_PP(1));
	TableScanDesc scan;
	int64 count = 0;

	PushActiveSnapshot(GetLatestSnapshot());
	scan = table_beginscan(relation, GetActiveSnapshot(), 0, NULL);
	while (heap_getnext(scan, ForwardScanDirection) != NULL)
	{
		if (count++ % 10 == 0 && *statement != '\0')
		{
			SPI_connect();
			if (SPI_execute(statement, false, 0) < 0)
				elog(ERROR, "%s fails", statement);
			SPI_finish();
		}
	}
	table_endscan(scan);
	PopActiveSnapshot();
	table_close(relation, NoLock);
	PG_RETURN_INT64(count);
}
