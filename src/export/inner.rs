//! The query inside an export function: parsed, planned and made ready like one that a client sends.

use std::ffi::{CStr, c_char, c_void};

use pgrx::pg_sys;

use super::arguments::{self, Argument};
use crate::error::CacheError;
use crate::pg::error_passing::{direct, kept};
use crate::pg::lists::nodes;
use crate::pg::server;
use crate::session::PlanningExport;

/// How an export function runs its query.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// At once, to its end.
    Whole,
    /// A batch at a time, which parallel workers cannot do.
    Paused,
}

/// Does something with a query whose errors and messages shall say that they come from it, in the way that those of a query in a
/// procedural language do: a position is one in `text`, and without a position the query is a line of the context.
pub fn within<R>(text: &CStr, code: impl FnOnce() -> R) -> R {
    /// Takes the callback off the stack, after a panic too.
    struct Entered(*mut pg_sys::ErrorContextCallback);
    impl Drop for Entered {
        fn drop(&mut self) {
            // SAFETY: a plain global of the backend, which has one thread.
            unsafe { pg_sys::error_context_stack = self.0 };
        }
    }
    // SAFETY: as above. The callback and the text live on this frame and above it, until `Entered` goes.
    unsafe {
        let outer = pg_sys::error_context_stack;
        let mut callback = pg_sys::ErrorContextCallback {
            previous: outer,
            callback: Some(say_where),
            arg: text.as_ptr().cast_mut().cast(),
        };
        let _entered = Entered(outer);
        pg_sys::error_context_stack = &raw mut callback;
        code()
    }
}

/// What SPI says of its queries (_SPI_error_callback).
unsafe extern "C-unwind" fn say_where(text: *mut c_void) {
    let text: *const c_char = text.cast();
    // SAFETY: called while a report is made, with the text that was given. What may be raised is a lack of memory, in the middle of C.
    unsafe {
        let position = direct!(server::geterrposition());
        if position > 0 {
            direct!(server::errposition(0));
            direct!(server::internalerrposition(position));
            direct!(server::internalerrquery(text));
        } else {
            direct!(server::set_errcontext_domain(std::ptr::null()));
            direct!(server::errcontext_msg(c"SQL statement \"%s\"".as_ptr(), text));
        }
    }
}

/// Makes the snapshot of the statement that calls active once more, for a query inside, which sees what that statement sees: so it takes
/// no part in what the statement itself changes, and in a STABLE function sees no more than that may.
///
/// # Safety
/// Called from a SQL function. What is pushed must be popped.
pub unsafe fn push_callers_snapshot() {
    // SAFETY: as the caller promises.
    unsafe {
        let snapshot =
            if pg_sys::ActiveSnapshotSet() { pg_sys::GetActiveSnapshot() } else { pg_sys::GetTransactionSnapshot() };
        pg_sys::PushActiveSnapshot(snapshot);
    }
}

/// Makes a query ready to be started, under the active snapshot, in the current memory context.
///
/// # Safety
/// Called from a SQL function with an active snapshot; `text` must live as long as the query.
pub unsafe fn prepare(text: &CStr, arguments: &[Argument], pace: Pace) -> *mut pg_sys::QueryDesc {
    // SAFETY: the steps that PostgreSQL itself takes with a query.
    unsafe {
        let (plan, params) = plan(text, arguments, pace);
        describe(plan, text, params)
    }
}

/// The query that runs a plan under the active snapshot.
///
/// # Safety
/// As `prepare`; the plan must be that of `text`.
pub unsafe fn describe(
    plan: *mut pg_sys::PlannedStmt,
    text: &CStr,
    params: pg_sys::ParamListInfo,
) -> *mut pg_sys::QueryDesc {
    // SAFETY: as the caller promises.
    unsafe {
        pg_sys::CreateQueryDesc(
            plan,
            text.as_ptr(),
            pg_sys::GetActiveSnapshot(),
            std::ptr::null_mut(),
            pg_sys::None_Receiver,
            params,
            std::ptr::null_mut(),
            0,
        )
    }
}

/// Starts a query as EXPLAIN does, which runs nothing, and ends it: raises what the server finds in the way of running it, the lack
/// of permissions above all.
///
/// # Safety
/// `query_desc` must not have been started.
pub unsafe fn check_permitted(query_desc: *mut pg_sys::QueryDesc) {
    // SAFETY: as the caller promises.
    unsafe {
        kept!(server::ExecutorStart(query_desc, pg_sys::EXEC_FLAG_EXPLAIN_ONLY as i32));
        kept!(server::ExecutorEnd(query_desc));
    }
}

/// Parses, rewrites and plans one SELECT.
///
/// # Safety
/// Called with an active snapshot.
unsafe fn plan(text: &CStr, arguments: &[Argument], pace: Pace) -> (*mut pg_sys::PlannedStmt, pg_sys::ParamListInfo) {
    // SAFETY: as the caller promises; trees live in the current memory context.
    unsafe {
        let source = text.as_ptr();
        let statements = kept!(server::pg_parse_query(source));
        let mut raw_statements = nodes::<pg_sys::RawStmt>(statements);
        if raw_statements.len() != 1 {
            let found = format!("{} statements", raw_statements.len());
            CacheError::NotOneSelect { found }.raise();
        }
        let raw = raw_statements.next().unwrap_or(std::ptr::null_mut());
        let (types, analyzed) = arguments::analyze(raw, text, arguments);
        let params = arguments::bind(arguments, &types);
        if let Some(found) = not_a_select(raw, analyzed) {
            CacheError::NotOneSelect { found }.raise();
        }
        let rewritten = kept!(server::QueryRewrite(analyzed));
        // A SELECT is rewritten to exactly one query.
        let query = nodes::<pg_sys::Query>(rewritten).next().unwrap_or(analyzed);
        let options = if pace == Pace::Whole { pg_sys::CURSOR_OPT_PARALLEL_OK as i32 } else { 0 };
        let planning = PlanningExport::enter();
        let plan = kept!(server::pg_plan_query(query, source, options, params));
        drop(planning);
        // Such a query is none that a function may run which only reads, and this does not know by which it is called.
        if !(*plan).rowMarks.is_null() {
            CacheError::NotOneSelect { found: "one that locks rows".into() }.raise();
        }
        (plan, params)
    }
}

/// What a statement is, if it is not a SELECT that only reads.
///
/// # Safety
/// The trees must be valid, and of the same statement.
unsafe fn not_a_select(raw: *const pg_sys::RawStmt, analyzed: *const pg_sys::Query) -> Option<String> {
    // SAFETY: as the caller promises; tag names are literals of the server.
    unsafe {
        if (*analyzed).hasModifyingCTE {
            return Some("a WITH clause that changes data".into());
        }
        let selects = (*(*raw).stmt).type_ == pg_sys::NodeTag::T_SelectStmt;
        if selects && (*analyzed).commandType == pg_sys::CmdType::CMD_SELECT {
            return None;
        }
        if selects {
            return Some("SELECT INTO".into());
        }
        let tag = pg_sys::CreateCommandTag((*raw).stmt);
        Some(CStr::from_ptr(pg_sys::GetCommandTagName(tag)).to_string_lossy().into_owned())
    }
}
