//! Where the errors of a query inside a SQL function come from, as the client is told.

use std::ffi::{CStr, c_char, c_void};

use pgrx::pg_sys;

use crate::pg::server;

/// Runs code whose errors and messages come from the query in `text`. As with a query in a procedural language, their
/// position is one in `text`; without a position, the query is a line of the context.
pub fn within<R>(text: &CStr, code: impl FnOnce() -> R) -> R {
    /// Takes the callback off the stack, after a panic too.
    struct Entered(*mut pg_sys::ErrorContextCallback);
    impl Drop for Entered {
        fn drop(&mut self) {
            // SAFETY: a plain global of the backend, which has one thread.
            unsafe { pg_sys::error_context_stack = self.0 };
        }
    }
    // SAFETY: the backend has one thread. The callback and the text live until `Entered` has taken the callback off the
    // stack.
    unsafe {
        let outer = pg_sys::error_context_stack;
        let mut callback = pg_sys::ErrorContextCallback {
            previous: outer,
            callback: Some(tell_where),
            arg: text.as_ptr().cast_mut().cast(),
        };
        let _entered = Entered(outer);
        pg_sys::error_context_stack = &raw mut callback;
        code()
    }
}

/// What SPI tells of its queries (_SPI_error_callback).
unsafe extern "C-unwind" fn tell_where(text: *mut c_void) {
    let text: *const c_char = text.cast();
    // SAFETY: called while a report is made, with the text that was given. All that can be raised here is a lack of
    // memory; no destructor is pending.
    unsafe {
        let position = direct!(pg_sys::geterrposition());
        if position > 0 {
            direct!(pg_sys::errposition(0));
            direct!(pg_sys::internalerrposition(position));
            direct!(pg_sys::internalerrquery(text));
        } else {
            direct!(pg_sys::set_errcontext_domain(std::ptr::null()));
            direct!(server::errcontext_msg(c"SQL statement \"%s\"".as_ptr(), text));
        }
    }
}
