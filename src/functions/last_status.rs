//! SQL functions that tell what became of this session's last statement (`session/status.rs` keeps it).

use pgrx::prelude::*;

use crate::session;
use crate::shmem;

/// What became of this session's last top-level statement that did not itself call this function.
#[pg_extern(sql = false)]
fn last_status() -> Option<&'static str> {
    shmem::required();
    session::last_status().map(session::Status::name)
}

/// Why that statement was bypassed or its result not stored.
#[pg_extern(sql = false)]
fn last_reason() -> Option<&'static str> {
    shmem::required();
    session::last_status()?.reason().map(arrow_cache_core::Reason::name)
}
