//! Statements that were started combined of parts, although these must not be planned, and what runs instead of each. It is noted when the statement is started,
//! and taken when it is run. State of this backend; an entry goes with the memory of its statement, after an error too.

use std::ffi::c_void;

use arrow_cache_core::OutOfMemory;
use pgrx::pg_sys;

use crate::error::or_raise;
use crate::pg::attention::{Attended, Matter};
use crate::pg::backend_local::Local;
use crate::pg::memory_context::room_for;
use crate::pg::server;

/// By the addresses of states.
static REFUSED: Local<Attended<Vec<(usize, *mut pg_sys::Node)>>> =
    Local::new(Attended::new(Matter::Refused, Vec::new()));

/// What reports the end of a state's memory context. Lives in that context.
struct Registration {
    callback: pg_sys::MemoryContextCallback,
    state: usize,
}

/// Is there no such statement?
pub fn is_none() -> bool {
    REFUSED.holds_nothing()
}

/// Notes that the parts of a statement that is being started must not be planned, and what runs instead of it. Raises an error if there is no memory.
pub fn note(state: *mut pg_sys::EState, instead: *mut pg_sys::Node) {
    // SAFETY: the state of a statement that is being started. The registration lives in the context whose end it reports.
    unsafe {
        let context = (*state).es_query_cxt;
        let place = or_raise(room_for::<Registration>(context).ok_or(OutOfMemory));
        let callback =
            pg_sys::MemoryContextCallback { func: Some(gone), arg: place.cast(), next: std::ptr::null_mut() };
        place.write(Registration { callback, state: state as usize });
        server::MemoryContextRegisterResetCallback(context, &raw mut (*place).callback);
    }
    REFUSED.with_borrow_mut(|list| list.push((state as usize, instead)));
}

/// What runs instead of the statement with this state, if its parts must not be planned.
pub fn take(state: *mut pg_sys::EState) -> Option<*mut pg_sys::Node> {
    take_off(state as usize)
}

fn take_off(state: usize) -> Option<*mut pg_sys::Node> {
    REFUSED.with_borrow_mut(|list| {
        let place = list.iter().position(|(other, _)| *other == state)?;
        Some(list.swap_remove(place).1)
    })
}

/// The memory of a state goes away. Frees Rust memory and does nothing else.
unsafe extern "C-unwind" fn gone(registration: *mut c_void) {
    // SAFETY: registered with the address of the registration, which the context still contains.
    take_off(unsafe { (*registration.cast::<Registration>()).state });
}
