//! Running code of the server that may raise, where its ERROR must not reach the user: in a subtransaction, which takes back what the
//! server has opened and locked by then. Keeps nothing.

use pgrx::pg_sys;

use crate::error::{Raised, caught};

/// Longest time that the code waits for a lock, in milliseconds: the statement itself may never ask for it.
const LONGEST_WAIT: i32 = 1;

/// Runs code whose result may be refused (`None`), or is in the memory that is current. Whatever it comes to, everything that the server has opened
/// and locked meanwhile is given back. The code writes no message below ERROR. A statement that is cancelled stays cancelled: that ERROR is raised.
///
/// Nothing is tried without an active snapshot, or in parallel mode, which has no subtransactions. The code must change no rows.
pub fn attempt<R>(code: impl FnOnce() -> Option<R>) -> Option<R> {
    // SAFETY: plain state of the backend, which has one thread. Inside a transaction, as the active snapshot shows, the server allows
    // subtransactions in all states but parallel mode. Each that is begun here ends here.
    unsafe {
        if !pg_sys::ActiveSnapshotSet() || pg_sys::IsInParallelMode() {
            return None;
        }
        let (memory, owner) = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
        let (to_client, to_log, wait) = (pg_sys::client_min_messages, pg_sys::log_min_messages, pg_sys::LockTimeout);
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::MemoryContextSwitchTo(memory);
        pg_sys::client_min_messages = pgrx::PgLogLevel::ERROR as i32;
        pg_sys::log_min_messages = pgrx::PgLogLevel::ERROR as i32;
        pg_sys::LockTimeout = LONGEST_WAIT;
        let mut result = caught(code);
        // The time may have been up when a lock was given: the server then cancels the statement at the next occasion, which must not come later
        // than this.
        let interrupted = caught(|| {
            pgrx::check_for_interrupts!();
        });
        if let Err(raised) = interrupted
            && !matches!(result, Err(Raised::Cancel(_)))
        {
            result = Err(raised);
        }
        pg_sys::LockTimeout = wait;
        pg_sys::client_min_messages = to_client;
        pg_sys::log_min_messages = to_log;
        pg_sys::MemoryContextSwitchTo(memory);
        pg_sys::RollbackAndReleaseCurrentSubTransaction();
        pg_sys::MemoryContextSwitchTo(memory);
        pg_sys::CurrentResourceOwner = owner;
        match result {
            Ok(result) => result,
            Err(Raised::Failure) => None,
            Err(Raised::Cancel(error)) => error.rethrow(),
        }
    }
}
