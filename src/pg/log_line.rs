//! Lines in the server's log that come without a hint and a code, unlike those of `error::log`. Keeps nothing.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::error_passing::keeping;
use super::server;

/// Writes a line to the server's log, without the statement that is running. Clients do not see it. Accepts interrupts,
/// as the server does where it writes to the log.
pub fn write(line: &CStr) {
    const LEVEL: i32 = pg_sys::LOG_SERVER_ONLY as i32;
    let text = line.as_ptr();
    // SAFETY: the functions are called as ereport() does; the line outlives the call, and the literals stay.
    unsafe {
        keeping(|| {
            if direct!(server::errstart(LEVEL, std::ptr::null())) {
                direct!(server::errmsg_internal(c"%s".as_ptr(), text));
                direct!(pg_sys::errhidestmt(true));
                direct!(server::errfinish(c"log_line.rs".as_ptr(), line!() as i32, c"write".as_ptr()));
            }
        });
    }
}
