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
            // SAFETY: the arguments are those PostgreSQL gave to the hook.
            unsafe { $run(query_desc, direction, count, execute_once) }
        }
        #[cfg(feature = "pg18")]
        pub(super) unsafe extern "C-unwind" fn $name(
            query_desc: *mut pgrx::pg_sys::QueryDesc,
            direction: pgrx::pg_sys::ScanDirection::Type,
            count: u64,
        ) {
            // SAFETY: the arguments are those PostgreSQL gave to the hook.
            unsafe { $run(query_desc, direction, count, true) }
        }
    };
}
pub(crate) use executor_run_hook;

/// Calls the next `ExecutorRun` in line; what it raises jumps over this frame.
///
/// # Safety
/// The arguments must be those of a running `ExecutorRun` hook, and the caller's frame must have no destructors (see
/// `edge`).
pub unsafe fn call_executor_run(
    run: ExecutorRunHook,
    query_desc: *mut pg_sys::QueryDesc,
    direction: pg_sys::ScanDirection::Type,
    count: u64,
    _execute_once: bool,
) {
    // SAFETY: a hook of another library, or the server's own function, called with the server's own arguments.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        direct!(run(query_desc, direction, count, _execute_once));
        #[cfg(feature = "pg18")]
        direct!(run(query_desc, direction, count));
    }
}

/// Runs a started query through all hooks, for `count` rows (0: all). `once` says that it will not be run again, so
/// that parallel workers may be used.
///
/// # Safety
/// `query_desc` must be a started query.
pub unsafe fn executor_run(
    query_desc: *mut pg_sys::QueryDesc,
    direction: pg_sys::ScanDirection::Type,
    count: u64,
    once: bool,
) {
    #[cfg(not(feature = "pg18"))]
    // SAFETY: a started query.
    unsafe {
        kept!(pg_sys::ExecutorRun(query_desc, direction, count, once));
    }
    #[cfg(feature = "pg18")]
    // SAFETY: a started query. The server finds out by itself whether this is the only run.
    unsafe {
        let _ = once;
        kept!(pg_sys::ExecutorRun(query_desc, direction, count));
    }
}

/// Runs a started query to its end, without the hooks.
///
/// # Safety
/// `query_desc` must be a started query.
pub unsafe fn standard_executor_run(query_desc: *mut pg_sys::QueryDesc) {
    let forward = pg_sys::ScanDirection::ForwardScanDirection;
    // SAFETY: a started query; the closure has no destructors.
    unsafe { keeping(|| call_executor_run(standard_ExecutorRun, query_desc, forward, 0, true)) };
}
