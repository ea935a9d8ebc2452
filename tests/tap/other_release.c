/*
 * Lets the server say that it is of the next minor release: 083_other_release.pl preloads it before the cache.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"

PG_MODULE_MAGIC;

void _PG_init(void);

void
_PG_init(void)
{
	int count;
	struct config_generic **settings;

#if PG_VERSION_NUM >= 160000
	settings = get_guc_variables(&count);
#else
	settings = get_guc_variables();
	count = GetNumConfigOptions();
#endif
	for (int i = 0; i < count; i++)
		if (strcmp(settings[i]->name, "server_version_num") == 0)
			*((struct config_int *) settings[i])->variable = PG_VERSION_NUM + 1;
}
