/*
 * A library whose hook on the log raises an error, once, when the cache logs the decision that log_raiser.at begins with:
 * as a full disk or missing memory would. 043_log_raises.pl preloads it.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/elog.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

void _PG_init(void);

static emit_log_hook_type next_hook;
static char *at;
static bool armed;

static void
arm(const char *value, void *extra)
{
	armed = value[0] != '\0';
}

static void
raise_at(ErrorData *edata)
{
	if (next_hook)
		next_hook(edata);
	if (armed && edata->elevel < ERROR && edata->message && strncmp(edata->message, "arrow_cache: ", 13) == 0 &&
		strncmp(edata->message + 13, at, strlen(at)) == 0)
	{
		armed = false;
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("the log cannot be written")));
	}
}

void
_PG_init(void)
{
	DefineCustomStringVariable("log_raiser.at", "The decision at which an error is raised.", NULL, &at, "", PGC_USERSET, 0,
							   NULL, arm, NULL);
	next_hook = emit_log_hook;
	emit_log_hook = raise_at;
}
