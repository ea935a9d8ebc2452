/*
 * A library that wants to know of each change of track_counts, as extensions do that follow a setting of the server: it puts a
 * function of its own into the server's description of the setting. 021_counting_neighbours.pl builds it twice, under two
 * names (WITNESS), and preloads one before the cache and one after it.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"

PG_MODULE_MAGIC;

void _PG_init(void);

static GucBoolAssignHook next_assign;

static void
witness_assign(bool value, void *extra)
{
	elog(LOG, "witness " WITNESS " sees %s", value ? "on" : "off");
	if (next_assign)
		next_assign(value, extra);
}

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
	{
		if (strcmp(settings[i]->name, "track_counts") == 0)
		{
			struct config_bool *setting = (struct config_bool *) settings[i];

			next_assign = setting->assign_hook;
			setting->assign_hook = witness_assign;
		}
	}
}
