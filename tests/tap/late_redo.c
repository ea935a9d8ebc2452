/*
 * A library that holds up the replay of a commit when its changes are visible and its invalidations are sent, for as long as the file
 * late_redo.hold is in the data directory. 080_between_moves_of_replay.pl builds it and preloads it before the cache, so that what the
 * cache does after the replay of a record comes later.
 */
#include "postgres.h"

#include <unistd.h>

#include "access/rmgr.h"
#include "access/xact.h"
#include "access/xlog_internal.h"
#include "access/xlogrecovery.h"
#include "fmgr.h"
#include "miscadmin.h"

PG_MODULE_MAGIC;

void _PG_init(void);

static void (*replay) (XLogReaderState *record);

/* Longer than any test waits, so that a test that fails leaves no server behind. */
#define MOST_WAITS 12000

static void
replay_and_hold(XLogReaderState *record)
{
	uint8 what = XLogRecGetInfo(record) & XLOG_XACT_OPMASK;

	replay(record);
	if (!reachedConsistency || (what != XLOG_XACT_COMMIT && what != XLOG_XACT_COMMIT_PREPARED))
		return;
	for (int waits = 0; waits < MOST_WAITS && access("late_redo.hold", F_OK) == 0; waits++)
		pg_usleep(5000);
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	replay = RmgrTable[RM_XACT_ID].rm_redo;
	RmgrTable[RM_XACT_ID].rm_redo = replay_and_hold;
}
