//! The only room that installs hooks. Each hook asks whether we are on, calls the next library in line, and hands over
//! to one named function. `pg::error_passing` says how that leaves errors as they are.
//!
//! This file installs them, once, in the postmaster; each file below has the hooks of one moment. A session registers
//! the callback for released resources itself, when it needs that (`invalidation::redefinition`). `previous` keeps
//! those that were installed before ours, and says whether we are on.

mod executor;
mod object_access;
mod planner;
mod previous;
mod relation_paths;
mod relation_stats;
mod replay;
mod shared_memory;
mod track_counts;
mod transaction;
mod utility;
mod utility_scope;

use pgrx::pg_sys;

use crate::pg::compat::standard_ExecutorRun;
use crate::pg::{server, server_settings};
use crate::query::plan_marker;
use crate::{fragments, invalidation, serve};
use previous::{PREVIOUS, Previous};

/// Installs all hooks and callbacks. Called once, while the postmaster preloads libraries.
pub fn install() {
    // SAFETY: the postmaster is single-threaded and no hook runs while libraries are preloaded;
    // afterwards PREVIOUS is only read.
    unsafe {
        PREVIOUS = Previous {
            request: pg_sys::shmem_request_hook,
            startup: pg_sys::shmem_startup_hook,
            planner: pg_sys::planner_hook.unwrap_or(server::standard_planner),
            paths: pg_sys::set_rel_pathlist_hook,
            stats: pg_sys::get_relation_stats_hook,
            start: pg_sys::ExecutorStart_hook.unwrap_or(server::standard_ExecutorStart),
            run: pg_sys::ExecutorRun_hook.unwrap_or(standard_ExecutorRun),
            finish: pg_sys::ExecutorFinish_hook.unwrap_or(server::standard_ExecutorFinish),
            end: pg_sys::ExecutorEnd_hook.unwrap_or(server::standard_ExecutorEnd),
            utility: pg_sys::ProcessUtility_hook.unwrap_or(server::standard_ProcessUtility),
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
        pg_sys::set_rel_pathlist_hook = Some(relation_paths::add);
        pg_sys::get_relation_stats_hook = Some(relation_stats::tell);
        pg_sys::ExecutorStart_hook = Some(executor::start);
        pg_sys::ExecutorRun_hook = Some(executor::run);
        pg_sys::ExecutorFinish_hook = Some(executor::finish);
        pg_sys::ExecutorEnd_hook = Some(executor::end);
        pg_sys::ProcessUtility_hook = Some(utility::process);
        pg_sys::object_access_hook = Some(object_access::access);
    }
    plan_marker::register();
    serve::register();
    fragments::register();
}
