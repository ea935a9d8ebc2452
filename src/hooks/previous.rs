//! The hooks that were installed before ours, which ours call, and whether ours do more than that. No lock: every process has a copy of
//! its own, made in the postmaster.

use pgrx::pg_sys;

use crate::pg::compat::ExecutorRunHook;
use crate::{settings, shmem};

/// The hooks that were installed before ours.
pub struct Previous {
    pub request: pg_sys::shmem_request_hook_type,
    pub startup: pg_sys::shmem_startup_hook_type,
    pub planner: pg_sys::planner_hook_type,
    pub paths: pg_sys::set_rel_pathlist_hook_type,
    pub start: pg_sys::ExecutorStart_hook_type,
    pub run: Option<ExecutorRunHook>,
    pub finish: pg_sys::ExecutorFinish_hook_type,
    pub end: pg_sys::ExecutorEnd_hook_type,
    pub utility: pg_sys::ProcessUtility_hook_type,
    pub access: pg_sys::object_access_hook_type,
    pub counting: pg_sys::GucBoolAssignHook,
}

/// Written once, while the postmaster preloads libraries; only read afterwards.
pub static mut PREVIOUS: Previous = Previous {
    request: None,
    startup: None,
    planner: None,
    paths: None,
    start: None,
    run: None,
    finish: None,
    end: None,
    utility: None,
    access: None,
    counting: None,
};

/// Is this a process whose statements we serve, with the cache switched on?
pub fn active() -> bool {
    // SAFETY: a plain global, set before a parallel worker runs anything.
    let worker = unsafe { pg_sys::ParallelWorkerNumber } >= 0;
    !worker && settings::enabled() && shmem::preloaded()
}
