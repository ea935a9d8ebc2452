//! Rows that are kept in one of the server's tuplestores.

use pgrx::pg_sys;

use super::server;

/// Directs a tuplestore receiver to `store`, whose tuples live in `context`.
///
/// # Safety
/// `receiver` must have been made for `DestTuplestore`; the others must be live.
pub unsafe fn receive_into_tuplestore(
    receiver: *mut pg_sys::DestReceiver,
    store: *mut pg_sys::Tuplestorestate,
    context: pg_sys::MemoryContext,
) {
    // SAFETY: a receiver for tuplestores, a live store and a live context.
    unsafe {
        kept!(server::SetTuplestoreDestReceiverParams(
            receiver,
            store,
            context,
            false,
            std::ptr::null_mut(),
            std::ptr::null()
        ));
    }
}
