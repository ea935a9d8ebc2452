//! The text of a statement: its own slice of what the client sent, normalized.

use std::ffi::{CStr, c_char};

use arrow_cache_core::{normalize, statement_body};
use pgrx::pg_sys;

/// Writes the normalized text of a statement into `out`, which is cleared first.
///
/// `location` and `length` are those of the plan: -1 or 0 stand for "unknown" and "to the end".
/// EXPLAIN, DECLARE CURSOR and PREPARE are cut off, so that they share the entry of the query
/// inside.
///
/// # Safety
/// `source` must be NUL-terminated.
pub unsafe fn normalized(source: *const c_char, location: i32, length: i32, out: &mut Vec<u8>) {
    // SAFETY: as the caller promises.
    let whole = unsafe { CStr::from_ptr(source) }.to_bytes();
    let start = usize::try_from(location).unwrap_or(0).min(whole.len());
    let rest = &whole[start..];
    let slice = match usize::try_from(length) {
        Ok(length) if length > 0 => &rest[..length.min(rest.len())],
        _ => rest,
    };
    // SAFETY: a plain global of the backend.
    normalize(slice, unsafe { pg_sys::standard_conforming_strings }, out);
    let prefix = out.len() - statement_body(out).len();
    if prefix > 0 {
        out.drain(..prefix);
    }
}
