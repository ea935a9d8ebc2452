//! COPY's own receiver of rows (copyto.c, `DR_copy`), the same in 15 to 18: it counts them for the tag of the
//! statement. What is kept is the same for the life of the backend.

use std::sync::OnceLock;

use pgrx::pg_sys;

#[repr(C)]
struct CopyReceiver {
    public: pg_sys::DestReceiver,
    state: *mut std::ffi::c_void,
    processed: u64,
}

/// Where COPY counts its rows, if this is the receiver of a COPY.
///
/// # Safety
/// The receiver must be valid. Who uses the pointer must know that it still is.
pub unsafe fn count_of(receiver: *mut pg_sys::DestReceiver) -> Option<*mut u64> {
    static FUNCTION: OnceLock<Option<usize>> = OnceLock::new();
    // SAFETY: the caller vouches for the receiver; one with this function has the layout that was checked.
    unsafe {
        if (*receiver).mydest != pg_sys::CommandDest::DestCopyOut {
            return None;
        }
        let function = (*receiver).receiveSlot.map(|function| function as usize)?;
        (Some(function) == *FUNCTION.get_or_init(own_function))
            .then(|| &raw mut (*receiver.cast::<CopyReceiver>()).processed)
    }
}

/// The function that takes rows in COPY's receiver; `None` if that is not built as expected.
fn own_function() -> Option<usize> {
    // SAFETY: a receiver of its own, destroyed again. The server sets what lies behind its head to zero.
    unsafe {
        let receiver = kept!(pg_sys::CreateCopyDestReceiver());
        let own = receiver.cast::<CopyReceiver>();
        let is_expected = (*own).state.is_null() && (*own).processed == 0;
        let function = (*receiver).receiveSlot.map(|function| function as usize);
        if let Some(destroy) = (*receiver).rDestroy {
            kept!(destroy(receiver));
        }
        function.filter(|_| is_expected)
    }
}
