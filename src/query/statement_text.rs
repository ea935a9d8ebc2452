//! The text of a statement: its own slice of what the client sent, normalized.

use std::ffi::{CStr, c_char};

use arrow_cache_core::{OutOfMemory, RoomyVec, normalize, statement_body};
use pgrx::pg_sys;

/// Where the text of a statement is.
#[derive(Clone, Copy)]
pub struct Text {
    /// What the client sent, NUL-terminated.
    pub source: *const c_char,
    /// Where the statement begins in it, in bytes; -1 or 0 also stand for "unknown".
    pub location: i32,
    /// Its length in bytes; 0 stands for "to the end".
    pub length: i32,
}

/// The text of a statement as the client sent it.
///
/// # Safety
/// The source must be NUL-terminated, and stay while the result is used.
pub unsafe fn raw(text: &Text) -> &[u8] {
    // SAFETY: as the caller promises.
    let whole = unsafe { CStr::from_ptr(text.source) }.to_bytes();
    let start = usize::try_from(text.location).unwrap_or(0).min(whole.len());
    let rest = &whole[start..];
    match usize::try_from(text.length) {
        Ok(length) if length > 0 => &rest[..length.min(rest.len())],
        _ => rest,
    }
}

/// Writes the normalized text of a statement into `out`, which is cleared first.
///
/// EXPLAIN, DECLARE CURSOR, PREPARE and COPY are cut off, so that they share the entry of the query
/// inside.
///
/// # Errors
/// There is no memory for it.
///
/// # Safety
/// The source must be NUL-terminated.
pub unsafe fn normalized(text: Text, out: &mut Vec<u8>) -> Result<(), OutOfMemory> {
    // SAFETY: as the caller promises; the setting is a plain global of the backend.
    unsafe {
        let text = raw(&text);
        out.clear();
        out.make_exact_room(text.len())?;
        normalize(text, pg_sys::standard_conforming_strings, out);
    }
    let body = statement_body(out);
    let (length, prefix) = (body.len(), body.as_ptr() as usize - out.as_ptr() as usize);
    out.truncate(prefix + length);
    if prefix > 0 {
        out.drain(..prefix);
    }
    Ok(())
}
