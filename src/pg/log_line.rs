//! Lines in the server's log that come without the statement that is running, unlike those of `error::log`. Keeps
//! nothing.

use std::ffi::CStr;

use pgrx::PgLogLevel;

use super::error_passing::keeping;
use super::server;

/// Writes a line to the server's log. Clients do not see it. Accepts interrupts, as the server does where it writes to
/// the log.
pub fn write(line: &CStr) {
    let text = line.as_ptr();
    // SAFETY: the functions are called as ereport() does; the line outlives the call, and the literals stay.
    unsafe {
        keeping(|| {
            if direct!(server::errstart(PgLogLevel::LOG_SERVER_ONLY as i32, std::ptr::null())) {
                direct!(server::errmsg_internal(c"%s".as_ptr(), text));
                direct!(pg_sys::errhidestmt(true));
                direct!(server::errfinish(c"log_line.rs".as_ptr(), line!() as i32, c"write".as_ptr()));
            }
        });
    }
}
