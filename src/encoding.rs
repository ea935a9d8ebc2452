//! Texts of the database, which has an encoding of its own, as Rust's strings and back.

use std::ffi::CStr;

use pgrx::pg_sys;

/// UTF-8, by its number.
const UTF8: i32 = pg_sys::pg_enc::PG_UTF8 as i32;

/// Text of the database as a string. Raises when it has no form in UTF-8.
///
/// # Safety
/// `text` must be valid. Called with a current memory context.
pub unsafe fn to_string(text: &CStr) -> String {
    // SAFETY: as the caller promises; the conversion returns its argument or a palloc'd, NUL-terminated copy.
    unsafe {
        let converted = pg_sys::pg_server_to_any(text.as_ptr(), text.to_bytes().len() as i32, UTF8);
        CStr::from_ptr(converted).to_string_lossy().into_owned()
    }
}

/// A string as text of the database. Raises when that has no such characters.
pub fn to_database(text: &str) -> Vec<u8> {
    // SAFETY: the conversion reads as many bytes as it is told, and returns its argument or a palloc'd, NUL-terminated copy.
    unsafe {
        let converted = pg_sys::pg_any_to_server(text.as_ptr().cast(), text.len() as i32, UTF8);
        if converted.cast_const().cast() == text.as_ptr() {
            return text.as_bytes().to_vec();
        }
        CStr::from_ptr(converted).to_bytes().to_vec()
    }
}
