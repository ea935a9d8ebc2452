//! The callbacks of memory contexts when a process ends. The server resets contexts at the end of a transaction, but not those that outlive it: what
//! a function was computed in while a statement was planned, or what a type's function has kept. A process that is told to quit there leaves them
//! as they are, and what they hold of shared memory with them. So our callbacks are called before that. Keeps nothing.

use std::ffi::{c_char, c_int, c_void};

use pgrx::pg_sys;

/// What `dladdr` tells (dlfcn.h, `Dl_info`).
#[repr(C)]
struct LoadedObject {
    file: *const c_char,
    base: *mut c_void,
    symbol: *const c_char,
    address: *mut c_void,
}

unsafe extern "C" {
    /// dlfcn.h; reads the tables of the dynamic linker.
    fn dladdr(address: *const c_void, found: *mut LoadedObject) -> c_int;
}

/// Where the library that has this function begins; null for none.
fn library_of(function: *const c_void) -> *mut c_void {
    let mut found = LoadedObject {
        file: std::ptr::null(),
        base: std::ptr::null_mut(),
        symbol: std::ptr::null(),
        address: std::ptr::null_mut(),
    };
    // SAFETY: any address may be asked for.
    if unsafe { dladdr(function, &raw mut found) } == 0 { std::ptr::null_mut() } else { found.base }
}

/// Calls all callbacks of this library that a memory context still has, and takes them away.
///
/// # Safety
/// The process must be about to end, outside of a transaction: nothing that a context holds is used any more. A callback must not raise.
pub unsafe fn call_ours() {
    let own = library_of(call_ours as *const c_void);
    if own.is_null() {
        return;
    }
    // A callback may do anything to contexts, so the next one is sought from the top.
    // SAFETY: the server's tree of contexts is valid between calls; a callback is called with its own argument.
    unsafe {
        while let Some(link) = next_of(own) {
            let callback = *link;
            *link = (*callback).next;
            if let Some(function) = (*callback).func {
                direct!(function((*callback).arg));
            }
        }
    }
}

/// The link to the first callback of a library that some memory context has.
///
/// # Safety
/// Nobody else may change memory contexts meanwhile.
unsafe fn next_of(library: *mut c_void) -> Option<*mut *mut pg_sys::MemoryContextCallback> {
    // SAFETY: all contexts lie below this one, and each is linked to its parent, its first child and its next sibling.
    unsafe {
        let mut context = pg_sys::TopMemoryContext;
        while !context.is_null() {
            let mut link = &raw mut (*context).reset_cbs;
            while !(*link).is_null() {
                let is_ours = |function: unsafe extern "C-unwind" fn(*mut c_void)| {
                    library_of(function as *const c_void) == library
                };
                if (**link).func.is_some_and(is_ours) {
                    return Some(link);
                }
                link = &raw mut (**link).next;
            }
            if !(*context).firstchild.is_null() {
                context = (*context).firstchild;
                continue;
            }
            while !context.is_null() && (*context).nextchild.is_null() {
                context = (*context).parent;
            }
            if !context.is_null() {
                context = (*context).nextchild;
            }
        }
        None
    }
}
