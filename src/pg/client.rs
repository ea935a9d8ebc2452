//! The connection to the client below the level of messages: the server's table of communication methods, and blocks of
//! many messages written at once. State of this backend; no locks.

use std::ffi::c_char;
use std::sync::OnceLock;

use pgrx::pg_sys;

use super::error_passing::{direct, edge, with_cleanup};
use super::server::{self, PqCommMethods};
use crate::error;

/// Address of the server's own table, which writes to the client's socket.
static SOCKET_METHODS: OnceLock<usize> = OnceLock::new();

/// Notes the server's own table. Called once, in the postmaster, where nobody can have replaced it.
pub fn remember() {
    // SAFETY: a plain global, set from the start.
    let methods = unsafe { PqCommMethods };
    SOCKET_METHODS.get_or_init(|| methods as usize);
}

/// Do messages go straight to the client's socket?
pub fn is_socket() -> bool {
    // SAFETY: plain globals of the backend.
    unsafe { SOCKET_METHODS.get() == Some(&(PqCommMethods as usize)) && !pg_sys::MyProcPort.is_null() }
}

/// Messages that end in less than this go through the server's own buffer, so that they leave together with what
/// follows.
const SMALL: usize = 8192;
/// Bytes in front of a message's body: type and length, which counts itself.
const HEADER: usize = 5;

/// Sends whole messages behind those that are queued; a few small ones are queued as well. Then accepts interrupts:
/// raises on a cancel, or when the client is gone.
///
/// # Safety
/// As `edge`. There must be `length` bytes of whole messages, and `is_socket`.
pub unsafe fn send(messages: *const u8, length: usize) {
    // SAFETY: as the caller promises; a plain global of the backend.
    unsafe {
        hand_over(messages, length);
        if pg_sys::InterruptPending != 0 {
            direct!(server::ProcessInterrupts());
        }
    }
}

/// As `send`, but raises nothing. What goes wrong makes itself known as an interrupt.
///
/// # Safety
/// As `send`.
pub unsafe fn hand_over(messages: *const u8, length: usize) {
    // SAFETY: as the caller promises.
    unsafe {
        if length < SMALL {
            queue(messages, length);
        } else {
            let flush = (*PqCommMethods).flush;
            if direct!(flush()) == 0 {
                write(messages, length);
            }
        }
    }
}

/// Gives messages to the server, one by one.
///
/// # Safety
/// As `send`.
unsafe fn queue(messages: *const u8, length: usize) {
    // SAFETY: as the caller promises: each message begins with its type and length.
    unsafe {
        let put = (*PqCommMethods).putmessage;
        let mut at = 0;
        while at + HEADER <= length {
            let message = messages.add(at);
            let counted = u32::from_be_bytes(message.add(1).cast::<[u8; 4]>().read()) as usize;
            direct!(put(*message as c_char, message.add(HEADER).cast(), counted + 1 - HEADER));
            at += counted + 1;
        }
    }
}

/// Writes messages to the socket, waiting for it as the server does (pqcomm.c, `internal_flush`).
///
/// # Safety
/// As `send`; nothing is queued.
unsafe fn write(messages: *const u8, length: usize) {
    // SAFETY: as the caller promises. In the middle of a message no other may be sent, not even the farewell of a
    // backend that is told to quit at once; so nobody is to be told anything, until the write has ended in any way.
    unsafe {
        let output = pg_sys::whereToSendOutput;
        pg_sys::whereToSendOutput = pg_sys::CommandDest::DestNone;
        with_cleanup(|| write_all(messages, length), || pg_sys::whereToSendOutput = output);
    }
}

/// # Safety
/// As `write`.
unsafe fn write_all(messages: *const u8, length: usize) {
    let mut done = 0;
    while done < length {
        // SAFETY: as the caller promises; the bytes are read only.
        let written =
            unsafe { direct!(server::secure_write(pg_sys::MyProcPort, messages.add(done).cast(), length - done)) };
        if written > 0 {
            done += written as usize;
            continue;
        }
        // SAFETY: no frame from here to the server's has destructors; flags of the backend, set as the server sets
        // them.
        unsafe {
            if edge(is_lost) {
                pg_sys::ClientConnectionLost = 1;
                pg_sys::InterruptPending = 1;
                return;
            }
        }
    }
}

/// Has a write failed for good? Then it is logged.
fn is_lost() -> bool {
    let error = std::io::Error::last_os_error();
    let lost = error.kind() != std::io::ErrorKind::Interrupted;
    if lost {
        error::log_lost_client(&error);
    }
    lost
}
