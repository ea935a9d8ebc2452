/*
 * A library that holds a query up at two moments: when it is planned, and so before its snapshot is taken, and before it is started.
 * 032_held_at_start.pl builds it and preloads it after the cache, so that its hooks are around the cache's.
 *
 * At each moment of a query whose text has the word of its setting, it makes the file MOMENT.reached in the folder of the other setting,
 * and waits for the file MOMENT.go there.
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "executor/executor.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "optimizer/planner.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

void _PG_init(void);

static char *folder;
static char *word;
static planner_hook_type previous_planner;
static ExecutorStart_hook_type previous_start;

/* Longer than any test waits, so that a test that fails leaves no session behind. */
#define MOST_WAITS 12000

static void
wait_at(const char *moment, const char *text)
{
	char path[MAXPGPATH];
	int file;

	if (folder == NULL || *folder == '\0' || text == NULL || word == NULL || *word == '\0' || strstr(text, word) == NULL)
		return;
	snprintf(path, sizeof(path), "%s/%s.reached", folder, moment);
	file = open(path, O_CREAT | O_WRONLY, 0600);
	if (file < 0)
		return;
	close(file);
	snprintf(path, sizeof(path), "%s/%s.go", folder, moment);
	for (int waits = 0; waits < MOST_WAITS && access(path, F_OK) != 0; waits++)
	{
		CHECK_FOR_INTERRUPTS();
		pg_usleep(10000);
	}
}

static PlannedStmt *
plan(Query *query, const char *text, int options, ParamListInfo params)
{
	PlannedStmt *result = (previous_planner ? previous_planner : standard_planner) (query, text, options, params);

	wait_at("planned", text);
	return result;
}

static void
start(QueryDesc *query, int flags)
{
	wait_at("starting", query->sourceText);
	(previous_start ? previous_start : standard_ExecutorStart) (query, flags);
}

void
_PG_init(void)
{
	DefineCustomStringVariable("slow_starter.folder", "Where to wait for files.", NULL, &folder, "", PGC_USERSET, 0, NULL, NULL,
							   NULL);
	DefineCustomStringVariable("slow_starter.word", "What the text of a query has that is held up.", NULL, &word, "", PGC_USERSET,
							   0, NULL, NULL, NULL);
	previous_planner = planner_hook;
	planner_hook = plan;
	previous_start = ExecutorStart_hook;
	ExecutorStart_hook = start;
}
