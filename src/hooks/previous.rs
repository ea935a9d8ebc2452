//! What our hooks call: the hooks that were installed before ours, or the server's own functions; and whether ours do
//! more than that. No lock: every process has a copy of its own, made in the postmaster.

use std::ffi::{c_char, c_int};

use pgrx::pg_sys;

use crate::pg::compat::{ExecutorRunHook, standard_ExecutorRun};
use crate::pg::server;
use crate::{settings, shmem};

/// `planner_hook`.
pub type Planner = unsafe extern "C-unwind" fn(
    *mut pg_sys::Query,
    *const c_char,
    c_int,
    pg_sys::ParamListInfo,
) -> *mut pg_sys::PlannedStmt;
/// `ProcessUtility_hook`.
pub type ProcessUtility = unsafe extern "C-unwind" fn(
    *mut pg_sys::PlannedStmt,
    *const c_char,
    bool,
    pg_sys::ProcessUtilityContext::Type,
    pg_sys::ParamListInfo,
    *mut pg_sys::QueryEnvironment,
    *mut pg_sys::DestReceiver,
    *mut pg_sys::QueryCompletion,
);

/// The hooks that were installed before ours. Where there was none, and the server has a function that it calls then,
/// it is that function.
pub struct Previous {
    pub request: pg_sys::shmem_request_hook_type,
    pub startup: pg_sys::shmem_startup_hook_type,
    pub planner: Planner,
    pub paths: pg_sys::set_rel_pathlist_hook_type,
    pub stats: pg_sys::get_relation_stats_hook_type,
    pub start: unsafe extern "C-unwind" fn(*mut pg_sys::QueryDesc, c_int),
    pub run: ExecutorRunHook,
    pub finish: unsafe extern "C-unwind" fn(*mut pg_sys::QueryDesc),
    pub end: unsafe extern "C-unwind" fn(*mut pg_sys::QueryDesc),
    pub utility: ProcessUtility,
    pub access: pg_sys::object_access_hook_type,
    pub counting: pg_sys::GucBoolAssignHook,
}

/// Written once, while the postmaster preloads libraries; only read afterwards.
pub static mut PREVIOUS: Previous = Previous {
    request: None,
    startup: None,
    planner: server::standard_planner,
    paths: None,
    stats: None,
    start: server::standard_ExecutorStart,
    run: standard_ExecutorRun,
    finish: server::standard_ExecutorFinish,
    end: server::standard_ExecutorEnd,
    utility: server::standard_ProcessUtility,
    access: None,
    counting: None,
};

/// Returns true if this is a process whose statements we serve, with the cache switched on.
#[inline]
pub fn active() -> bool {
    // SAFETY: a plain global, set before a parallel worker runs anything.
    let worker = unsafe { pg_sys::ParallelWorkerNumber } >= 0;
    !worker && settings::enabled() && shmem::preloaded()
}
