/*
 * A library that holds a transaction up at two moments of its end: when it is visible but has not sent its invalidation
 * messages, and when it has sent them and released its locks; and COMMIT PREPARED before and after it. An apply worker that commits a prepared transaction has
 * sent the messages at both moments. 069_between_moves.pl and 071_applied_definitions.pl build and preload it, before the cache, so
 * that the cache's hook of statements is around this one. Callbacks are called in reverse: so they are registered in the session, and that for
 * released resources after the cache's own, which it registers before its first commit.
 *
 * At each moment it makes the file STAGE.reached in the folder that its setting names, and waits for the file STAGE.go.
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "access/xact.h"
#include "fmgr.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"
#include "utils/guc.h"
#include "utils/resowner.h"

PG_MODULE_MAGIC;

void _PG_init(void);

static char *folder;
static ProcessUtility_hook_type previous;

/* Longer than any test waits, so that a test that fails leaves no session behind. */
#define MOST_WAITS 12000

static void
wait_at(const char *stage)
{
	char path[MAXPGPATH];
	int file;

	if (folder == NULL || *folder == '\0')
		return;
	snprintf(path, sizeof(path), "%s/%s.reached", folder, stage);
	file = open(path, O_CREAT | O_WRONLY, 0600);
	if (file < 0)
		return;
	close(file);
	snprintf(path, sizeof(path), "%s/%s.go", folder, stage);
	for (int waits = 0; waits < MOST_WAITS && access(path, F_OK) != 0; waits++)
		pg_usleep(10000);
}

static void
at_release(ResourceReleasePhase phase, bool is_commit, bool is_top_level, void *arg)
{
	if (phase == RESOURCE_RELEASE_AFTER_LOCKS && is_top_level && is_commit)
		wait_at("told");
}

static void
at_end(XactEvent event, void *arg)
{
	static bool registered = false;

	if (event != XACT_EVENT_COMMIT)
		return;
	if (!registered)
		RegisterResourceReleaseCallback(at_release, NULL);
	registered = true;
	wait_at("visible");
}

/* COMMIT PREPARED waits before it looks for its transaction. It sends messages before it returns; its own transaction ends later. */
static void
run_utility(PlannedStmt *plan, const char *text, bool read_only, ProcessUtilityContext context, ParamListInfo params,
			QueryEnvironment *environment, DestReceiver *receiver, QueryCompletion *completion)
{
	bool commits_prepared = IsA(plan->utilityStmt, TransactionStmt) &&
		((TransactionStmt *) plan->utilityStmt)->kind == TRANS_STMT_COMMIT_PREPARED;

	if (commits_prepared)
		wait_at("committing");
	(previous ? previous : standard_ProcessUtility)(plan, text, read_only, context, params, environment, receiver,
													completion);
	if (commits_prepared)
		wait_at("committed");
}

static void
register_callbacks(const char *value, void *extra)
{
	static bool registered = false;

	if (registered || *value == '\0')
		return;
	registered = true;
	RegisterXactCallback(at_end, NULL);
}

void
_PG_init(void)
{
	DefineCustomStringVariable("slow_definer.folder", "Where to wait for files.", NULL, &folder, "", PGC_USERSET, 0, NULL,
							   register_callbacks, NULL);
	previous = ProcessUtility_hook;
	ProcessUtility_hook = run_utility;
}
