//! SQL functions that tell what became of this session's last statement (`session/status.rs` keeps it).

use crate::pg::function_call::FunctionCall;
use crate::pg::sql_function::sql_function;
use crate::session;
use crate::shmem;

/// What became of this session's last top-level statement that did not itself call this function.
fn last_status(_: FunctionCall<'_>) -> Option<&'static str> {
    shmem::required();
    session::last_status().map(session::Status::name)
}

sql_function!(last_status, "arrow_cache_last_status");

/// Why that statement was bypassed or its result not stored.
fn last_reason(_: FunctionCall<'_>) -> Option<&'static str> {
    shmem::required();
    session::last_status()?.reason().map(arrow_cache_core::Reason::name)
}

sql_function!(last_reason, "arrow_cache_last_reason");
