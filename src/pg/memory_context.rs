//! Memory of the server's contexts that is asked for without an ERROR, and without the price of a guard. Keeps nothing.

use std::ffi::{c_int, c_void};

use pgrx::pg_sys;

use super::server;

/// Room for a value in a memory context. `None` when there is no memory.
///
/// # Safety
/// The context must be a live one.
pub unsafe fn room_for<T>(context: pg_sys::MemoryContext) -> Option<*mut T> {
    // SAFETY: the caller's promise.
    unsafe { room(context, size_of::<T>()).map(|place| place.cast()) }
}

/// A copy of some bytes in the current memory context. `None` when there is no memory.
///
/// # Safety
/// The copy must not be used longer than that context lives.
pub unsafe fn copy_to_current<'m>(bytes: &[u8]) -> Option<&'m [u8]> {
    // SAFETY: the current context is a live one; as many bytes as are allocated.
    unsafe {
        let copy: *mut u8 = room(pg_sys::CurrentMemoryContext, bytes.len().max(1))?.cast();
        copy.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        Some(std::slice::from_raw_parts(copy, bytes.len()))
    }
}

/// # Safety
/// The context must be a live one.
unsafe fn room(context: pg_sys::MemoryContext, size: usize) -> Option<*mut c_void> {
    const FLAGS: c_int = (pg_sys::MCXT_ALLOC_NO_OOM | pg_sys::MCXT_ALLOC_HUGE) as c_int;
    // SAFETY: the caller's promise; with NO_OOM a lack of memory gives null, and with HUGE no slice is too large.
    let place = unsafe { direct!(pg_sys::MemoryContextAllocExtended(context, size, FLAGS)) };
    (!place.is_null()).then_some(place)
}

/// Moves a value into a memory context, and drops it when the context is reset or deleted.
///
/// # Safety
/// The context must be a live one; the value must not be used longer. Dropping the value must not raise.
pub unsafe fn leak<T>(context: pg_sys::MemoryContext, value: T) -> *mut T {
    #[repr(C)]
    struct Leaked<T> {
        callback: pg_sys::MemoryContextCallback,
        value: T,
    }
    unsafe extern "C-unwind" fn dropped<T>(place: *mut c_void) {
        // SAFETY: registered below with the place of a value, and called once.
        unsafe { place.cast::<T>().drop_in_place() };
    }
    const { assert!(align_of::<Leaked<T>>() <= pg_sys::MAXIMUM_ALIGNOF as usize) };
    // SAFETY: the caller's promise; the server gives as much memory as it is asked for, aligned.
    unsafe {
        let place: *mut Leaked<T> = kept!(pg_sys::MemoryContextAlloc(context, size_of::<Leaked<T>>())).cast();
        let value_place = &raw mut (*place).value;
        let next = std::ptr::null_mut();
        place.write(Leaked {
            callback: pg_sys::MemoryContextCallback { func: Some(dropped::<T>), arg: value_place.cast(), next },
            value,
        });
        server::MemoryContextRegisterResetCallback(context, &raw mut (*place).callback);
        value_place
    }
}
