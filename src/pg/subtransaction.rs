//! Running code of the server that may raise, where its ERROR must not reach the user: in a subtransaction, which takes back what the
//! server has opened and locked by then. Keeps nothing.

use pgrx::pg_sys;

use std::panic::resume_unwind;

use super::error_passing::{caught, code_of};
use crate::error::is_cancel;

/// Runs code whose result may be refused (`None`), or is in the memory that is current. Whatever it comes to, everything that the server has opened
/// and locked meanwhile is given back. The code writes no message below ERROR. It waits for locks as long as the user's settings let it. A statement that
/// is cancelled stays cancelled: that ERROR is raised.
///
/// Nothing is tried without an active snapshot, or in parallel mode, which has no subtransactions. The code must change no rows.
pub fn attempt<R>(code: impl FnOnce() -> Option<R>) -> Option<R> {
    attempt_and(false, code)
}

/// As `attempt`, but if there is a result, what the server has locked for it stays locked. Messages are written.
pub fn attempt_to_keep<R>(code: impl FnOnce() -> Option<R>) -> Option<R> {
    attempt_and(true, code)
}

fn attempt_and<R>(keep: bool, code: impl FnOnce() -> Option<R>) -> Option<R> {
    // SAFETY: plain state of the backend, which has one thread. Inside a transaction, as the active snapshot shows, the server allows
    // subtransactions in all states but parallel mode. Each that is begun here ends here.
    unsafe {
        if !kept!(pg_sys::ActiveSnapshotSet()) || kept!(pg_sys::IsInParallelMode()) {
            return None;
        }
        let (memory, owner) = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
        let (to_client, to_log) = (pg_sys::client_min_messages, pg_sys::log_min_messages);
        kept!(pg_sys::BeginInternalSubTransaction(std::ptr::null()));
        pg_sys::MemoryContextSwitchTo(memory);
        if !keep {
            pg_sys::client_min_messages = pgrx::PgLogLevel::ERROR as i32;
            pg_sys::log_min_messages = pgrx::PgLogLevel::ERROR as i32;
        }
        let result = caught(code);
        pg_sys::MemoryContextSwitchTo(memory);
        if keep && matches!(result, Ok(Some(_))) {
            kept!(pg_sys::ReleaseCurrentSubTransaction());
        } else {
            kept!(pg_sys::RollbackAndReleaseCurrentSubTransaction());
        }
        // After the rollback: it takes back what the code has set, to the values that were set above.
        pg_sys::client_min_messages = to_client;
        pg_sys::log_min_messages = to_log;
        pg_sys::MemoryContextSwitchTo(memory);
        pg_sys::CurrentResourceOwner = owner;
        match result {
            Ok(result) => result,
            Err(payload) if is_cancel(code_of(&*payload)) => resume_unwind(payload),
            Err(_) => None,
        }
    }
}
