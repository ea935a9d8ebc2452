//! Rows that are kept in one of the server's tuplestores.

use std::ffi::CStr;

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

/// The environment of a query that reads `store` by a name, in the current memory context.
///
/// # Safety
/// A live tuplestore with these columns, which both live as long as the environment is used.
pub unsafe fn environment_with(
    name: &'static CStr,
    columns: pg_sys::TupleDesc,
    store: *mut pg_sys::Tuplestorestate,
) -> *mut pg_sys::QueryEnvironment {
    let relation = pg_sys::EphemeralNamedRelationData {
        md: pg_sys::EphemeralNamedRelationMetadataData {
            name: name.as_ptr().cast_mut(),
            reliddesc: pg_sys::InvalidOid,
            tupdesc: columns,
            enrtype: pg_sys::EphemeralNameRelationType::ENR_NAMED_TUPLESTORE,
            enrtuples: 0.0,
        },
        reldata: store.cast(),
    };
    // SAFETY: the caller's promise; as many bytes as are written.
    unsafe {
        let environment = kept!(pg_sys::create_queryEnv());
        let place: pg_sys::EphemeralNamedRelation =
            kept!(pg_sys::palloc(size_of::<pg_sys::EphemeralNamedRelationData>())).cast();
        place.write(relation);
        kept!(pg_sys::register_ENR(environment, place));
        environment
    }
}
