/*
 * A library that pauses around the replay of a commit: what another library does later than it should, it does late enough to be
 * noticed, and what it does before is seen for a while without the commit.
 *
 * Preload this library before the others: what they do around the replay of a record is then outside of these pauses.
 */
#include "postgres.h"

#include "access/rmgr.h"
#include "access/xact.h"
#include "access/xlog_internal.h"
#include "access/xlogrecovery.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

void _PG_init(void);

static int microseconds;
static void (*replay_without_pause) (XLogReaderState *record);

static void
replay_with_pause(XLogReaderState *record)
{
	static unsigned commits;
	uint8 what = XLogRecGetInfo(record) & XLOG_XACT_OPMASK;
	/* As long as nobody can read, a restart need not take longer. */
	bool commit = reachedConsistency && (what == XLOG_XACT_COMMIT || what == XLOG_XACT_COMMIT_PREPARED);

	/* By turns before, after, both and never. */
	if (commit)
		commits++;
	if (commit && microseconds > 0 && commits % 4 < 2)
		pg_usleep(microseconds);
	replay_without_pause(record);
	if (commit && microseconds > 0 && commits % 2 == 0)
		pg_usleep(microseconds);
}

void
_PG_init(void)
{
	DefineCustomIntVariable("slow_redo.microseconds", "Pause before and after the replay of a commit.", NULL, &microseconds,
							0, 0, 1000000, PGC_SIGHUP, 0, NULL, NULL, NULL);
	if (process_shared_preload_libraries_in_progress)
	{
		replay_without_pause = RmgrTable[RM_XACT_ID].rm_redo;
		RmgrTable[RM_XACT_ID].rm_redo = replay_with_pause;
	}
}
