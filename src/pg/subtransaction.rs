//! Running code of the server that may raise, where its ERROR must not reach the user: in a subtransaction, which takes
//! back what the server has opened and locked by then. Keeps nothing.

use pgrx::pg_sys;

use std::panic::resume_unwind;

use super::error_passing::{caught, code_of};
use crate::error::is_cancel;

/// Runs code whose result may be refused (`None`), or is in the memory that is current. If there is a result, what the
/// server has locked for it stays locked; otherwise everything that the server has opened and locked meanwhile is given
/// back. The code waits for locks as long as the user's settings let it. A statement that is cancelled stays cancelled:
/// that ERROR is raised.
///
/// Nothing is tried without an active snapshot, or in parallel mode, which has no subtransactions. The code must change
/// no rows.
pub fn attempt<R>(code: impl FnOnce() -> Option<R>) -> Option<R> {
    // SAFETY: plain state of the backend, which has one thread. Inside a transaction, as the active snapshot shows, the
    // server allows subtransactions in all states but parallel mode. Each that is begun here ends here.
    unsafe {
        if !kept!(pg_sys::ActiveSnapshotSet()) || kept!(pg_sys::IsInParallelMode()) {
            return None;
        }
        let (memory, owner) = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
        kept!(pg_sys::BeginInternalSubTransaction(std::ptr::null()));
        pg_sys::MemoryContextSwitchTo(memory);
        let result = caught(code);
        pg_sys::MemoryContextSwitchTo(memory);
        if matches!(result, Ok(Some(_))) {
            kept!(pg_sys::ReleaseCurrentSubTransaction());
        } else {
            kept!(pg_sys::RollbackAndReleaseCurrentSubTransaction());
        }
        pg_sys::MemoryContextSwitchTo(memory);
        pg_sys::CurrentResourceOwner = owner;
        match result {
            Ok(result) => result,
            Err(payload) if is_cancel(code_of(&*payload)) => resume_unwind(payload),
            Err(_) => None,
        }
    }
}
