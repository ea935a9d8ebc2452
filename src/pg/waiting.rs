//! Waiting for another backend, by condition variables in shared memory, and what must end such a wait: condition
//! variables are unknown to the server's detection of deadlocks. Keeps nothing.

use std::ffi::{c_int, c_long};
use std::time::Duration;

use pgrx::pg_sys;

use super::processes::places;
use super::{backend, compat, server};

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

/// Runs code in a transaction of its own that holds nothing yet, neither a snapshot nor locks, so that this session
/// holds back neither VACUUM nor replay nor others while it waits. What the calling statement has done before is
/// committed, as by COMMIT in a procedure. To be called from a procedure that may end transactions, outside of
/// subtransactions.
pub fn holding_nothing<R>(code: impl FnOnce() -> R) -> R {
    // SAFETY: the server's own way to end a transaction in a procedure; the caller promises that this is one. What is
    // connected is finished, or the abort of the transaction does that.
    unsafe {
        kept!(pg_sys::SPI_connect_ext(pg_sys::SPI_OPT_NONATOMIC as c_int));
        kept!(pg_sys::SPI_commit());
        let result = code();
        kept!(pg_sys::SPI_finish());
        result
    }
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

/// Sleeps until somebody wakes this process, or the time is over; perhaps for less. Whatever the caller waits for is to
/// be asked before and after it. Interrupts are accepted: an ERROR unwinds the caller as a panic.
pub fn sleep_until_woken(longest: Duration) {
    const EVENTS: u32 = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    let millis = longest.as_micros().div_ceil(1000).clamp(1, 60_000) as c_long;
    let event = compat::wait_event_of_change();
    // SAFETY: the latch of this process, which it may always wait for.
    unsafe {
        kept!(pg_sys::WaitLatch(pg_sys::MyLatch, EVENTS as c_int, millis, event));
        kept!(pg_sys::ResetLatch(pg_sys::MyLatch));
    }
    backend::accept_interrupts();
}

/// Wakes the process in the place of this number, which may have ended. Can neither raise nor wait.
pub fn wake_process(number: u32) {
    if let Some(process) = places().get(number as usize) {
        // SAFETY: a latch in shared memory, which lives as long as the server; whose it is meanwhile, is woken in vain.
        unsafe { kept!(pg_sys::SetLatch((&raw const process.procLatch).cast_mut())) };
    }
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
