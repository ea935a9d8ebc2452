//! Functions of the server without pgrx's guard around them, for `chain::kept!`, and for callbacks of C.

use std::ffi::{c_char, c_int};

use pgrx::pg_sys;

unsafe extern "C-unwind" {
    /// tcop/tcopprot.h
    pub fn pg_parse_query(text: *const c_char) -> *mut pg_sys::List;
    /// parser/analyze.h
    pub fn parse_analyze_varparams(
        statement: *mut pg_sys::RawStmt,
        text: *const c_char,
        types: *mut *mut pg_sys::Oid,
        count: *mut c_int,
        environment: *mut pg_sys::QueryEnvironment,
    ) -> *mut pg_sys::Query;
    /// rewrite/rewriteHandler.h
    pub fn QueryRewrite(query: *mut pg_sys::Query) -> *mut pg_sys::List;
    /// tcop/tcopprot.h
    pub fn pg_plan_query(
        query: *mut pg_sys::Query,
        text: *const c_char,
        options: c_int,
        params: pg_sys::ParamListInfo,
    ) -> *mut pg_sys::PlannedStmt;
    /// executor/executor.h; calls the hooks, as the following do.
    pub fn ExecutorStart(query_desc: *mut pg_sys::QueryDesc, flags: c_int);
    /// executor/executor.h
    pub fn ExecutorFinish(query_desc: *mut pg_sys::QueryDesc);
    /// executor/executor.h
    pub fn ExecutorEnd(query_desc: *mut pg_sys::QueryDesc);
    /// fmgr.h
    pub fn OidInputFunctionCall(
        function: pg_sys::Oid,
        text: *mut c_char,
        io_param: pg_sys::Oid,
        modifier: i32,
    ) -> pg_sys::Datum;
    /// utils/elog.h
    pub fn ReThrowError(error: *mut pg_sys::ErrorData) -> !;
    /// utils/elog.h; this and the following speak of the report that is being made.
    pub fn geterrposition() -> c_int;
    /// utils/elog.h
    pub fn geterrcode() -> c_int;
    /// utils/elog.h
    pub fn errposition(position: c_int) -> c_int;
    /// utils/elog.h
    pub fn internalerrposition(position: c_int) -> c_int;
    /// utils/elog.h
    pub fn internalerrquery(query: *const c_char) -> c_int;
    /// utils/elog.h
    pub fn set_errcontext_domain(domain: *const c_char) -> c_int;
    /// utils/elog.h
    pub fn errcontext_msg(format: *const c_char, ...) -> c_int;
}
