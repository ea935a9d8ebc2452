//! The hooks for shared memory: the postmaster asks for ours, and lays it out. No lock of ours; the server holds its
//! own.

use std::sync::OnceLock;

use super::previous::PREVIOUS;
use super::{replay, transaction};
use crate::invalidation::last_callback;
use crate::pg::error_passing::edge;
use crate::{error, restart, shmem};

/// Set once the callbacks are in place that come after those of all preloaded libraries.
static CALLBACKS_REGISTERED: OnceLock<()> = OnceLock::new();

/// `shmem_request_hook`.
///
/// # Safety
/// Called by the server.
pub unsafe extern "C-unwind" fn request() {
    // SAFETY: the next hook in line, called as PostgreSQL called us.
    unsafe {
        if let Some(hook) = PREVIOUS.request {
            direct!(hook());
        }
        edge(shmem::request);
    }
}

/// `shmem_startup_hook`.
///
/// # Safety
/// Called by the server.
pub unsafe extern "C-unwind" fn startup() {
    // SAFETY: the next hook in line, called as PostgreSQL called us.
    unsafe {
        if let Some(hook) = PREVIOUS.startup {
            direct!(hook());
        }
        edge(|| {
            shmem::startup(restart::begin);
            // After a crash of a backend the postmaster comes here again, with its callbacks in place.
            if CALLBACKS_REGISTERED.set(()).is_ok() {
                if !last_callback::register(transaction::ended) {
                    error::log_unexpected("No library that writes while it commits may be preloaded before it.");
                }
                replay::wrap();
            }
        });
    }
}
