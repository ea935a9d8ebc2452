//! Sending CopyData messages to the client, so that a cancel is always noticed while waiting.
//!
//! A message goes whole into the server's send buffer, which grows to hold it and keeps that size. From then on the protocol stays in
//! step whatever happens: an error report is queued behind the message. While the client is slow, this waits for its
//! socket and for interrupts at once, as the WAL sender does. The server's own blocking write would wait for the socket
//! alone.

use std::ffi::{c_char, c_int};

use pgrx::pg_sys;

use crate::pg::backend;
use crate::pg::server::{FeBeWaitSet, PqCommMethods};

/// Place of the client's socket in `FeBeWaitSet` (libpq/libpq.h, FeBeWaitSetSocketPos).
const SOCKET: c_int = 0;

/// Calls one of the methods. What it raises unwinds our frames as a panic.
macro_rules! call {
    ($method:ident($($argument:expr),*)) => {{
        // SAFETY: the server has set its methods up before the first statement; the arguments are as the method asks.
        unsafe {
            let method = (*PqCommMethods).$method;
            kept!(method($($argument),*))
        }
    }};
}

/// Sends one CopyData message and waits until the kernel has all of it. Raises on a cancel, or when the client is gone.
pub fn send(bytes: &[u8]) {
    call!(putmessage_noblock(b'd' as c_char, bytes.as_ptr().cast(), bytes.len()));
    loop {
        // A failure here is noted as an interrupt.
        call!(flush_if_writable());
        backend::accept_interrupts();
        if !call!(is_send_pending()) {
            return;
        }
        wait();
    }
}

/// Waits until the client takes more, or an interrupt or a signal has to be handled.
fn wait() {
    // SAFETY: the wait set of the connection is there as long as the connection; there is room for one event.
    unsafe {
        kept!(pg_sys::ModifyWaitEvent(FeBeWaitSet, SOCKET, pg_sys::WL_SOCKET_WRITEABLE, std::ptr::null_mut()));
        let mut event = pg_sys::WaitEvent::default();
        kept!(pg_sys::WaitEventSetWait(
            FeBeWaitSet,
            -1,
            &raw mut event,
            1,
            pg_sys::WaitEventClient::WAIT_EVENT_CLIENT_WRITE
        ));
        if event.events & pg_sys::WL_POSTMASTER_DEATH != 0 {
            kept!(pg_sys::proc_exit(1));
        }
        if event.events & pg_sys::WL_LATCH_SET != 0 {
            kept!(pg_sys::ResetLatch(pg_sys::MyLatch));
        }
        if pg_sys::ProcDiePending != 0 {
            // As the server does in its own writes: a client that does not read cannot keep the process from ending.
            pg_sys::whereToSendOutput = pg_sys::CommandDest::DestNone;
        }
    }
}
