//! Functions and variables of the server that pgrx does not bind, and those that can neither raise nor wait, which are
//! called without `kept!`. Each names the server's header that it repeats; those that differ between the versions of
//! the server stand in `compat`.

use std::ffi::{c_char, c_int, c_long, c_void};

use pgrx::pg_sys;

/// How messages leave the backend (libpq/libpq.h, `PQcommMethods`), the same in 15 to 18.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CommMethods {
    comm_reset: unsafe extern "C-unwind" fn(),
    /// Sends all that is queued.
    pub flush: unsafe extern "C-unwind" fn() -> c_int,
    /// Sends what is queued, as far as that needs no waiting.
    pub flush_if_writable: unsafe extern "C-unwind" fn() -> c_int,
    /// True if anything is queued.
    pub is_send_pending: unsafe extern "C-unwind" fn() -> bool,
    /// Queues a message, sending what is in the way.
    pub putmessage: unsafe extern "C-unwind" fn(c_char, *const c_char, usize) -> c_int,
    /// Queues a message, making room for it.
    pub putmessage_noblock: unsafe extern "C-unwind" fn(c_char, *const c_char, usize),
}

/// The head of `PgStat_SubXactStatus` (utils/pgstat_internal.h), the same in 15 to 18.
#[repr(C)]
pub struct SubXactStatus {
    /// How deep it is; the transaction itself is 1.
    pub nest_level: c_int,
    /// The level around this one, or null.
    pub previous: *mut SubXactStatus,
    pending_drops: [*mut c_void; 2],
    pending_drops_count: c_int,
    /// The first of the relations whose rows were changed at this level, or null.
    pub first: *mut pg_sys::PgStat_TableXactStatus,
}

/// Advice for `madvise`: the pages are not needed, and zero when they are used again (linux/mman.h).
pub const MADV_DONTNEED: c_int = 4;

// Variables, and functions that can neither raise nor wait.
unsafe extern "C" {
    /// sys/mman.h
    pub fn madvise(start: *mut c_void, bytes: usize, advice: c_int) -> c_int;
    /// time.h; in microseconds (POSIX).
    pub safe fn clock() -> c_long;
    /// string.h
    pub fn strcmp(one: *const c_char, other: *const c_char) -> c_int;
    /// access/heapam.h; returns the address of a constant.
    pub safe fn GetHeapamTableAmRoutine() -> *const pg_sys::TableAmRoutine;
    /// access/xact.h
    pub safe fn GetTopFullTransactionIdIfAny() -> pg_sys::FullTransactionId;
    /// access/xact.h
    pub safe fn GetCurrentTransactionNestLevel() -> c_int;
    /// access/xact.h
    pub safe fn IsTransactionState() -> bool;
    /// access/xact.h
    pub safe fn IsTransactionBlock() -> bool;
    /// storage/condition_variable.h
    pub fn ConditionVariableInit(variable: *mut pg_sys::ConditionVariable);
    /// storage/condition_variable.h; from 17 on it returns something, which nobody here reads.
    pub safe fn ConditionVariableCancelSleep();
    /// storage/condition_variable.h
    pub fn ConditionVariableBroadcast(variable: *mut pg_sys::ConditionVariable);
    /// utils/timeout.h
    pub fn get_timeout_active(id: c_int) -> bool;
    /// utils/timeout.h
    pub fn get_timeout_finish_time(id: c_int) -> pg_sys::TimestampTz;
    /// access/xact.h
    pub safe fn GetCurrentStatementStartTimestamp() -> pg_sys::TimestampTz;
    /// access/xact.h
    pub safe fn GetCurrentTransactionStartTimestamp() -> pg_sys::TimestampTz;
    /// utils/timestamp.h
    pub safe fn GetCurrentTimestamp() -> pg_sys::TimestampTz;
    /// miscadmin.h
    pub safe fn GetUserId() -> pg_sys::Oid;
    /// miscadmin.h
    pub fn GetUserIdAndSecContext(user: *mut pg_sys::Oid, restrictions: *mut c_int);
    /// miscadmin.h
    pub fn SetUserIdAndSecContext(user: pg_sys::Oid, restrictions: c_int);
    /// mb/pg_wchar.h
    pub safe fn GetDatabaseEncoding() -> c_int;
    /// mb/pg_wchar.h
    pub safe fn pg_get_client_encoding() -> c_int;
    /// access/xlogrecovery.h; reads shared memory under a spinlock.
    pub fn GetXLogReplayRecPtr(timeline: *mut pg_sys::TimeLineID) -> pg_sys::XLogRecPtr;
    /// access/xlog.h; asks shared memory as long as the answer was yes.
    pub safe fn RecoveryInProgress() -> bool;
    /// replication/logicalworker.h
    pub safe fn IsLogicalWorker() -> bool;
    /// access/xact.h; reads the record.
    pub fn ParseCommitRecord(info: u8, record: *mut c_void, parsed: *mut pg_sys::xl_xact_parsed_commit);
    /// utils/elog.h; reads settings.
    pub safe fn message_level_is_interesting(level: c_int) -> bool;
    /// utils/palloc.h
    pub fn MemoryContextRegisterResetCallback(
        context: pg_sys::MemoryContext,
        callback: *mut pg_sys::MemoryContextCallback,
    );

    /// nodes/nodeFuncs.h; raises on nothing that is an expression, as the following two.
    pub fn exprType(expression: *const pg_sys::Node) -> pg_sys::Oid;
    /// nodes/nodeFuncs.h
    pub fn exprTypmod(expression: *const pg_sys::Node) -> i32;
    /// nodes/nodeFuncs.h
    pub fn exprCollation(expression: *const pg_sys::Node) -> pg_sys::Oid;
    /// pgtime.h; returns the address of a field.
    pub fn pg_get_timezone_name(zone: *mut pg_sys::pg_tz) -> *const c_char;
    /// pgtime.h; reads tables.
    pub fn pg_localtime(time: *const i64, zone: *const pg_sys::pg_tz) -> *mut pg_sys::pg_tm;
    /// pgtime.h; reads tables.
    pub fn pg_next_dst_boundary(
        time: *const i64,
        before_offset: *mut c_long,
        before_is_dst: *mut c_int,
        boundary: *mut i64,
        after_offset: *mut c_long,
        after_is_dst: *mut c_int,
        zone: *const pg_sys::pg_tz,
    ) -> c_int;

    /// pgtime.h; opens a file below the folder of time zones, and returns its number, or less than 0.
    pub fn pg_open_tzfile(name: *const c_char, canonical_name: *mut c_char) -> c_int;

    /// common/file_perm.h
    pub static pg_file_create_mode: c_int;
    /// common/file_perm.h
    pub static pg_dir_create_mode: c_int;
    /// libpq/libpq.h
    pub static mut PqCommMethods: *const CommMethods;
    /// utils/fmgrtab.h
    pub static fmgr_last_builtin_oid: pg_sys::Oid;
    /// utils/fmgrtab.h; as many as the one before says, and one for 0.
    pub static fmgr_builtin_oid_index: [u16; 0];
    /// `bytea_output`, an enum setting (utils/bytea.h).
    pub static bytea_output: c_int;
    /// `xmlbinary`, an enum setting (utils/xml.h).
    pub static xmlbinary: c_int;
    /// `xmloption`, an enum setting (utils/xml.h).
    pub static xmloption: c_int;
    /// `lc_monetary` (utils/pg_locale.h).
    pub static locale_monetary: *const c_char;
    /// `lc_numeric` (utils/pg_locale.h).
    pub static locale_numeric: *const c_char;
    /// `lc_time` (utils/pg_locale.h).
    pub static locale_time: *const c_char;
}

// Parsing, planning, executing. The server's own functions behind the hooks are those whose names begin with
// `standard_`.
unsafe extern "C-unwind" {
    /// optimizer/planner.h
    pub fn standard_planner(
        query: *mut pg_sys::Query,
        text: *const c_char,
        options: c_int,
        params: pg_sys::ParamListInfo,
    ) -> *mut pg_sys::PlannedStmt;
    /// executor/executor.h
    pub fn standard_ExecutorStart(query_desc: *mut pg_sys::QueryDesc, flags: c_int);
    /// executor/executor.h
    pub fn standard_ExecutorFinish(query_desc: *mut pg_sys::QueryDesc);
    /// executor/executor.h
    pub fn standard_ExecutorEnd(query_desc: *mut pg_sys::QueryDesc);
    /// executor/execPartition.h
    pub fn ExecFindPartition(
        node: *mut pg_sys::ModifyTableState,
        root: *mut pg_sys::ResultRelInfo,
        routing: *mut pg_sys::PartitionTupleRouting,
        row: *mut pg_sys::TupleTableSlot,
        state: *mut pg_sys::EState,
    ) -> *mut pg_sys::ResultRelInfo;
    /// tcop/utility.h
    pub fn standard_ProcessUtility(
        plan: *mut pg_sys::PlannedStmt,
        text: *const c_char,
        read_only: bool,
        context: pg_sys::ProcessUtilityContext::Type,
        params: pg_sys::ParamListInfo,
        environment: *mut pg_sys::QueryEnvironment,
        receiver: *mut pg_sys::DestReceiver,
        completion: *mut pg_sys::QueryCompletion,
    );
}

// Functions in SQL, and aggregates.
unsafe extern "C-unwind" {
    /// parser/parse_agg.h; room for FUNC_MAX_ARGS types, of which it returns the number.
    pub fn get_aggregate_argtypes(aggregate: *mut pg_sys::Aggref, types: *mut pg_sys::Oid) -> c_int;
    /// parser/parse_agg.h
    pub fn resolve_aggregate_transtype(
        function: pg_sys::Oid,
        declared: pg_sys::Oid,
        types: *mut pg_sys::Oid,
        count: c_int,
    ) -> pg_sys::Oid;
    /// executor/functions.h; returns a structure of the server's own.
    pub fn prepare_sql_fn_parse_info(
        function: pg_sys::HeapTuple,
        call: *mut pg_sys::Node,
        collation: pg_sys::Oid,
    ) -> *mut c_void;
    /// executor/functions.h; takes what the one before returned.
    pub fn sql_fn_parser_setup(state: *mut pg_sys::ParseState, info: *mut c_void);
}

// Where rows and messages go.
unsafe extern "C-unwind" {
    /// access/printtup.h
    pub fn printtup_create_DR(dest: pg_sys::CommandDest::Type) -> *mut pg_sys::DestReceiver;
    /// access/printtup.h
    pub fn SetRemoteDestReceiverParams(receiver: *mut pg_sys::DestReceiver, portal: pg_sys::Portal);
    /// executor/tstoreReceiver.h
    pub fn SetTuplestoreDestReceiverParams(
        receiver: *mut pg_sys::DestReceiver,
        store: *mut pg_sys::Tuplestorestate,
        context: pg_sys::MemoryContext,
        detoast: bool,
        target: pg_sys::TupleDesc,
        map_failure: *const c_char,
    );
    /// libpq/libpq.h
    pub fn pq_putmessage_v2(kind: c_char, body: *const c_char, length: usize) -> c_int;
    /// libpq/libpq.h
    pub fn secure_write(port: *mut pg_sys::Port, data: *const c_void, length: usize) -> isize;
}

// Values and their types.
unsafe extern "C-unwind" {
    /// utils/datum.h
    pub fn datumCopy(value: pg_sys::Datum, by_value: bool, length: c_int) -> pg_sys::Datum;
    /// utils/datum.h
    pub fn datumIsEqual(one: pg_sys::Datum, other: pg_sys::Datum, by_value: bool, length: c_int) -> bool;
}

// Relations, locks, transactions.
unsafe extern "C-unwind" {
    /// catalog/pg_inherits.h
    pub fn find_all_inheritors(
        parent: pg_sys::Oid,
        lock_mode: pg_sys::LOCKMODE,
        parents: *mut *mut pg_sys::List,
    ) -> *mut pg_sys::List;
    /// catalog/pg_constraint.h; null if there is none.
    pub fn get_primary_key_attnos(
        relation: pg_sys::Oid,
        may_be_deferrable: bool,
        constraint: *mut pg_sys::Oid,
    ) -> *mut pg_sys::Bitmapset;
    /// catalog/pg_inherits.h
    pub fn has_subclass(relation: pg_sys::Oid) -> bool;
    /// nodes/params.h: an error context.
    pub fn ParamsErrorCallback(data: *mut c_void);
    /// storage/predicate.h; does nothing unless the transaction is SERIALIZABLE.
    pub fn PredicateLockRelation(relation: pg_sys::Relation, snapshot: pg_sys::Snapshot);
    /// utils/pgstat_internal.h
    pub fn pgstat_get_xact_stack_level(nest_level: c_int) -> *mut SubXactStatus;
}

// Errors.
unsafe extern "C-unwind" {
    /// utils/elog.h
    pub fn pg_re_throw() -> !;
    /// utils/elog.h
    pub fn ReThrowError(error: *mut pg_sys::ErrorData) -> !;
    /// utils/elog.h; this and the following three make a report.
    pub fn errstart(level: c_int, domain: *const c_char) -> bool;
    /// utils/elog.h
    pub fn errmsg_internal(format: *const c_char, ...) -> c_int;
    /// utils/elog.h; accepts interrupts.
    pub fn errfinish(file: *const c_char, line: c_int, function: *const c_char);
    /// utils/elog.h
    pub fn errcontext_msg(format: *const c_char, ...) -> c_int;
}
