//! jsonb as text and back, by the server's own functions. Nothing is kept.

use std::ffi::{CStr, c_char};

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use super::error_passing::{keeping, unless};
use super::row::Value;
use crate::error::is_about_memory;

/// The text of a value, made in the current memory context.
///
/// # Errors
/// `TooLarge` for one of more than `limit` bytes, `OutOfMemory`.
///
/// # Safety
/// The value must be a jsonb.
pub unsafe fn text(value: Value<'_>, limit: usize) -> Result<&[u8], Reason> {
    // SAFETY: the caller vouches for the value. The function holds nothing but memory of the current context; its text
    // ends with a NUL.
    let text = unsafe {
        let datum = value.datum();
        let function = pg_sys::Oid::from(pg_sys::F_JSONB_OUT);
        let text = unless(is_about_memory, || keeping(|| direct!(pg_sys::OidOutputFunctionCall(function, datum))))
            .ok_or(Reason::OutOfMemory)?;
        CStr::from_ptr(text).to_bytes()
    };
    if text.len() > limit { Err(Reason::TooLarge) } else { Ok(text) }
}

/// The value with a text that `text` has made, in the current memory context. Raises if there is no memory for it.
pub fn of_text(text: &CStr) -> pg_sys::Datum {
    let (function, text) = (pg_sys::Oid::from(pg_sys::F_JSONB_IN), text.as_ptr().cast_mut().cast::<c_char>());
    // SAFETY: the function reads a text that ends with a NUL, and knows no modifiers.
    unsafe { kept!(pg_sys::OidInputFunctionCall(function, text, pg_sys::InvalidOid, -1)) }
}
