//! A statement like `SELECT arrow_cache.query(…)` in binary: its one value goes to the client piece by piece, from where the pieces lie. The
//! server's own way would copy the whole stream three times.
//!
//! While such a statement runs, a receiver of ours stands before the server's own. It sends a value that is a `StreamValue`, and hands every
//! other row on. It lies on the frame of the run, and is plain data: an error may jump over it.

use pgrx::pg_sys::{self, NodeTag};

use super::stream_value::StreamValue;
use crate::pg::client;
use crate::pg::error_passing::{edge, with_cleanup};
use crate::pg::log_line;
use crate::pg::query_desc::QueryDesc;
use crate::pg::tree::{child, children};
use crate::serve::ClientFormats;

/// A receiver as the server knows it, with the one that was there before.
#[repr(C)]
struct ValueReceiver {
    receiver: pg_sys::DestReceiver,
    inner: *mut pg_sys::DestReceiver,
}

/// Does the plan do nothing but call one function that is not built in, and returns bytea? Asked of each run.
pub fn may_return_stream(query: QueryDesc<'_>) -> bool {
    let plan = query.plan();
    let Some(top) = child!(plan.planTree).filter(|top| top.type_ == NodeTag::T_Result) else { return false };
    if !top.lefttree.is_null() {
        return false;
    }
    let mut columns = children!(top.targetlist as TargetEntry);
    if columns.len() != 1 {
        return false;
    }
    let call = columns.next().and_then(|column| child!(column.expr));
    call.and_then(|call| call.as_node().as_a::<pg_sys::FuncExpr>()).is_some_and(|call| {
        call.funcresulttype == pg_sys::BYTEAOID
            && !call.funcretset
            && call.funcid.to_u32() >= pg_sys::FirstNormalObjectId
    })
}

/// Runs a query that `may_return_stream`, with our receiver in place if its rows go to the client in binary.
///
/// # Safety
/// `query` must be that of an ExecutorRun hook, which `run` runs; what that raises may jump over its frames. No frame between here and
/// PostgreSQL may have pending destructors.
#[inline(never)]
pub unsafe fn run_with_receiver(query: QueryDesc<'_>, run: impl FnOnce() + Copy) {
    let inner = query.receiver();
    // SAFETY: the receiver of a query that runs is valid, and its rows have one column. Ours is taken away before this frame ends, however
    // that happens; the caller promises the rest.
    unsafe {
        if !edge(|| client::is_socket() && ClientFormats::of(inner, 1).is_some_and(|formats| formats.is_binary(0))) {
            return run();
        }
        let mut receiver = ValueReceiver {
            receiver: pg_sys::DestReceiver {
                receiveSlot: Some(receive),
                rStartup: Some(startup),
                rShutdown: Some(shutdown),
                rDestroy: None,
                mydest: (*inner).mydest,
            },
            inner,
        };
        query.set_receiver((&raw mut receiver).cast());
        with_cleanup(run, || query.set_receiver(inner));
    }
}

unsafe extern "C-unwind" fn startup(
    receiver: *mut pg_sys::DestReceiver,
    operation: i32,
    descriptor: pg_sys::TupleDesc,
) {
    // SAFETY: `receiver` is the head of a ValueReceiver; the inner one is called as the executor would.
    unsafe {
        let inner = (*receiver.cast::<ValueReceiver>()).inner;
        if let Some(startup) = (*inner).rStartup {
            direct!(startup(inner, operation, descriptor));
        }
    }
}

unsafe extern "C-unwind" fn shutdown(receiver: *mut pg_sys::DestReceiver) {
    // SAFETY: as in `startup`.
    unsafe {
        let inner = (*receiver.cast::<ValueReceiver>()).inner;
        if let Some(shutdown) = (*inner).rShutdown {
            direct!(shutdown(inner));
        }
    }
}

unsafe extern "C-unwind" fn receive(slot: *mut pg_sys::TupleTableSlot, receiver: *mut pg_sys::DestReceiver) -> bool {
    // SAFETY: as in `startup`; the slot holds a row of one column, a bytea, until the executor asks for the next one.
    unsafe {
        if (*slot).tts_nvalid < 1 {
            direct!(pg_sys::slot_getsomeattrs_int(slot, 1));
        }
        let value = if *(*slot).tts_isnull { None } else { StreamValue::of(*(*slot).tts_values) };
        if let Some(value) = value.filter(|value| value.length() >= LARGE) {
            let head = head_of_row(value.length());
            let head = head.as_slice();
            client::send_pieces(|| std::iter::once(head).chain(value.pieces()));
            edge(|| log_line::debug(|| "a value went to the client in pieces".into()));
            return true;
        }
        let inner = (*receiver.cast::<ValueReceiver>()).inner;
        match (*inner).receiveSlot {
            Some(receive) => direct!(receive(slot, inner)),
            None => true,
        }
    }
}

/// Values of fewer bytes go the server's way, which sends them together with what follows.
const LARGE: usize = 16 * 1024;

/// What stands before the only value of a row with `length` bytes: a DataRow message up to there (protocol, message formats).
fn head_of_row(length: usize) -> [u8; 11] {
    // A value has at most 1 GB.
    let (message, value) = ((4 + 2 + 4 + length) as u32, length as u32);
    let mut head = [b'D', 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
    head[1..5].copy_from_slice(&message.to_be_bytes());
    head[7..].copy_from_slice(&value.to_be_bytes());
    head
}
