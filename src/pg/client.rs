//! The connection to the client, below the level of single messages: the server's table of communication methods, and
//! blocks of many messages that are written at once. State of this backend; no locks.

use std::ffi::{c_char, c_int};
use std::sync::OnceLock;

use pgrx::pg_sys;

use super::error_passing::{edge, with_cleanup};
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

/// Returns true if messages go straight to the client's socket.
pub fn is_socket() -> bool {
    // SAFETY: plain globals of the backend.
    unsafe { SOCKET_METHODS.get() == Some(&(PqCommMethods as usize)) && !pg_sys::MyProcPort.is_null() }
}

/// Messages of fewer bytes in all go through the server's own buffer, so that they leave together with what follows.
const SMALL: usize = 8192;

/// Sends whole messages, which lie in pieces, behind those that are queued; a few small ones are queued as well. Then
/// accepts interrupts: raises on a cancel, or when the client is gone. Messages must go to the socket (`is_socket`).
///
/// # Safety
/// As `edge`.
pub unsafe fn send(pieces: &[&[u8]]) {
    // SAFETY: a plain global of the backend; the caller's frames may be jumped over.
    unsafe {
        hand_over(pieces);
        if pg_sys::InterruptPending != 0 {
            direct!(pg_sys::ProcessInterrupts());
        }
    }
}

/// Does what `send` does, but accepts no interrupts of its own. The server reports a failure by an interrupt, and in
/// its log: only writing there may raise.
///
/// # Safety
/// As `send`.
pub unsafe fn hand_over(pieces: &[&[u8]]) {
    // SAFETY: the server sets its methods before the first statement; the caller's frames may be jumped over.
    unsafe {
        if pieces.iter().map(|piece| piece.len()).sum::<usize>() < SMALL {
            return pieces.iter().for_each(|piece| queue(piece));
        }
        let flush = (*PqCommMethods).flush;
        if direct!(flush()) == 0 {
            write(pieces);
        }
    }
}

/// Puts messages behind those that the server has queued, all at once, which must go to the socket (`is_socket`): a
/// message of version 2 of the protocol is a byte, and whatever follows it, without a length of its own.
pub fn queue(messages: &[u8]) {
    if let Some((first, rest)) = messages.split_first() {
        // SAFETY: messages go to the server's own buffer (`is_socket`), which this function fills as `putmessage` does.
        // It reports failure as that does, and raises nothing.
        unsafe { direct!(server::pq_putmessage_v2(*first as c_char, rest.as_ptr().cast(), rest.len())) };
    }
}

/// Writes whole messages to the socket, piece by piece, waiting for it as the server does (pqcomm.c, `internal_flush`).
/// Nothing may be queued.
fn write(pieces: &[&[u8]]) {
    // SAFETY: a plain global of the backend. In the middle of a message no other may be sent, not even the farewell of
    // a backend that is told to quit at once. So the server is told that there is no client until the write has ended
    // in any way.
    unsafe {
        let output = pg_sys::whereToSendOutput;
        pg_sys::whereToSendOutput = pg_sys::CommandDest::DestNone;
        with_cleanup(
            || {
                for piece in pieces {
                    if !write_all(piece) {
                        break;
                    }
                }
            },
            || pg_sys::whereToSendOutput = output,
        );
    }
}

/// Writes all bytes; false if the client is lost.
fn write_all(mut messages: &[u8]) -> bool {
    // SAFETY: a plain global of the backend, which does not change.
    let port = unsafe { pg_sys::MyProcPort };
    if port.is_null() {
        return false;
    }
    while !messages.is_empty() {
        // SAFETY: the port of the client; as many bytes are read as there are.
        let written = unsafe { direct!(server::secure_write(port, messages.as_ptr().cast(), messages.len())) };
        if let Some(rest) = usize::try_from(written).ok().filter(|written| *written > 0).map(|at| &messages[at..]) {
            messages = rest;
            continue;
        }
        // SAFETY: no frame from here to the server's has destructors; flags of the backend, set as the server sets
        // them.
        unsafe {
            if edge(is_lost) {
                pg_sys::ClientConnectionLost = 1;
                pg_sys::InterruptPending = 1;
                return false;
            }
        }
    }
    true
}

/// Tells whoever wants to know it which way rows went.
pub fn note_sent(what: &str, rows: u64) {
    if server::message_level_is_interesting(pg_sys::DEBUG2 as c_int) {
        pgrx::debug2!("{rows} rows went {what}");
    }
}

/// Returns true if a write has failed for good. Then it is logged.
fn is_lost() -> bool {
    let error = std::io::Error::last_os_error();
    let lost = error.kind() != std::io::ErrorKind::Interrupted;
    if lost {
        error::log_lost_client(&error);
    }
    lost
}
