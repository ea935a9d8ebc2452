//! Running a query: `ExecutorRun` lost its last argument in 18.

use pgrx::pg_sys;

use crate::pg::error_passing::keeping;

unsafe extern "C-unwind" {
    /// executor/executor.h
    #[cfg(not(feature = "pg18"))]
    pub fn standard_ExecutorRun(
        query_desc: *mut pg_sys::QueryDesc,
        direction: pg_sys::ScanDirection::Type,
        count: u64,
        execute_once: bool,
    );
    /// executor/executor.h
    #[cfg(feature = "pg18")]
    pub fn standard_ExecutorRun(query_desc: *mut pg_sys::QueryDesc, direction: pg_sys::ScanDirection::Type, count: u64);
}

/// What a run of a query is asked for. Plain data.
#[derive(Clone, Copy)]
pub struct RunArguments {
    /// The direction.
    pub direction: pg_sys::ScanDirection::Type,
    /// How many rows; 0 for all.
    pub count: u64,
    /// The query will not be run again, so that parallel workers may be used. From 18 on the server finds that out.
    pub once: bool,
}

/// Raw hook signature of `ExecutorRun`, whose last argument went away in 18.
#[cfg(not(feature = "pg18"))]
pub type ExecutorRunHook = unsafe extern "C-unwind" fn(
    query_desc: *mut pg_sys::QueryDesc,
    direction: pg_sys::ScanDirection::Type,
    count: u64,
    execute_once: bool,
);
/// Raw hook signature of `ExecutorRun`.
#[cfg(feature = "pg18")]
pub type ExecutorRunHook =
    unsafe extern "C-unwind" fn(query_desc: *mut pg_sys::QueryDesc, direction: pg_sys::ScanDirection::Type, count: u64);

/// Defines the `ExecutorRun` hook of this server version over one version-independent function.
macro_rules! executor_run_hook {
    ($name:ident, $run:path) => {
        #[cfg(not(feature = "pg18"))]
        pub(super) unsafe extern "C-unwind" fn $name(
            query_desc: *mut pgrx::pg_sys::QueryDesc,
            direction: pgrx::pg_sys::ScanDirection::Type,
            count: u64,
            execute_once: bool,
        ) {
            let run = $crate::pg::compat::RunArguments { direction, count, once: execute_once };
            // SAFETY: the arguments are those PostgreSQL gave to the hook.
            unsafe { $run(query_desc, run) }
        }
        #[cfg(feature = "pg18")]
        pub(super) unsafe extern "C-unwind" fn $name(
            query_desc: *mut pgrx::pg_sys::QueryDesc,
            direction: pgrx::pg_sys::ScanDirection::Type,
            count: u64,
        ) {
            let run = $crate::pg::compat::RunArguments { direction, count, once: true };
            // SAFETY: the arguments are those PostgreSQL gave to the hook.
            unsafe { $run(query_desc, run) }
        }
    };
}
pub(crate) use executor_run_hook;

/// Calls the next `ExecutorRun` in line; what it raises jumps over this frame.
///
/// # Safety
/// The arguments must be those of a running `ExecutorRun` hook, and the caller's frame must have no destructors (see
/// `edge`).
pub unsafe fn call_executor_run(next: ExecutorRunHook, query_desc: *mut pg_sys::QueryDesc, run: RunArguments) {
    // SAFETY: a hook of another library, or the server's own function, called with the server's own arguments.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        direct!(next(query_desc, run.direction, run.count, run.once));
        #[cfg(feature = "pg18")]
        direct!(next(query_desc, run.direction, run.count));
    }
}

/// Runs a started query through all hooks.
///
/// # Safety
/// `query_desc` must be a started query.
pub unsafe fn executor_run(query_desc: *mut pg_sys::QueryDesc, run: RunArguments) {
    // SAFETY: a started query.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        kept!(pg_sys::ExecutorRun(query_desc, run.direction, run.count, run.once));
        #[cfg(feature = "pg18")]
        kept!(pg_sys::ExecutorRun(query_desc, run.direction, run.count));
    }
}

/// Runs a started query to its end, without the hooks.
///
/// # Safety
/// `query_desc` must be a started query.
pub unsafe fn standard_executor_run(query_desc: *mut pg_sys::QueryDesc) {
    let all = RunArguments { direction: pg_sys::ScanDirection::ForwardScanDirection, count: 0, once: true };
    // SAFETY: a started query; the closure has no destructors.
    unsafe { keeping(|| call_executor_run(standard_ExecutorRun, query_desc, all)) };
}
