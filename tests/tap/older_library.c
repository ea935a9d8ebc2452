/*
 * What the library of 0.1.0 was to the scripts: it has the setting `memory`, none that tells its version, and the symbols of that time.
 * 051_upgrade.pl installs it under the library's name.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

void _PG_init(void);

static int memory;

PG_FUNCTION_INFO_V1(flush_wrapper);

Datum
flush_wrapper(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(0);
}

void
_PG_init(void)
{
	if (process_shared_preload_libraries_in_progress)
		DefineCustomIntVariable("pg_arrow_cache.memory", "Stands for the settings of the library.", NULL, &memory, 256, 4, 1024, PGC_POSTMASTER,
								GUC_UNIT_MB, NULL, NULL, NULL);
}
