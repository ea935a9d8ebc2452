//! Puts another plan in the place of one that was started and has not run. Keeps nothing.

use pgrx::pg_sys;

use crate::pg::error_passing::{keeping, kept};
use crate::pg::query_desc::QueryDesc;
use crate::pg::{compat, server};

/// Starts another plan with these parameters, and puts it in the place of the plan that a query has started. Returns a descriptor that holds the
/// latter. `None` if the started plan is not `accepted`.
///
/// # Safety
/// The query must be started, and not have run. The plan must be one of the same query, in memory that outlives it, which is the current context.
pub unsafe fn exchange(
    query: QueryDesc<'_>,
    plan: *mut pg_sys::PlannedStmt,
    params: pg_sys::ParamListInfo,
    accepted: impl FnOnce(*mut pg_sys::QueryDesc) -> bool,
) -> Option<*mut pg_sys::QueryDesc> {
    let (text, snapshot) = (query.source(), query.snapshot());
    // SAFETY: the caller's promise. Permissions were asked when the query was started, and are not asked again.
    unsafe {
        let plan = compat::unchecked_plan(plan);
        let instruments = (*query.as_ptr()).instrument_options;
        let (no_snapshot, no_environment) = (std::ptr::null_mut(), std::ptr::null_mut());
        let nowhere = pg_sys::None_Receiver;
        let desc = kept!(server::CreateQueryDesc(
            plan,
            text,
            snapshot,
            no_snapshot,
            nowhere,
            params,
            no_environment,
            instruments
        ));
        keeping(|| compat::start_unshown(desc, 0));
        if !accepted(desc) {
            end_started(desc);
            return None;
        }
        lend_context((*query.as_ptr()).estate, (*desc).estate);
        query.exchange_execution(desc);
        Some(desc)
    }
}

/// Gives a started plan the memory context of the one whose place it takes. Other libraries know a statement by this
/// context from its start to its end, and keep their own memory below it, so it goes when the server ends the
/// statement. The plan that lends it gets one of its own, with which it is ended before that.
///
/// # Safety
/// The states of two started plans, neither of which has run.
unsafe fn lend_context(lender: *mut pg_sys::EState, borrower: *mut pg_sys::EState) {
    // SAFETY: the caller's promise. What the borrower has allocated so far goes with the context that it is put below.
    unsafe {
        let shared = (*lender).es_query_cxt;
        (*lender).es_query_cxt = kept!(server::AllocSetContextCreateInternal(
            shared,
            c"pg_arrow_cache exchanged".as_ptr(),
            pg_sys::ALLOCSET_SMALL_MINSIZE as usize,
            pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
            pg_sys::ALLOCSET_SMALL_MAXSIZE as usize,
        ));
        pg_sys::MemoryContextSetParent((*borrower).es_query_cxt, shared);
        (*borrower).es_query_cxt = shared;
    }
}

/// Has a started plan the columns of the plan that a query has started?
///
/// # Safety
/// Both must be started.
pub unsafe fn has_columns_of(query: QueryDesc<'_>, started: *mut pg_sys::QueryDesc) -> bool {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::equalTupleDescs((*started).tupDesc, (*query.as_ptr()).tupDesc) }
}

/// Ends what was started and has not run.
///
/// # Safety
/// A started descriptor that nobody uses any more.
pub unsafe fn end_started(desc: *mut pg_sys::QueryDesc) {
    // SAFETY: the caller's promise.
    unsafe {
        kept!(server::standard_ExecutorFinish(desc));
        kept!(server::standard_ExecutorEnd(desc));
        kept!(server::FreeQueryDesc(desc));
    }
}
