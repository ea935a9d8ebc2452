//! What an ERROR of the server does when it passes our code. A statement's errors must reach the client exactly as
//! PostgreSQL raised them, with position, context and constraint name. There are two ways
//! (docs/architecture/serving.md, "Errors and the way out"):
//!
//! * Hooks do what C extensions do. Code of ours runs inside `edge`. The next hook is called outside of it, through
//!   `direct!`, and an ERROR raised there jumps over our frame. That is sound only for frames without destructors:
//!   `Copy` on the closures below makes the compiler check that they capture nothing that has one.
//! * Frames with destructors call the server through `kept!`, which puts the ERROR aside as it is and unwinds our
//!   frames as a panic. `edge`, the outermost of them, raises the ERROR again, as PG_CATCH and PG_RE_THROW do in C.
//!
//! An ERROR is put aside, and a report of ours is made, in a context of its own that has memory from the start: the
//! ERROR may be that there is none. State of this backend: that context, and what lies in it. No lock.

use std::any::Any;
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use pgrx::pg_sys::{self, panic::ErrorReportWithLevel};

use super::backend_local::Local;
use super::{attention, server};
use crate::error::CacheError;

/// The payload of a panic that stands for the ERROR of the server that was put aside last. It is empty, so that it
/// takes no memory that a jump might not give back.
struct Raised;

/// Bytes that the context has from the start, and keeps.
const KEPT: usize = 32 * 1024;

/// Where the last ERROR that was put aside, or the report that is being made, lies. Null before `prepare`.
static CONTEXT: Local<Cell<pg_sys::MemoryContext>> = Local::new(Cell::new(std::ptr::null_mut()));

/// The ERROR that was put aside last.
static ASIDE: Local<Cell<*mut pg_sys::ErrorData>> = Local::new(Cell::new(std::ptr::null_mut()));

/// Makes the context, before anything else is done. The postmaster's children inherit it.
pub fn prepare() {
    // SAFETY: a context that outlives all others, and a literal name.
    let context = unsafe {
        direct!(pg_sys::AllocSetContextCreateInternal(
            pg_sys::TopMemoryContext,
            c"pg_arrow_cache errors".as_ptr(),
            KEPT,
            KEPT,
            KEPT.max(pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize),
        ))
    };
    CONTEXT.set(context);
}

/// Empties the context and makes it the current one.
///
/// # Safety
/// The last ERROR that was put aside must be over, or lie in the server's own memory again.
unsafe fn enter() {
    attention::leave_for_end();
    // SAFETY: the context lives as long as the process, and what lived in it is not used any more; a reset frees
    // blocks.
    unsafe {
        direct!(pg_sys::MemoryContextReset(CONTEXT.get()));
        pg_sys::CurrentMemoryContext = CONTEXT.get();
    }
}

/// Gives back what a large error has taken, at the end of a transaction, when the server has a copy of its own. Needs
/// no memory and raises nothing.
///
/// # Safety
/// No error may be on its way through a function of ours.
pub unsafe fn recover() {
    let context = CONTEXT.get();
    // SAFETY: the context lives as long as the process; no error is on its way, so nothing in it is used.
    unsafe {
        if (*context).mem_allocated > KEPT {
            direct!(pg_sys::MemoryContextReset(context));
        }
    }
}

/// Does what `kept!` promises.
///
/// # Safety
/// `call` may only call C functions, through `direct!`. Its frames must have no destructors, and must not panic.
pub unsafe fn keeping<R: Copy>(call: impl FnOnce() -> R + Copy) -> R {
    // SAFETY: the caller promises what `tried` asks for.
    unsafe { tried(call) }.unwrap_or_else(|Present| {
        // SAFETY: where PG_CATCH would be, in the memory context of the caller.
        unsafe { put_aside() }
    })
}

/// Runs code; `None` if it raises an ERROR whose code `drops` accepts. What it has begun is not undone, so it must take
/// no lock and hold nothing but memory of the current context. Any other ERROR, and a panic, go on.
pub fn unless<R>(drops: fn(i32) -> bool, code: impl FnOnce() -> R) -> Option<R> {
    match caught(code) {
        Ok(result) => Some(result),
        Err(payload) if drops(code_of(&*payload)) => None,
        Err(payload) => resume_unwind(payload),
    }
}

/// What a panic carries.
pub type Payload = Box<dyn Any + Send>;

/// Runs code, and catches what it raises. What the server has opened and locked by then stays so: see `subtransaction`.
///
/// # Errors
/// What unwinds our frames, for `resume_unwind`. It holds until the next ERROR is put aside.
pub fn caught<R>(code: impl FnOnce() -> R) -> Result<R, Payload> {
    catch_unwind(AssertUnwindSafe(code))
}

/// The SQLSTATE of the ERROR that unwinds our frames; 0 for any other panic.
pub fn code_of(payload: &(dyn Any + Send)) -> i32 {
    if payload.is::<Raised>() {
        // SAFETY: it was put aside, and none was since.
        return unsafe { (*ASIDE.get()).sqlerrcode };
    }
    let report = payload.downcast_ref::<ErrorReportWithLevel>();
    report.map_or(0, |report| report.sql_error_code() as i32)
}

/// An ERROR that was just raised, and is the server's present one. Handlers and memory context are those from before
/// the call.
struct Present;

/// Calls C functions, and tells whether they have raised an ERROR (PG_TRY and PG_CATCH, in C).
///
/// # Safety
/// `call` may only call C functions, through `direct!`. Its frames must have no destructors, and must not panic.
#[inline(always)]
unsafe fn tried<R: Copy>(call: impl FnOnce() -> R + Copy) -> Result<R, Present> {
    let mut result = MaybeUninit::<R>::uninit();
    let place = result.as_mut_ptr();
    // SAFETY: the backend has one thread. The jump buffer lives on this frame and is taken off PostgreSQL's stack of
    // handlers before the frame ends. A jump passes frames of C and the closures, which have no destructors.
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

/// Puts the server's present ERROR aside, and unwinds our frames. If there is no memory for a copy, the ERROR about
/// that takes its place.
///
/// # Safety
/// Called where PG_CATCH would be, in a memory context that outlives errors.
#[cold]
#[inline(never)]
unsafe fn put_aside() -> ! {
    // SAFETY: the server has an ERROR that was just raised. If it was put aside before, further inside, it lies in the
    // server's own memory again.
    unsafe {
        let before = pg_sys::CurrentMemoryContext;
        enter();
        let copied = tried(|| direct!(pg_sys::CopyErrorData()));
        pg_sys::CurrentMemoryContext = before;
        direct!(pg_sys::FlushErrorState());
        match copied {
            Ok(error) => {
                ASIDE.set(error);
                resume_unwind(Box::new(Raised))
            }
            Err(Present) => CacheError::out_of_memory().raise(),
        }
    }
}

/// Runs code of ours in a function that PostgreSQL calls. A panic in it becomes an ERROR; a panic that stands for an
/// ERROR of the server becomes that ERROR again.
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
unsafe fn raise(payload: Payload) -> ! {
    // SAFETY: no frame up to PostgreSQL has pending destructors, nor has this one at the jump; the ERROR was put aside,
    // and none was since.
    unsafe {
        if payload.is::<Raised>() {
            drop(payload);
            #[expect(ffi_unwind_calls, reason = "the frames it jumps over have no destructors")]
            server::ReThrowError(ASIDE.get())
        }
        enter();
        pg_sys::panic::pgrx_extern_c_guard(|| resume_unwind(payload))
    }
}

/// Runs `call`, then `cleanup`, also when `call` raises. The ERROR is then raised again unchanged (PG_TRY and
/// PG_FINALLY, in C). `cleanup` must not raise.
///
/// # Safety
/// As `edge`. `call` may only call C functions, through `direct!`.
pub unsafe fn with_cleanup(call: impl FnOnce() + Copy, cleanup: impl FnOnce() + Copy) {
    // SAFETY: what `with_outcome` asks for is what this function asks for.
    unsafe { with_outcome(call, |_| cleanup()) }
}

/// Does what `with_cleanup` does, for a cleanup that needs to know whether `call` has raised. If so, that ERROR is
/// still the server's present one.
///
/// # Safety
/// As `with_cleanup`.
pub unsafe fn with_outcome(call: impl FnOnce() + Copy, cleanup: impl FnOnce(bool) + Copy) {
    // SAFETY: the caller's promise; the server's present ERROR is raised again.
    unsafe {
        let outcome = tried(call);
        cleanup(outcome.is_err());
        if outcome.is_err() {
            #[expect(ffi_unwind_calls, reason = "the frames it jumps over have no destructors")]
            server::pg_re_throw()
        }
    }
}
