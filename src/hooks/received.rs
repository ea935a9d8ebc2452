//! What the publisher sends to an apply worker of logical replication. The worker commits prepared transactions without a statement, so no hook of
//! statements sees that. Its message does: here the server's function that receives messages is wrapped, in such workers only.
//! State of this process: the functions that the server calls instead of its own. No lock.

use std::cell::Cell;
use std::ffi::{c_char, c_int};

use pgrx::pg_sys;

use crate::invalidation::redefinition;
use crate::pg::backend_local::Local;

/// The first byte of a message that carries a change, and where in it the kind of the change stands: behind two positions in the WAL and a time
/// (*Message Formats* in the server's documentation).
const CARRIES_CHANGE: u8 = b'w';
const KIND: usize = 1 + 3 * size_of::<u64>();
/// COMMIT PREPARED (replication/logicalproto.h).
const COMMIT_PREPARED: u8 = b'K';

/// The functions by which the server talks to a publisher, with ours among them, and the one that ours has replaced.
struct Wrapped {
    functions: Cell<Option<pg_sys::WalReceiverFunctionsType>>,
    receive: Cell<pg_sys::walrcv_receive_fn>,
}

static WRAPPED: Local<Wrapped> = Local::new(Wrapped { functions: Cell::new(None), receive: Cell::new(None) });

/// From now on this worker, which is one of logical replication, is counted as committing a prepared transaction from the message on that tells it to.
/// May raise. A worker that receives nothing itself has no such functions.
pub fn watch() {
    // SAFETY: a global of the server, which a worker sets once before its first transaction; the functions it points to stay.
    let functions = unsafe { pg_sys::WalReceiverFunctions.as_ref() };
    if WRAPPED.receive.get().is_some() {
        return;
    }
    if let Some(functions) = functions.copied()
        && functions.walrcv_receive.is_some()
    {
        // SAFETY: the callback has the type that the server expects, and needs no argument. What lies in a `Local` stays where it is as long as
        // the process, and is not changed any more.
        unsafe {
            kept!(pg_sys::before_shmem_exit(Some(ends), pg_sys::Datum::from(0_usize)));
            WRAPPED.receive.set(functions.walrcv_receive);
            WRAPPED
                .functions
                .set(Some(pg_sys::WalReceiverFunctionsType { walrcv_receive: Some(receive), ..functions }));
            if let Some(ours) = &mut *WRAPPED.functions.as_ptr() {
                pg_sys::WalReceiverFunctions = ours;
            }
        }
        redefinition::note_worker_is_watched();
    }
}

/// `walrcv_receive`: the next message, if there is one.
///
/// # Safety
/// Called by the server.
unsafe extern "C-unwind" fn receive(
    connection: *mut pg_sys::WalReceiverConn,
    message: *mut *mut c_char,
    descriptor: *mut pg_sys::pgsocket,
) -> c_int {
    let Some(before) = WRAPPED.receive.get() else { return -1 };
    // SAFETY: passed on unchanged. If it returns a length above zero, the message has that length.
    unsafe {
        let length = direct!(before(connection, message, descriptor));
        if let Ok(length) = usize::try_from(length)
            && length > KIND
            && (*message).cast::<u8>().read() == CARRIES_CHANGE
            && (*message).add(KIND).cast::<u8>().read() == COMMIT_PREPARED
        {
            redefinition::note_commit_prepared();
        }
        length
    }
}

/// The worker ends, perhaps before it has begun the transaction in which it would have committed.
///
/// # Safety
/// Called by the server.
unsafe extern "C-unwind" fn ends(_code: c_int, _arg: pg_sys::Datum) {
    redefinition::end();
}
