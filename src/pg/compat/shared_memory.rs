//! What lies in shared memory: areas, the counter of transaction ids, the number of this backend.

use std::ffi::c_void;

use pgrx::pg_sys;

/// Creates a DSA area in `place` that can never grow beyond `size` bytes.
///
/// # Safety
/// `place` must point to `size` writable bytes of shared memory that nobody uses; called by the postmaster.
pub unsafe fn create_area(place: *mut c_void, size: usize, tranche: i32) -> *mut pg_sys::dsa_area {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    // SAFETY: the place has this size, and nobody else uses it yet.
    let area = unsafe { kept!(pg_sys::dsa_create_in_place(place, size, tranche, std::ptr::null_mut())) };
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    // SAFETY: the place has this size, and nobody else uses it yet. The two segment sizes are never used: the limit
    // below forbids segments.
    let area = unsafe {
        kept!(pg_sys::dsa_create_in_place_ext(place, size, tranche, std::ptr::null_mut(), 1024 * 1024, 1024 * 1024))
    };
    // SAFETY: the area was created just now.
    unsafe { kept!(pg_sys::dsa_set_size_limit(area, size)) };
    area
}

/// The next transaction id that will be given, as of a moment after the caller last took a snapshot. It is read without
/// a lock; `ReadNextFullTransactionId` takes one for machines that do not read eight bytes at once.
pub fn next_full_transaction_id() -> u64 {
    const { assert!(cfg!(target_pointer_width = "64"), "64-bit words must be read at once") };
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    // SAFETY: points into shared memory for the life of the backend.
    let next = unsafe { &raw const (*pg_sys::ShmemVariableCache).nextXid.value };
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    // SAFETY: points into shared memory for the life of the backend.
    let next = unsafe { &raw const (*pg_sys::TransamVariables).nextXid.value };
    // SAFETY: an aligned word that only grows. Taking the snapshot synchronized with the process that moved its xmax,
    // and that process had read a larger value here.
    unsafe { next.read_volatile() }
}

/// One more than the greatest number that a backend of this server may have. Known when shared memory is requested.
pub fn most_backends() -> u32 {
    // SAFETY: a plain global, set in the postmaster before it asks libraries for their requests.
    let most = unsafe { pg_sys::MaxBackends };
    u32::try_from(most).unwrap_or(0) + 1
}

/// Number of the backend in a place of the server's list of processes, which may have ended; `None` for other
/// processes. See `backend_number`.
pub fn number_of_backend(place: usize, process: &pg_sys::PGPROC) -> Option<u32> {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    let number = {
        let _ = place;
        // SAFETY: an aligned word in shared memory.
        u32::try_from(unsafe { (&raw const process.backendId).read_volatile() }).ok()
    };
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    let number = {
        let _ = process;
        u32::try_from(place).ok()
    };
    number
}

/// Number of this backend among all that run: no other process has it until this one has left shared memory. `None` for
/// a process that has none.
pub fn backend_number() -> Option<u32> {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    // SAFETY: a plain global of the backend, constant after its start.
    let number = unsafe { pg_sys::MyBackendId };
    #[cfg(any(feature = "pg17", feature = "pg18"))]
    // SAFETY: a plain global of the backend, constant after its start.
    let number = unsafe { pg_sys::MyProcNumber };
    u32::try_from(number).ok()
}
