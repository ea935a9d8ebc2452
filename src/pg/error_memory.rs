//! Errors when memory is short. pgrx takes an error of the server apart and puts it together again with memory of the context
//! that is current, which may be the very one that has none. It is no use then that the server keeps a little memory for errors: an error
//! within an error follows another, until the server gives up and restarts.
//!
//! So pgrx gets that memory from a context of its own, which has it from the start. The linker leads its calls of two of the
//! server's functions to those here (`build.rs`). State of this backend; no locks.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};

use pgrx::pg_sys;

use super::allocator::{Headroom, headroom};
use super::backend_local::Local;
use super::error_passing::direct;
use super::server;

/// Bytes that the context has from the start, and keeps.
const KEPT: usize = 32 * 1024;

/// Memory for the copies of an error's long texts, until the transaction ends or there is another error: nobody tells when it is over.
static HEADROOM: Local<Cell<Option<Headroom>>> = Local::new(Cell::new(None));

static CONTEXT: Local<Cell<pg_sys::MemoryContext>> = Local::new(Cell::new(std::ptr::null_mut()));

/// Makes the context, in the postmaster: its children inherit it.
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
    let context = CONTEXT.get();
    if !context.is_null() {
        // SAFETY: as the caller promises; the context lives as long as the process.
        unsafe {
            direct!(server::MemoryContextReset(context));
            pg_sys::CurrentMemoryContext = context;
        }
    }
}

/// Gives back what a large error has taken, at the end of a transaction: by then the server has a copy of its own. Asks for no memory and
/// raises nothing.
///
/// # Safety
/// No error may be on its way through a function of ours.
pub unsafe fn recover() {
    HEADROOM.take();
    let context = CONTEXT.get();
    // SAFETY: as the caller promises; the context lives as long as the process, and a reset frees blocks.
    unsafe {
        if !context.is_null() && (*context).mem_allocated > KEPT {
            direct!(server::MemoryContextReset(context));
        }
    }
}

/// Begins a report. An error's texts are made in our context; whoever catches it switches to one of his own.
///
/// # Safety
/// As the server's own function.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __wrap_errstart(level: c_int, domain: *const c_char) -> bool {
    // SAFETY: as the caller promises. What was copied of an error before has been taken over by pgrx, and freed.
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
    // SAFETY: as the caller promises. What was made for the error that was caught is not used any more: it has been reported to us.
    unsafe {
        let caller = pg_sys::CurrentMemoryContext;
        HEADROOM.take();
        enter();
        let error = direct!(server::__real_CopyErrorData());
        pg_sys::CurrentMemoryContext = caller;
        let texts = [(*error).message, (*error).detail, (*error).hint];
        let longest =
            texts.into_iter().filter(|text| !text.is_null()).map(|text| CStr::from_ptr(text).count_bytes()).max();
        // pgrx copies each several times, and cannot ask.
        if let Some(longest) = longest.filter(|longest| *longest > LONG) {
            match headroom(COPIES * longest) {
                Ok(headroom) => HEADROOM.set(Some(headroom)),
                Err(_) => texts.into_iter().filter(|text| !text.is_null()).for_each(|text| cut(text)),
            }
        }
        error
    }
}

/// Texts that are copied without further ado, in bytes.
const LONG: usize = 8 * 1024;
/// Copies that are made of an error's three texts: as strings, and perhaps as parts of others.
const COPIES: usize = 12;

/// Cuts a text short, between characters if it is UTF-8.
///
/// # Safety
/// `text` must be a C string that may be changed.
unsafe fn cut(text: *mut c_char) {
    // SAFETY: as the caller promises; the bytes up to the end are looked at and changed only.
    unsafe {
        let mut length = CStr::from_ptr(text).count_bytes();
        if length > LONG {
            length = LONG;
            while length > 0 && *text.add(length).cast::<u8>() & 0xC0 == 0x80 {
                length -= 1;
            }
            *text.add(length) = 0;
        }
    }
}
