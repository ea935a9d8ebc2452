//! Texts of the database, which has an encoding of its own, as Rust's strings and back.

use std::ffi::CStr;

use arrow_cache_core::RoomyVec;
use pgrx::pg_sys;

use super::server;
use crate::error::or_raise;

/// The server's number of UTF-8.
const UTF8: i32 = pg_sys::pg_enc::PG_UTF8 as i32;

/// The number of the encoding of the session's client.
pub fn of_client() -> i32 {
    server::pg_get_client_encoding()
}

/// Text of the database as a string. Raises when it cannot be written in UTF-8, or there is no memory for it.
pub fn to_string(text: &CStr) -> String {
    // SAFETY: the conversion reads as many bytes as it is told, and returns its argument or a palloc'd, NUL-terminated
    // copy.
    unsafe {
        let converted = kept!(pg_sys::pg_server_to_any(text.as_ptr(), text.to_bytes().len() as i32, UTF8));
        let bytes = or_raise(Vec::copy_of(CStr::from_ptr(converted).to_bytes()));
        // What the server calls UTF-8 is valid UTF-8.
        String::from_utf8(bytes).unwrap_or_default()
    }
}

/// A string as text of the database. Raises when the database's encoding lacks one of its characters, or there is no
/// memory for it.
pub fn to_database(text: &str) -> Vec<u8> {
    // SAFETY: the conversion reads as many bytes as it is told, and returns its argument or a palloc'd, NUL-terminated
    // copy.
    unsafe {
        let converted = kept!(pg_sys::pg_any_to_server(text.as_ptr().cast(), text.len() as i32, UTF8));
        if converted.cast_const().cast() == text.as_ptr() {
            return or_raise(Vec::copy_of(text.as_bytes()));
        }
        or_raise(Vec::copy_of(CStr::from_ptr(converted).to_bytes()))
    }
}
