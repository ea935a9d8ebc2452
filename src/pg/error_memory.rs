//! Memory for error reports when memory is short. pgrx copies an error of the server into the current memory context, which may be the
//! one that has no memory left. The server keeps a little memory for errors, but that does not help here: the copy fails with another
//! error, and so on, until the server gives up and restarts.
//!
//! Therefore pgrx's copies are made in a context of their own, which has its memory from the start. The linker leads pgrx's calls of two
//! of the server's functions to the functions here (`build.rs`). State of this backend; no locks.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};

use pgrx::pg_sys;

use super::allocator::{Headroom, headroom};
use super::attention;
use super::backend_local::Local;
use super::error_passing::direct;
use super::server;

/// Bytes that the context has from the start, and keeps.
const KEPT: usize = 32 * 1024;

/// Memory for the copies of an error's long texts. It is kept until the transaction ends or another error comes, because nobody tells when
/// an error is over.
static HEADROOM: Local<Cell<Option<Headroom>>> = Local::new(Cell::new(None));

/// The context; null before `prepare`.
static CONTEXT: Local<Cell<pg_sys::MemoryContext>> = Local::new(Cell::new(std::ptr::null_mut()));

/// Has an error been reported or copied since the last `recover`?
static USED: Local<Cell<bool>> = Local::new(Cell::new(false));

/// Makes the context. Called in the postmaster; its children inherit the context.
pub fn prepare() {
    // SAFETY: a context that outlives all others, and a literal name.
    let context = unsafe {
        pg_sys::AllocSetContextCreateInternal(
            pg_sys::TopMemoryContext,
            c"pg_arrow_cache errors".as_ptr(),
            KEPT,
            KEPT,
            KEPT.max(pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize),
        )
    };
    CONTEXT.set(context);
}

/// Empties the context and makes it the current one.
///
/// # Safety
/// Nothing that lives in the context may be used any more: an error is over before the next one begins.
unsafe fn enter() {
    attention::leave_for_end();
    USED.set(true);
    let context = CONTEXT.get();
    if !context.is_null() {
        // SAFETY: the context lives as long as the process, and what lived in it is not used any more.
        unsafe {
            direct!(server::MemoryContextReset(context));
            pg_sys::CurrentMemoryContext = context;
        }
    }
}

/// Gives back what a large error has taken, at the end of a transaction, when the server has a copy of its own. Needs no memory and raises
/// nothing.
///
/// # Safety
/// No error may be on its way through a function of ours.
#[inline]
pub unsafe fn recover() {
    if USED.replace(false) {
        // SAFETY: the caller's promise.
        unsafe { recover_used() };
    }
}

/// # Safety
/// As `recover`.
#[cold]
#[inline(never)]
unsafe fn recover_used() {
    HEADROOM.take();
    let context = CONTEXT.get();
    // SAFETY: the context lives as long as the process; no error is on its way, so that nothing in it is used; a reset frees blocks.
    unsafe {
        if !context.is_null() && (*context).mem_allocated > KEPT {
            direct!(server::MemoryContextReset(context));
        }
    }
}

/// Begins a report. The texts of an error are made in our context; the code that catches it switches to a context of its own.
///
/// # Safety
/// As the server's own function.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __wrap_errstart(level: c_int, domain: *const c_char) -> bool {
    // SAFETY: the arguments are those of the server's function. pgrx has taken over, and freed, what was copied of an earlier error.
    unsafe {
        let reported = direct!(server::__real_errstart(level, domain));
        if reported && level >= pgrx::PgLogLevel::ERROR as c_int {
            enter();
        }
        reported
    }
}

/// Copies the error that was caught, into our context.
///
/// # Safety
/// As the server's own function.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __wrap_CopyErrorData() -> *mut pg_sys::ErrorData {
    // SAFETY: called where an error was caught, as the server's function. Its texts lie in the server's own memory by now, so our
    // context can be emptied.
    unsafe {
        let caller = pg_sys::CurrentMemoryContext;
        HEADROOM.take();
        enter();
        let error = direct!(server::__real_CopyErrorData());
        pg_sys::CurrentMemoryContext = caller;
        let texts = [(*error).message, (*error).detail, (*error).hint];
        let longest =
            texts.into_iter().filter(|text| !text.is_null()).map(|text| CStr::from_ptr(text).count_bytes()).max();
        // pgrx copies each text several times, and cannot ask for memory first.
        if let Some(longest) = longest.filter(|longest| *longest > LONG) {
            match headroom(COPIES * longest) {
                Ok(headroom) => HEADROOM.set(Some(headroom)),
                Err(_) => texts.into_iter().filter(|text| !text.is_null()).for_each(|text| {
                    let length = CStr::from_ptr(text).count_bytes() + 1;
                    cut(std::slice::from_raw_parts_mut(text.cast(), length));
                }),
            }
        }
        error
    }
}

/// Bytes up to which a text is copied without a headroom.
const LONG: usize = 8 * 1024;
/// Copies that are made of an error's three texts: as strings, and perhaps as parts of others.
const COPIES: usize = 12;

/// Cuts a text short, between characters if it is UTF-8. `text` ends with its NUL byte.
fn cut(text: &mut [u8]) {
    let mut length = text.len() - 1;
    if length > LONG {
        length = LONG;
        while length > 0 && text[length] & 0xC0 == 0x80 {
            length -= 1;
        }
        text[length] = 0;
    }
}
