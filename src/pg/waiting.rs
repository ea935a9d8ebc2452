//! Waiting for another backend, by condition variables in shared memory, and what must end such a wait: condition
//! variables are unknown to the server's detection of deadlocks. Keeps nothing.

use std::ffi::{c_int, c_long};
use std::time::Duration;

use pgrx::pg_sys;

use super::processes::places;
use super::{compat, server};

/// Number of this backend among all processes of the server.
pub fn own_process() -> u32 {
    // SAFETY: both are set for the life of a backend; its PGPROC is an element of that array.
    unsafe { pg_sys::MyProc.offset_from((*pg_sys::ProcGlobal).allProcs) as u32 }
}

/// The class of what a process waits for at this moment (`PG_WAIT_…`).
fn wait_class(process: &pg_sys::PGPROC) -> u32 {
    const CLASS: u32 = 0xFF00_0000;
    // SAFETY: an aligned word in shared memory.
    CLASS & unsafe { (&raw const process.wait_event_info).read_volatile() }
}

/// Returns true if another backend waits for a lock, or for its client, at this moment.
pub fn is_held_up(process: u32) -> bool {
    let event = places().get(process as usize).map(wait_class);
    [Some(pg_sys::PG_WAIT_LOCK), Some(pg_sys::PG_WAIT_CLIENT)].contains(&event)
}

/// Returns true if a process waits for a lock that this session holds.
pub fn is_in_the_way() -> bool {
    const MODES: std::ops::RangeInclusive<i32> = 1..=pg_sys::AccessExclusiveLock as i32;
    places().iter().filter(|process| wait_class(process) == pg_sys::PG_WAIT_LOCK).any(|process| {
        // SAFETY: null, or a place in the server's table of locks, which stays mapped; the place may be given to
        // another lock meanwhile, so that the answer may be wrong once.
        let tag = unsafe {
            let lock = (&raw const process.waitLock).read_volatile();
            if lock.is_null() {
                return false;
            }
            (&raw const (*lock).tag).read_volatile()
        };
        MODES.into_iter().any(|mode| compat::holds_lock(&tag, mode))
    })
}

/// Returns true if the present statement is alone in its transaction, which has not written anything, as far as that
/// can be told without looking at locks.
pub fn is_alone_in_transaction() -> bool {
    !server::IsTransactionBlock() && super::backend::top_transaction_id() == 0
}

/// How long the present statement may still take, if it is limited.
pub fn time_left() -> Option<Duration> {
    // SAFETY: the functions read state of the backend.
    let left = |id: c_int| unsafe {
        server::get_timeout_active(id)
            .then(|| server::get_timeout_finish_time(id) - server::GetCurrentTimestamp())
            .map(|micros| Duration::from_micros(micros.max(0).cast_unsigned()))
    };
    compat::TIMEOUTS_OF_STATEMENTS.iter().filter_map(|id| left(*id)).min()
}

/// Readies a condition variable in shared memory.
///
/// # Safety
/// `variable` points to memory that nobody else uses yet.
pub unsafe fn initialize(variable: *mut pg_sys::ConditionVariable) {
    // SAFETY: the caller's promise.
    unsafe { server::ConditionVariableInit(variable) };
}

/// Sleeps until the variable is signalled or the time is over. The first call returns at once: whatever the caller
/// waits for is to be asked after it. Must be followed by `leave`. Interrupts are accepted: an ERROR unwinds the caller
/// as a panic, and the server leaves the variable.
///
/// # Safety
/// `variable` was initialized.
pub unsafe fn sleep(variable: *mut pg_sys::ConditionVariable, longest: Duration) {
    let millis = longest.as_millis().clamp(1, 60_000) as c_long;
    let event = compat::wait_event_of_fill();
    // SAFETY: the caller's promise.
    unsafe { kept!(pg_sys::ConditionVariableTimedSleep(variable, millis, event)) };
}

/// Stops waiting.
pub fn leave() {
    server::ConditionVariableCancelSleep();
}

/// Wakes all who wait. May run in the middle of error recovery.
///
/// # Safety
/// `variable` was initialized.
pub unsafe fn wake(variable: *mut pg_sys::ConditionVariable) {
    // SAFETY: the caller's promise. Without an own process there is no place in the list of waiters.
    unsafe {
        if !pg_sys::MyProc.is_null() {
            server::ConditionVariableBroadcast(variable);
        }
    }
}
