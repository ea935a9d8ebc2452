//! The only room that installs hooks. Each hook asks whether we are on, calls the next library in line, and hands over to one named
//! function. `pg::error_passing` says how that leaves errors as they are.
//!
//! The hooks that were installed before ours are kept here (`PREVIOUS`): written once, in the postmaster.

mod executor;
mod object_access;
mod planner;
mod shared_memory;
mod track_counts;
mod transaction;
mod utility;
mod utility_scope;

use pgrx::pg_sys;

use crate::invalidation;
use crate::pg::compat::ExecutorRunHook;
use crate::pg::server_settings;
use crate::{serve, settings, shmem};

/// The hooks that were installed before ours.
struct Previous {
    request: pg_sys::shmem_request_hook_type,
    startup: pg_sys::shmem_startup_hook_type,
    planner: pg_sys::planner_hook_type,
    start: pg_sys::ExecutorStart_hook_type,
    run: Option<ExecutorRunHook>,
    finish: pg_sys::ExecutorFinish_hook_type,
    end: pg_sys::ExecutorEnd_hook_type,
    utility: pg_sys::ProcessUtility_hook_type,
    access: pg_sys::object_access_hook_type,
    counting: pg_sys::GucBoolAssignHook,
}

static mut PREVIOUS: Previous = Previous {
    request: None,
    startup: None,
    planner: None,
    start: None,
    run: None,
    finish: None,
    end: None,
    utility: None,
    access: None,
    counting: None,
};

/// Installs all hooks and callbacks. Called once, while the postmaster preloads libraries.
pub fn install() {
    // SAFETY: the postmaster is single-threaded and no hook runs while libraries are preloaded;
    // afterwards PREVIOUS is only read.
    unsafe {
        PREVIOUS = Previous {
            request: pg_sys::shmem_request_hook,
            startup: pg_sys::shmem_startup_hook,
            planner: pg_sys::planner_hook,
            start: pg_sys::ExecutorStart_hook,
            run: pg_sys::ExecutorRun_hook,
            finish: pg_sys::ExecutorFinish_hook,
            end: pg_sys::ExecutorEnd_hook,
            utility: pg_sys::ProcessUtility_hook,
            access: pg_sys::object_access_hook,
            counting: None,
        };
        if let Some(place) = server_settings::counting_hook().as_mut() {
            PREVIOUS.counting = place.replace(track_counts::assign);
            invalidation::track_counts::watch();
        }
        pg_sys::shmem_request_hook = Some(shared_memory::request);
        pg_sys::shmem_startup_hook = Some(shared_memory::startup);
        pg_sys::planner_hook = Some(planner::plan);
        pg_sys::ExecutorStart_hook = Some(executor::start);
        pg_sys::ExecutorRun_hook = Some(executor::run);
        pg_sys::ExecutorFinish_hook = Some(executor::finish);
        pg_sys::ExecutorEnd_hook = Some(executor::end);
        pg_sys::ProcessUtility_hook = Some(utility::process);
        pg_sys::object_access_hook = Some(object_access::access);
        pg_sys::RegisterResourceReleaseCallback(Some(transaction::resources_released), std::ptr::null_mut());
    }
    serve::register();
}

/// Is this a process whose statements we serve, with the cache switched on?
fn active() -> bool {
    // SAFETY: a plain global, set before a parallel worker runs anything.
    let worker = unsafe { pg_sys::ParallelWorkerNumber } >= 0;
    !worker && settings::enabled() && shmem::preloaded()
}
