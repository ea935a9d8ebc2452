//! The answer that opens a COPY. The server is told to copy as text, since its binary format puts a header before the
//! data. It would therefore announce text, which clients may decode. This makes it announce bytes.
//!
//! For this one message, the server's table of communication methods is replaced by a copy with one function of ours.
//! The first message of any kind, an error too, puts the server's own table back. Only the process that copies sees it.

use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_char, c_int};

use pgrx::pg_sys;

use crate::pg::backend_local::Local;
use crate::pg::server::{CommMethods, PqCommMethods};

/// CopyOutResponse (the protocol's message formats).
const COPY_OUT_RESPONSE: c_char = b'H' as c_char;

/// The server's own table, while ours is in its place; else null.
static REPLACED: Local<Cell<*const CommMethods>> = Local::new(Cell::new(std::ptr::null()));
/// Ours.
static OURS: Local<UnsafeCell<Option<CommMethods>>> = Local::new(UnsafeCell::new(None));
/// Columns to announce.
static COLUMNS: Local<Cell<u16>> = Local::new(Cell::new(0));

/// Makes the next message, if it opens a COPY, announce that many columns of bytes.
pub fn announce_bytes(columns: u16) {
    restore();
    COLUMNS.set(columns);
    OURS.with(|ours| {
        // SAFETY: the server's table is there and constant. Ours is written here only, while it is not in use, and
        // stays in its place as long as the process, which has one thread.
        unsafe {
            let real = PqCommMethods;
            let ours = (*ours.get()).insert(*real);
            ours.putmessage = put_first;
            REPLACED.set(real);
            PqCommMethods = ours;
        }
    });
}

/// Puts the server's own table back, if it is not there.
pub fn restore() {
    let real = REPLACED.replace(std::ptr::null());
    if !real.is_null() {
        // SAFETY: the server's own constant table.
        unsafe { PqCommMethods = real };
    }
}

unsafe extern "C-unwind" fn put_first(kind: c_char, body: *const c_char, length: usize) -> c_int {
    let columns = COLUMNS.get();
    restore();
    // SAFETY: called as the server calls its own function, which has been put back. An announcement is a byte for the
    // whole and two for each column; no destructor is pending when the server raises.
    unsafe {
        let put = (*PqCommMethods).putmessage;
        if kind != COPY_OUT_RESPONSE {
            return direct!(put(kind, body, length));
        }
        let [high, low] = columns.to_be_bytes();
        let mut announcement = [0; 3 + 2 * MOST_COLUMNS];
        announcement[..3].copy_from_slice(&[1, high, low]);
        let columns = usize::from(columns).min(MOST_COLUMNS);
        for column in announcement[3..].chunks_exact_mut(2) {
            column[1] = 1;
        }
        direct!(put(kind, announcement.as_ptr().cast(), 3 + 2 * columns))
    }
}

/// Columns that a result can have.
const MOST_COLUMNS: usize = pg_sys::MaxTupleAttributeNumber as usize;
