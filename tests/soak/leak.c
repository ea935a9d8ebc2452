/* Each execution of a statement takes some bytes by malloc and never gives them back: what the soak must find. */
#include "postgres.h"
#include "executor/executor.h"
#include "fmgr.h"

PG_MODULE_MAGIC;

#define BYTES 100

static ExecutorStart_hook_type next_start;

static void
start(QueryDesc *query, int eflags)
{
	char	   *lost = malloc(BYTES);

	if (lost)
		*(volatile char *) lost = 1;
	if (next_start)
		next_start(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
}

void		_PG_init(void);

void
_PG_init(void)
{
	next_start = ExecutorStart_hook;
	ExecutorStart_hook = start;
}
