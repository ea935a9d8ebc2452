/* A library that raises an error when COMMIT PREPARED is done, as one does that writes to an audit log. */

#include "postgres.h"

#include "fmgr.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

static ProcessUtility_hook_type previous;

static void
process(PlannedStmt *plan, const char *text, bool read_only, ProcessUtilityContext context, ParamListInfo params,
		QueryEnvironment *environment, DestReceiver *receiver, QueryCompletion *completion)
{
	Node	   *statement = plan->utilityStmt;
	bool		is_commit = IsA(statement, TransactionStmt) &&
		((TransactionStmt *) statement)->kind == TRANS_STMT_COMMIT_PREPARED;

	(previous ? previous : standard_ProcessUtility) (plan, text, read_only, context, params, environment, receiver,
													 completion);
	if (is_commit)
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("the audit log cannot be written")));
}

void
_PG_init(void)
{
	previous = ProcessUtility_hook;
	ProcessUtility_hook = process;
}
