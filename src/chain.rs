//! Calling what is next in line without standing in its way.
//!
//! A statement's errors must reach the client exactly as PostgreSQL raised them: position, context,
//! constraint name and all. pgrx's guard turns an ERROR into a panic and builds a new ERROR from
//! it, which keeps only message, detail and hint. So the hooks do what C extensions do: code of
//! ours runs inside `edge`, the next in line is called outside of it, and an ERROR raised there
//! jumps over our frame untouched. That is sound only for frames without destructors: `Copy` on
//! the closures below makes the compiler check that they capture nothing that has one.

use pgrx::pg_sys;

unsafe extern "C-unwind" {
    /// utils/elog.h
    fn pg_re_throw() -> !;
}

/// Calls a C function or function pointer directly: what it raises jumps over our frame.
macro_rules! direct {
    ($call:expr) => {{
        #[expect(ffi_unwind_calls, reason = "the frames it may jump over have no destructors")]
        let result = $call;
        result
    }};
}
pub(crate) use direct;

/// Calls a C function or function pointer that may raise: the ERROR unwinds our frames as a panic.
/// The call must be all there is in the expression.
macro_rules! guarded {
    ($call:expr) => {{
        #[expect(ffi_unwind_calls, reason = "pg_guard_ffi_boundary catches what the call raises")]
        let result = pgrx::pg_sys::ffi::pg_guard_ffi_boundary(|| $call);
        result
    }};
}
pub(crate) use guarded;

/// Runs code of ours in a function that PostgreSQL calls: a panic in it becomes an ERROR.
///
/// # Safety
/// No frame between here and PostgreSQL may have pending destructors.
pub unsafe fn edge<R>(code: impl FnOnce() -> R) -> R {
    // SAFETY: as the caller promises.
    unsafe { pg_sys::panic::pgrx_extern_c_guard(code) }
}

/// Runs `call`, then `cleanup`, also when `call` raises; the ERROR then goes on its way unchanged
/// (PG_TRY and PG_FINALLY, in C). `cleanup` must not raise.
///
/// # Safety
/// As `edge`. `call` may only call C functions, through `direct!`.
pub unsafe fn with_cleanup(call: impl FnOnce() + Copy, cleanup: impl FnOnce() + Copy) {
    // SAFETY: the backend has one thread. The jump buffer lives on this frame and is taken off
    // PostgreSQL's stack of handlers before the frame ends. On a jump, the frames between have no
    // destructors, as the caller promises.
    unsafe {
        let handlers = pg_sys::PG_exception_stack;
        let contexts = pg_sys::error_context_stack;
        let raised = cee_scape::call_with_sigsetjmp(false, |buffer| {
            pg_sys::PG_exception_stack = std::ptr::from_ref(buffer).cast_mut().cast();
            call();
            0
        });
        pg_sys::PG_exception_stack = handlers;
        pg_sys::error_context_stack = contexts;
        cleanup();
        if raised != 0 {
            #[expect(ffi_unwind_calls, reason = "the frames it jumps over have no destructors")]
            {
                pg_re_throw()
            }
        }
    }
}
