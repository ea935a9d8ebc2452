//! Memory of the server's contexts that is asked for without an ERROR, and without the price of a guard. Keeps nothing.

use std::ffi::{c_int, c_void};

use pgrx::pg_sys;

use super::server;

/// Room for a value in a memory context. `None` when there is no memory.
///
/// # Safety
/// The context must be a live one.
pub unsafe fn room_for<T>(context: pg_sys::MemoryContext) -> Option<*mut T> {
    const FLAGS: c_int = pg_sys::MCXT_ALLOC_NO_OOM as c_int;
    // SAFETY: the caller's promise; with NO_OOM a lack of memory gives null.
    let place = unsafe { direct!(pg_sys::MemoryContextAllocExtended(context, size_of::<T>(), FLAGS)) };
    (!place.is_null()).then_some(place.cast())
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
