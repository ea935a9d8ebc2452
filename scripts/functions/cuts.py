"""Where the walk through the server's code ends, and why it may.

Everything else that can be reached from a function counts. A variable that nobody has explained here is state, and a function that
reads state is refused; a setting makes it one that reads settings. Names are those of functions and variables of the server and of
its libraries; a star stands for any letters, and `file.o:` before a name for the object file that it must be in. A name that no
version has any more is an error, so that nothing here outlives its reason.
"""

# (names, reason): nothing that these do can show in a result.
INVISIBLE = [
    ("audit_report pg_re_throw errstart* errfinish FlushErrorState FreeErrorData CopyErrorData geterrcode "
     "PG_exception_stack error_context_stack pg_cryptohash_error errcontext_msg set_errcontext_domain __sigsetjmp "
     "pg_strerror* gnuish_strerror_r abort __assert_fail siglongjmp",
     "errors and notices: a statement that fails stores nothing, and a hit does not repeat notices"),
    ("palloc* repalloc* pfree guc_malloc MemoryContext* AllocSetContextCreateInternal GetMemoryChunk* "
     "CurrentMemoryContext TopMemoryContext CacheMemoryContext RegexpCacheMemoryContext malloc realloc free calloc",
     "where memory comes from"),
    ("ProcessInterrupts InterruptPending QueryCancelPending ProcDiePending check_stack_depth stack_is_too_deep",
     "ends a statement or lets it go on"),
    ("detoast_attr* detoast_external_attr toast_raw_datum_size toast_datum_size",
     "a value is the same however it is stored"),
    ("hash_create hash_search* hash_seq_* hash_destroy hash_get_num_entries",
     "a hash table holds what it is given; who gives is walked through, and the variable that keeps the table counts"),
    ("tuplesort_* tuplestore_*",
     "what is sorted or put aside is the same in memory and on disk"),
    ("InitMaterializedSRF init_MultiFuncCall per_MultiFuncCall end_MultiFuncCall "
     "ResourceOwner* CurrentResourceOwner DecrTupleDescRefCount IncrTupleDescRefCount",
     "where rows are put, and who gives back what is open"),
    ("get_fn_expr_* get_call_expr_* get_call_result_type get_fn_opclass_options has_fn_opclass_options set_fn_opclass_options",
     "what the tree of the query says of a call; its types are in the key"),
    ("WinGet* WinSet* WinRowsArePeers AggGetAggref AggGetTempMemoryContext AggCheckCallContext AggStateIsShared "
     "AggRegisterCallback RegisterExprContextCallback execTuplesMatchPrepare ExecQualAndReset",
     "rows and states of the query itself, each of whose expressions and operators is judged"),
    ("IsTransactionState", "a query runs in a transaction"),
    ("array_subscript_transform jsonb_subscript_transform", "called by the parser, whose work is in the tree"),
    ("yy_get_next_buffer yy_fatal_error jsonpath_yyrestart", "what a scanner would do with a file; it is given a text"),
    ("tzload gmtload", "rules of time zones: files of the server"),
    ("CacheRegister*", "asks to be told of changes"),
]

# (names, reason): definitions are read, and their change outdates the result or cannot change it. See src/invalidation/definitions.rs.
DEFINITIONS = [
    ("lookup_type_cache", "operator classes, ranges and their functions: the version of ddl; those of users are looked for in "
                          "query/types.rs. What they call by themselves is walked through (`IMPLIED`)"),
    ("lookup_collation_cache pg_newlocale_from_collation get_collation_isdeterministic", "pg_collation: the version of ddl"),
    ("get_opcode", "pg_operator: the version of ddl"),
    ("fmgr_info fmgr_info_cxt", "pg_proc: the version of ddl. What is called so was found by one of the others"),
    ("get_typlenbyvalalign get_typlen get_typbyval get_typtype get_element_type get_base_element_type getBaseTypeAndTypmod "
     "get_array_type TupleDescInitEntry", "columns of pg_type that no command changes"),
    ("get_type_io_data getTypeOutputInfo getTypeBinaryOutputInfo",
     "the output functions of types: pg_type. What they call is walked through (`IMPLIED`)"),
    ("lookup_ts_parser_cache lookup_ts_dictionary_cache lookup_ts_config_cache", "pg_ts_*: the version of ddl. A session "
     "reads the files of a dictionary when it first uses it"),
    ("enum_cmp_internal enum_in enum_out enum_endpoint enum_range_internal", "pg_enum: the slot of enums"),
    ("lookup_rowtype_tupdesc* BlessTupleDesc assign_record_type_typmod", "row types: the relations that define them, see query/row_types_and_settings.rs"),
    ("FindDefaultConversionProc", "pg_conversion: the version of ddl; search_path is in the key"),
]

# Gate → what is called through it unseen: see `analysis.implied`.
IMPLIED = {
    "lookup_type_cache": "operators",
    "get_opcode": "operators",
    "get_type_io_data": "output",
    "getTypeOutputInfo": "output",
    "lookup_ts_parser_cache": "text search",
    "lookup_ts_dictionary_cache": "text search",
    "FindDefaultConversionProc": "conversions",
}

# (names, reason): variables that are the same for every session of a database as long as the server runs, or that only
# remember or hold for a moment what has been computed from the rest.
STEADY = [
    ("DatabaseEncoding default_locale database_ctype_is_c pg_locale.o:result.*", "encoding and locale of the database"),
    ("icu_converter Utf8ToServerConvProc ToServerConvProc ToClientConvProc", "conversions that were looked up before"),
    ("pgtz.o:tzdir.* pgtz.o:done_tzdir.* my_exec_path timezone_cache", "where the files of the server are, and what was read of them"),
    ("num_res re_array pg_regex_* pg_ctype_cache_list", "compiled patterns, by text, flags and collation"),
    ("localtime.o:tm localtime.o:gmtptr.* cash.o:buf.* outbuf_maxlen tsrank.o:ws.* jsonpath_gram.o:* jsonpath_scan.o:* "
     "xml.o:first_time.*", "work space"),
    ("*DCHCache* DCHCounter *NUMCache* NUMCounter", "compiled formats, by text"),
    ("jsonpath_exec.o:fmt_*", "formats, made once"),
    ("datecache deltacache", "words of dates that were looked up before"),
    ("degree_c* asin_0_5 acos_0_5 sin_30 one_minus_cos_60 atan_1_0 tan_45 cot_45", "constants, computed once"),
    ("missing_cache", "values of columns that a row lacks, by value"),
    ("nullSemAction VoidString failed_oom failed_inc_oom _K md5_common_srv.o:hex.* unicode_norm_srv.o:x.* "
     "pg_popcount* pg_comp_crc32c*", "constants, or what suits the processor"),
]

# Variables that follow a setting without being its own.
BEHIND = {
    "session_timezone": "TimeZone",
    "zoneabbrevtbl": "timezone_abbreviations", "abbrevcache": "timezone_abbreviations", "tzabbrevcache": "timezone_abbreviations",
    "DateStyle": "DateStyle", "DateOrder": "DateStyle",
    "CurrentLCTimeValid": "lc_time", "localized_*": "lc_time",
    "CurrentLocaleConv*": "lc_monetary",   # and lc_numeric, which is read beside it
    "ClientEncoding": "client_encoding",
}

# Settings that cannot show in a result, although functions read them.
HARMLESS = {
    "work_mem": "how much is sorted in memory",
    "trace_sort": "what is logged of sorting",
}

# What libraries do with their arguments alone, or with the locale that the database has fixed.
PURE = [
    ("mem* str* __ctype_b_loc __errno_location bsearch snprintf fwrite __isoc99_sscanf "
     "atoi strto* tolower* toupper* isw* tow* wcs* mbstowcs* uselocale",
     "texts and characters"),
    ("sqrt* ldexp* rint* log* ceil* floor* exp* fmod* pow* cos* sin* tan* acos* asin* atan* cbrt* __*ti3 erf erfc tgamma lgamma "
     "__popcount* explicit_bzero cosh sinh tanh", "arithmetic"),
    ("setlocale localeconv* newlocale freelocale nl_langinfo* localtime gmtime_r",
     "locales of libc: those of the database, or those of lc_monetary, lc_numeric and lc_time, which stand in variables of their own"),
    ("ucol_* ucnv_* u_* uiter_* uloc_getLanguage*", "ICU, which is told the locale with each call"),
    ("stdin stdout", "named by scanners, which are given texts"),
    ("xml* __xml*", "libxml2; its switches are set anew for each call"),
]

# (caller, callee, makers, reason): a step that is not taken, unless one of `makers` is reached, too.
STEPS = [
    ("convertJsonbScalar", "JsonEncodeDateTime", "executeDateTimeMethod JsonItemFromDatum",
     "a jsonb value is a date only inside of a path expression with .datetime(), and no value that is stored is one"),
    ("castTimeToTimeTz", "time_timetz", "jsonb_path_*_tz",
     "raises an error before, unless the function is one of those in _tz, which are STABLE and refused"),
    ("executeDateTimeMethod", "time_timetz", "jsonb_path_*_tz", "the same"),
    ("array_agg_deserialize", "getTypeBinaryInputInfo", "", "values come back from a parallel worker as they were"),
    ("prs_setup_firstcall", "TupleDescGetAttInMetadata", "", "the types are int4 and text"),
    ("tt_setup_firstcall", "TupleDescGetAttInMetadata", "", "the types are int4 and text"),
    ("defGetString", "TypeNameToString", "", "options of a headline are texts, never names of types"),
    ("cache_locale_time", "time", "", "fills a structure whose day and month are then those asked for"),
    ("perform_default_encoding_conversion", "ClientEncoding", "", "called for the encoding of the client only, which its callers were given"),
    ("pg_any_to_server", "ClientEncoding", "", "the same conversion, which is at hand if the encoding is that of the client"),
    ("pg_server_to_any", "ClientEncoding", "", "the same"),
]

# (files, header, declaration, pattern, replacement, reason): calls that say by a literal which way they go, named apart in the source.
# What their new name begins with counts as `PURE`.
NARROWED = [
    ("src/backend/**/*.c", "src/include/utils/timestamp.h", "extern int audit_pure_timestamp2tm();",
     r"\btimestamp2tm\(([^;,]+), NULL,", r"audit_pure_timestamp2tm(\1, NULL,",
     "without a place for the zone, timestamp2tm does not look at the session's"),
]

# What functions read that rows.rs accepts though they are not marked IMMUTABLE, and the walk over the query's tree sees to in another way.
JUDGED_OTHERWISE = {
    "TSCurrentConfigCache": "the configuration is in the key of queries that call functions of SEARCHING (pg/text_search.rs)",
    "catalogs, in get_ts_config_oid": "how that configuration is found; its OID is in the key",
    "TSConfigCacheHash": "whether anybody has asked to be told of changes of configurations",
    "catalogs, in find_coercion_pathway": "a cast to JSON, which is looked for if the type is not built in: enums with such a cast count as foreign types",
}
