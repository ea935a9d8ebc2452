//! Names of wait events, the timeouts that end a statement, and the locks that a session holds.

use std::cell::Cell;
use std::ffi::{CStr, c_int};

use pgrx::pg_sys;

use crate::pg::backend_local::Local;

/// The timeouts (utils/timeout.h) that end a statement: statement_timeout, and from 17 on transaction_timeout.
#[cfg(any(feature = "pg15", feature = "pg16"))]
pub const TIMEOUTS_OF_STATEMENTS: &[c_int] = &[3];
#[cfg(any(feature = "pg17", feature = "pg18"))]
pub const TIMEOUTS_OF_STATEMENTS: &[c_int] = &[3, 8];

/// The wait event of a session that waits until another one has computed its answer.
pub fn wait_event_of_fill() -> u32 {
    static EVENT: Local<Cell<u32>> = Local::new(Cell::new(0));
    wait_event(&EVENT, c"ArrowCacheFill")
}

/// The wait event of a session that waits until an answer may have changed.
pub fn wait_event_of_change() -> u32 {
    static EVENT: Local<Cell<u32>> = Local::new(Cell::new(0));
    wait_event(&EVENT, c"ArrowCacheChange")
}

/// A wait event of this name, which `known` keeps. Before 17 events of extensions have no names.
fn wait_event(known: &Cell<u32>, name: &CStr) -> u32 {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    let make = || {
        let _ = name;
        pg_sys::PG_WAIT_EXTENSION
    };
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    // SAFETY: the name is a text that ends in NUL; the server keeps a copy, the same for all backends. What it raises
    // unwinds our frames.
    let make = || unsafe { kept!(pg_sys::WaitEventExtensionNew(name.as_ptr())) };
    if known.get() == 0 {
        known.set(make());
    }
    known.get()
}

/// Returns true if this session holds this lock in this mode. Looks into a table of the backend.
pub fn holds_lock(tag: &pg_sys::LOCKTAG, mode: i32) -> bool {
    // SAFETY: a search in a hash table of this backend, with a key of any bytes; it neither raises nor waits.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        return direct!(pg_sys::LockHeldByMe(tag, mode));
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        return direct!(pg_sys::LockHeldByMe(tag, mode, false));
    }
}
