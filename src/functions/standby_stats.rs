//! What the view `stats` shows of a standby. Keeps nothing.

use crate::pg::backend;
use crate::pg::function_call::FunctionCall;
use crate::pg::signature::Signature;
use crate::pg::sql_function::sql_function;
use crate::shmem;

/// Does this server replay, and does its cache follow?
fn standby_state(_: FunctionCall<'_>) -> String {
    match shmem::required().replay().fault() {
        _ if !backend::is_in_recovery() => "primary".to_owned(),
        None => "replaying".to_owned(),
        Some(fault) => format!("off: {}", fault.name()),
    }
}

sql_function!(standby_state, Signature::of(&[]), "arrow_cache_standby_state");
