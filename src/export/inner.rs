//! The query inside an export function: parsed, planned and made ready like one that a client sends.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::arguments::{self, Argument};
use crate::error::CacheError;
use crate::query::types::nodes;
use crate::session::PlanningExport;

/// How an export function runs its query.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// At once, to its end.
    Whole,
    /// A batch at a time, which parallel workers cannot do.
    Paused,
}

/// Makes a query ready to be started, under the active snapshot, in the current memory context.
///
/// # Safety
/// Called from a SQL function with an active snapshot; `text` must live as long as the query.
pub unsafe fn prepare(text: &CStr, arguments: &[Argument], pace: Pace) -> *mut pg_sys::QueryDesc {
    // SAFETY: the steps that PostgreSQL itself takes with a query.
    unsafe {
        let (plan, params) = plan(text, arguments, pace);
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

/// Parses, rewrites and plans one SELECT.
///
/// # Safety
/// Called with an active snapshot.
unsafe fn plan(text: &CStr, arguments: &[Argument], pace: Pace) -> (*mut pg_sys::PlannedStmt, pg_sys::ParamListInfo) {
    // SAFETY: as the caller promises; trees live in the current memory context.
    unsafe {
        let statements = pg_sys::pg_parse_query(text.as_ptr());
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
        let rewritten = pg_sys::QueryRewrite(analyzed);
        // A SELECT is rewritten to exactly one query.
        let query = nodes::<pg_sys::Query>(rewritten).next().unwrap_or(analyzed);
        let options = if pace == Pace::Whole { pg_sys::CURSOR_OPT_PARALLEL_OK as i32 } else { 0 };
        let planning = PlanningExport::enter();
        let plan = pg_sys::pg_plan_query(query, text.as_ptr(), options, params);
        drop(planning);
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
