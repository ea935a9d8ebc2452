//! Acting last before a commit. What a transaction has changed must be published after its last write, and other
//! libraries may write in their own PRE_COMMIT callbacks.
//!
//! The server calls these callbacks in the reverse order of their registration, so a library that is preloaded before
//! ours acts after ours. Registering puts a callback at the head of the list only. Therefore this file, when all
//! libraries are preloaded, finds the list by the item that it has registered itself, checks that the item has the
//! expected form, and appends an item at the end of the list. The item at the head is taken off then. If the list ever
//! looks different, it does the work; then our library has to be preloaded first to be exact beside others that write
//! while committing. All this happens in the postmaster, before any other process exists; no lock.

use std::ffi::c_void;

use pgrx::pg_sys;

/// Signature of a transaction callback.
type Callback = unsafe extern "C-unwind" fn(event: pg_sys::XactEvent::Type, arg: *mut c_void);

/// The server's list of callbacks (XactCallbackItem in access/transam/xact.c, the same in 15 to 18).
#[repr(C)]
struct Item {
    next: *mut Item,
    callback: Option<Callback>,
    arg: *mut c_void,
}

/// Its address marks our item at the head of the list.
static MARK: u8 = 0;

/// The argument of the callback at the head of the list.
fn mark() -> *mut c_void {
    (&raw const MARK).cast_mut().cast()
}

/// Registers `callback` at the end of the list, or else at its head: returns false then. Called once, when all
/// libraries have been preloaded.
///
/// # Safety
/// Only in the postmaster, while it starts.
pub unsafe fn register(callback: Callback) -> bool {
    // SAFETY: RegisterXactCallback allocates an item of this size in this context. The allocator hands out again what
    // was freed last, so `place` should be that item; memory of the context can be read in any case. The item is used
    // only if it holds what was registered, and then it heads the server's own list.
    unsafe {
        let size = std::mem::size_of::<Item>();
        let place: *mut Item = kept!(pg_sys::MemoryContextAllocZero(pg_sys::TopMemoryContext, size)).cast();
        kept!(pg_sys::pfree(place.cast()));
        kept!(pg_sys::RegisterXactCallback(Some(callback), mark()));
        let first = &*place;
        let ours = first.arg == mark() && first.callback.is_some_and(|known| std::ptr::fn_addr_eq(known, callback));
        if !ours {
            return false;
        }
        let mut last = place;
        while !(*last).next.is_null() {
            last = (*last).next;
        }
        let item: *mut Item = kept!(pg_sys::MemoryContextAlloc(pg_sys::TopMemoryContext, size)).cast();
        item.write(Item { next: std::ptr::null_mut(), callback: Some(callback), arg: std::ptr::null_mut() });
        (*last).next = item;
        kept!(pg_sys::UnregisterXactCallback(Some(callback), mark()));
        true
    }
}
