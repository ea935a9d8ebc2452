/*
 * A resource manager of an extension: its records change nothing, and nobody else knows that. 063_standby_off.pl preloads it, and calls
 * its function to write one.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xloginsert.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/pg_lsn.h"

PG_MODULE_MAGIC;

void _PG_init(void);

PG_FUNCTION_INFO_V1(write_record);

static void
redo(XLogReaderState *record)
{
}

static void
describe(StringInfo buf, XLogReaderState *record)
{
}

static const char *
identify(uint8 info)
{
	return "NOTHING";
}

static RmgrData manager = {
	.rm_name = "custom_manager",
	.rm_redo = redo,
	.rm_desc = describe,
	.rm_identify = identify,
};

Datum
write_record(PG_FUNCTION_ARGS)
{
	char nothing = 0;
	XLogRecPtr end;

	XLogBeginInsert();
	XLogRegisterData(&nothing, sizeof(nothing));
	end = XLogInsert(RM_EXPERIMENTAL_ID, 0);
	XLogFlush(end);
	PG_RETURN_LSN(end);
}

void
_PG_init(void)
{
	RegisterCustomRmgr(RM_EXPERIMENTAL_ID, &manager);
}
