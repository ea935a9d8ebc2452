//! The server's memory contexts: new ones, and memory of theirs that is asked for without an ERROR, and without the
//! price of a guard. Keeps nothing.

use std::ffi::{CStr, c_int, c_void};

use arrow_cache_core::OutOfMemory;
use pgrx::pg_sys;

use super::server;
use crate::error::or_raise;

/// A new memory context, which goes with its parent.
///
/// # Safety
/// `parent` must be a live context.
pub unsafe fn context_below(parent: pg_sys::MemoryContext, name: &'static CStr) -> pg_sys::MemoryContext {
    // SAFETY: the caller's promise.
    unsafe {
        kept!(pg_sys::AllocSetContextCreateInternal(
            parent,
            name.as_ptr(),
            pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        ))
    }
}

/// Room for a value in a memory context. `None` when there is no memory.
///
/// # Safety
/// The context must be a live one.
pub unsafe fn room_for<T>(context: pg_sys::MemoryContext) -> Option<*mut T> {
    // SAFETY: the caller's promise.
    unsafe { room_of(context, size_of::<T>()) }.map(|place| place.cast())
}

/// Room for so many bytes, less than a gigabyte, in a memory context. `None` when there is no memory.
///
/// # Safety
/// The context must be a live one.
pub unsafe fn room_of(context: pg_sys::MemoryContext, bytes: usize) -> Option<*mut c_void> {
    const FLAGS: c_int = pg_sys::MCXT_ALLOC_NO_OOM as c_int;
    // SAFETY: the caller's promise; with NO_OOM a lack of memory gives null.
    let place = unsafe { direct!(pg_sys::MemoryContextAllocExtended(context, bytes, FLAGS)) };
    (!place.is_null()).then_some(place)
}

/// Moves a value into a memory context, as a chunk of its own, and drops it when the context is reset or deleted.
/// Raises if there is no memory for it.
///
/// # Safety
/// The context must be a live one; the value must not be used longer. Dropping the value must not raise.
pub unsafe fn leak<T>(context: pg_sys::MemoryContext, value: T) -> *mut T {
    // SAFETY: the caller's promise.
    or_raise(unsafe { try_leak(context, value) }.map_err(|_| OutOfMemory))
}

/// As `leak`, but raises nothing.
///
/// # Errors
/// The value, if there is no memory for it.
///
/// # Safety
/// As `leak`.
pub unsafe fn try_leak<T>(context: pg_sys::MemoryContext, value: T) -> Result<*mut T, T> {
    #[repr(C)]
    struct Leaked<T> {
        value: T,
        callback: pg_sys::MemoryContextCallback,
    }
    unsafe extern "C-unwind" fn dropped<T>(place: *mut c_void) {
        // SAFETY: registered below with the place of a value, and called once.
        unsafe { place.cast::<T>().drop_in_place() };
    }
    const { assert!(align_of::<Leaked<T>>() <= pg_sys::MAXIMUM_ALIGNOF as usize) };
    // SAFETY: the caller's promise; the server gives as much memory as it is asked for, aligned.
    unsafe {
        let Some(place) = room_for::<Leaked<T>>(context) else { return Err(value) };
        let value_place = &raw mut (*place).value;
        let next = std::ptr::null_mut();
        let callback = pg_sys::MemoryContextCallback { func: Some(dropped::<T>), arg: value_place.cast(), next };
        place.write(Leaked { value, callback });
        server::MemoryContextRegisterResetCallback(context, &raw mut (*place).callback);
        Ok(value_place)
    }
}
