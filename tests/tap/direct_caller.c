/*
 * A library that calls C functions of pg_arrow_cache as no SQL statement does: without a description of the called function, or with one
 * that says too little. 050_declarations.pl uses it.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "fmgr.h"
#include "nodes/execnodes.h"
#include "utils/builtins.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(call_symbol);
PG_FUNCTION_INFO_V1(call_function);

/* call_symbol(symbol text, nargs int): the C function itself, as DirectFunctionCall does. */
Datum
call_symbol(PG_FUNCTION_ARGS)
{
	LOCAL_FCINFO(call, FUNC_MAX_ARGS);
	PGFunction	function = load_external_function("$libdir/pg_arrow_cache", text_to_cstring(PG_GETARG_TEXT_PP(0)), true, NULL);
	int			nargs = PG_GETARG_INT32(1);

	InitFunctionCallInfoData(*call, NULL, nargs, InvalidOid, NULL, NULL);
	for (int i = 0; i < nargs; i++)
	{
		call->args[i].value = (Datum) 0;
		call->args[i].isnull = true;
	}
	function(call);
	PG_RETURN_VOID();
}

/*
 * call_function(function oid, how text, nargs int): a declared function, with this many arguments that are the text 'SELECT 1' or, as NULL,
 * nothing, and without the expression that tells their types.
 */
Datum
call_function(PG_FUNCTION_ARGS)
{
	LOCAL_FCINFO(call, FUNC_MAX_ARGS);
	FmgrInfo	flinfo;
	char	   *how = text_to_cstring(PG_GETARG_TEXT_PP(1));
	int			nargs = PG_GETARG_INT32(2);
	Node	   *result = NULL;
	ReturnSetInfo rows;

	fmgr_info(PG_GETARG_OID(0), &flinfo);
	memset(&rows, 0, sizeof(rows));
	rows.type = T_ReturnSetInfo;
	rows.allowedModes = SFRM_ValuePerCall;
	if (strcmp(how, "no oid") == 0)
		flinfo.fn_oid = InvalidOid;
	else if (strcmp(how, "oid of another") == 0)
		flinfo.fn_oid = fcinfo->flinfo->fn_oid;
	else if (strcmp(how, "unknown oid") == 0)
		flinfo.fn_oid = 4294967295;
	else if (strcmp(how, "another node") == 0)
		result = (Node *) makeNode(List);
	else if (strcmp(how, "no expression context") == 0)
		result = (Node *) &rows;
	else if (strcmp(how, "materialized rows") == 0)
	{
		rows.econtext = CreateStandaloneExprContext();
		rows.allowedModes = SFRM_Materialize;
		result = (Node *) &rows;
	}
	InitFunctionCallInfoData(*call, &flinfo, nargs, InvalidOid, NULL, result);
	for (int i = 0; i < nargs; i++)
	{
		call->args[i].value = PointerGetDatum(cstring_to_text("SELECT 1"));
		call->args[i].isnull = strcmp(how, "nulls") == 0;
	}
	FunctionCallInvoke(call);
	PG_RETURN_VOID();
}
