//! Calling the server and the next hook in line so that an ERROR raised there passes our code unchanged.
//!
//! A statement's errors must reach the client exactly as PostgreSQL raised them, with position, context and constraint name. pgrx's
//! guard turns an ERROR into a panic and builds a new ERROR from it, which keeps only message, detail and hint. There are two ways
//! around that:
//!
//! * Hooks do what C extensions do. Code of ours runs inside `edge`. The next hook is called outside of it, through `direct!`, and an
//!   ERROR raised there jumps over our frame. That is sound only for frames without destructors: `Copy` on the closures below makes the
//!   compiler check that they capture nothing that has one.
//! * SQL functions have frames with destructors. They call the server through `kept!`, which puts the ERROR aside as it is and unwinds
//!   our frames as a panic. `edge`, the outermost of them, raises the ERROR again, as PG_CATCH and PG_RE_THROW do in C.
//!
//! State of this backend: where the last ERROR that was put aside lies. No lock.

use std::any::Any;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use pgrx::pg_sys;

use super::backend_local::Local;
use super::server;
use crate::error::{is_about_a_value, is_about_memory};

/// Calls a C function or function pointer directly: what it raises jumps over our frame.
macro_rules! direct {
    ($call:expr) => {{
        #[expect(ffi_unwind_calls, reason = "the frames it may jump over have no destructors")]
        let result = $call;
        result
    }};
}
pub(crate) use direct;

/// Calls a C function or function pointer that may raise: the ERROR unwinds our frames as a panic. The expression must be that call
/// alone.
macro_rules! guarded {
    ($call:expr) => {{
        #[expect(ffi_unwind_calls, reason = "pg_guard_ffi_boundary catches what the call raises")]
        let result = pgrx::pg_sys::ffi::pg_guard_ffi_boundary(|| $call);
        result
    }};
}
pub(crate) use guarded;

/// Calls a C function of `server` that may raise: the ERROR unwinds our frames as a panic, and the `edge` around them raises it again as
/// it was. The expression must be that call alone.
macro_rules! kept {
    ($call:expr) => {
        $crate::pg::error_passing::keeping(|| $crate::pg::error_passing::direct!($call))
    };
}
pub(crate) use kept;

/// The payload of a panic that stands for an ERROR of the server, which lies in `KEPT`.
struct Raised(*mut pg_sys::ErrorData);

// SAFETY: the backend has one thread, so that the pointer never comes to another.
unsafe impl Send for Raised {}

/// Where the last ERROR that was put aside lies: a context of its own, so that no cleanup on the way frees the error.
static KEPT: Local<std::cell::Cell<pg_sys::MemoryContext>> = Local::new(std::cell::Cell::new(std::ptr::null_mut()));

/// Does what `kept!` promises.
///
/// # Safety
/// `call` may only call C functions, through `direct!`. Its frames must have no destructors, and must not panic.
pub unsafe fn keeping<R: Copy>(call: impl FnOnce() -> R + Copy) -> R {
    // SAFETY: the caller promises what `tried` asks for.
    unsafe { tried(call) }.unwrap_or_else(|Present| {
        // SAFETY: where PG_CATCH would be, in the memory context of the caller.
        resume_unwind(Box::new(unsafe { put_aside() }))
    })
}

/// Calls functions of `server` that compute a value. `None` if they raise an ERROR about a value: it is dropped. Any other ERROR passes as it
/// does through `kept!`.
///
/// # Safety
/// `call` may only call such functions: what they have begun is not undone, so they must take no lock and hold nothing but memory of the
/// current context. Its frames must have no destructors, and must not panic.
pub unsafe fn caught<R: Copy>(call: impl FnOnce() -> R + Copy) -> Option<R> {
    // SAFETY: the caller promises what `tried` asks for.
    unsafe { tried(call).map_err(|Present| drop_if(is_about_a_value)).ok() }
}

/// Calls functions of `server` that allocate. `None` if there is no memory for that. Any other ERROR passes as it does through `kept!`.
///
/// # Safety
/// As `caught`.
pub unsafe fn if_memory<R: Copy>(call: impl FnOnce() -> R + Copy) -> Option<R> {
    // SAFETY: the caller promises what `tried` asks for.
    unsafe { tried(call).map_err(|Present| drop_if(is_about_memory)).ok() }
}

/// Drops the server's present ERROR if that holds of its code; else unwinds with it.
///
/// # Safety
/// As `put_aside`.
#[cold]
#[inline(never)]
unsafe fn drop_if(holds: fn(i32) -> bool) {
    // SAFETY: the server keeps the code of the ERROR until its state is flushed.
    unsafe {
        if !holds(direct!(server::geterrcode())) {
            resume_unwind(Box::new(put_aside()));
        }
        pg_sys::FlushErrorState();
    }
}

/// An ERROR that was just raised, and is the server's present one. Handlers and memory context are those from before the call.
struct Present;

/// Calls C functions, and tells whether they have raised an ERROR (PG_TRY and PG_CATCH, in C).
///
/// # Safety
/// `call` may only call C functions, through `direct!`. Its frames must have no destructors, and must not panic.
#[inline(always)]
unsafe fn tried<R: Copy>(call: impl FnOnce() -> R + Copy) -> Result<R, Present> {
    let mut result = MaybeUninit::<R>::uninit();
    let place = result.as_mut_ptr();
    // SAFETY: the backend has one thread. The jump buffer lives on this frame and is taken off PostgreSQL's stack of handlers before
    // the frame ends. A jump passes frames of C and the closures, which have no destructors.
    unsafe {
        let handlers = pg_sys::PG_exception_stack;
        let contexts = pg_sys::error_context_stack;
        let memory = pg_sys::CurrentMemoryContext;
        let raised = cee_scape::call_with_sigsetjmp(false, |buffer| {
            pg_sys::PG_exception_stack = std::ptr::from_ref(buffer).cast_mut().cast();
            place.write(call());
            0
        });
        pg_sys::PG_exception_stack = handlers;
        pg_sys::error_context_stack = contexts;
        if raised == 0 {
            return Ok(result.assume_init());
        }
        pg_sys::CurrentMemoryContext = memory;
        Err(Present)
    }
}

/// Puts the server's present ERROR aside.
///
/// # Safety
/// Called where PG_CATCH would be, in a memory context that outlives errors.
#[cold]
#[inline(never)]
unsafe fn put_aside() -> Raised {
    // SAFETY: the server has an ERROR that was just raised. If there is no memory for a copy, the ERROR about that takes its place.
    unsafe {
        let fresh = pg_sys::AllocSetContextCreateInternal(
            pg_sys::TopMemoryContext,
            c"pg_arrow_cache error".as_ptr(),
            0,
            pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        );
        let before = pg_sys::MemoryContextSwitchTo(fresh);
        let error = pg_sys::CopyErrorData();
        pg_sys::MemoryContextSwitchTo(before);
        pg_sys::FlushErrorState();
        // The ERROR may itself have been put aside further inside. It is copied now, so the old place can be freed.
        let last = KEPT.replace(fresh);
        if !last.is_null() {
            pg_sys::MemoryContextDelete(last);
        }
        Raised(error)
    }
}

/// Runs code of ours in a function that PostgreSQL calls. A panic in it becomes an ERROR; a panic that stands for an ERROR of the server
/// becomes that ERROR again.
///
/// # Safety
/// No frame between here and PostgreSQL may have pending destructors.
#[inline(always)]
pub unsafe fn edge<R>(code: impl FnOnce() -> R) -> R {
    match catch_unwind(AssertUnwindSafe(code)) {
        Ok(result) => result,
        // SAFETY: no frame between here and PostgreSQL has pending destructors, as the caller of `edge` ensures.
        Err(payload) => unsafe { raise(payload) },
    }
}

/// # Safety
/// As `edge`.
#[cold]
#[inline(never)]
unsafe fn raise(payload: Box<dyn Any + Send>) -> ! {
    // SAFETY: no frame up to PostgreSQL has pending destructors; the box is freed before the jump.
    unsafe {
        match payload.downcast::<Raised>() {
            Ok(raised) => {
                let Raised(error) = *raised;
                #[expect(ffi_unwind_calls, reason = "the frames it jumps over have no destructors")]
                {
                    server::ReThrowError(error)
                }
            }
            Err(other) => pg_sys::panic::pgrx_extern_c_guard(|| resume_unwind(other)),
        }
    }
}

/// Runs `call`, then `cleanup`, also when `call` raises. The ERROR is then raised again unchanged (PG_TRY and PG_FINALLY, in C).
/// `cleanup` must not raise.
///
/// # Safety
/// As `edge`. `call` may only call C functions, through `direct!`.
pub unsafe fn with_cleanup(call: impl FnOnce() + Copy, cleanup: impl FnOnce() + Copy) {
    // SAFETY: what `with_outcome` asks for is what this function asks for.
    unsafe { with_outcome(call, |_| cleanup()) }
}

/// Does what `with_cleanup` does, for a cleanup that needs to know whether `call` has raised. If so, that ERROR is still the server's
/// present one.
///
/// # Safety
/// As `with_cleanup`.
pub unsafe fn with_outcome(call: impl FnOnce() + Copy, cleanup: impl FnOnce(bool) + Copy) {
    // SAFETY: the backend has one thread. The jump buffer lives on this frame and is taken off PostgreSQL's stack of handlers before
    // the frame ends. A jump passes frames of C and the closures, which have no destructors.
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
        cleanup(raised != 0);
        if raised != 0 {
            #[expect(ffi_unwind_calls, reason = "the frames it jumps over have no destructors")]
            {
                server::pg_re_throw()
            }
        }
    }
}
