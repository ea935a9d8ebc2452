/*
 * A library that pauses when a commit has just become visible: a library that then does what it should have done before the
 * commit does it late enough to be noticed.
 *
 * Callbacks are called in reverse order of registration: preload this library after the others, and its pause comes
 * before whatever they do.
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

void _PG_init(void);

static int microseconds;

static void
pause_after_commit(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT && microseconds > 0)
		pg_usleep(microseconds);
}

void
_PG_init(void)
{
	DefineCustomIntVariable("slow_commit.microseconds", "Pause after a commit has become visible.", NULL, &microseconds,
							0, 0, 1000000, PGC_USERSET, 0, NULL, NULL, NULL);
	RegisterXactCallback(pause_after_commit, NULL);
}
