//! The part of the key that the text does not show: who asks, where, and under which settings.
//!
//! Every setting that can change a result is hashed, whether this query would look at it or not:
//! sessions with other settings keep their own results. All are read from the server's variables
//! each time, because SET LOCAL, function SET clauses and aborts change them without any hook.

use std::ffi::{CStr, CString, c_char};

use arrow_cache_core::{CacheKey, KeyHasher, Reason};
use pgrx::pg_sys;

use crate::compat;

/// Hashes database, effective user and settings.
fn hash_environment(hasher: &mut KeyHasher) {
    // SAFETY: plain globals of this backend, read on its only thread. String settings are NULL or
    // NUL-terminated and owned by the settings machinery, which does not run meanwhile.
    unsafe {
        hasher.u32(pg_sys::MyDatabaseId.to_u32());
        hasher.u32(pg_sys::GetUserId().to_u32());
        hasher.u32(pg_sys::GetDatabaseEncoding() as u32);
        hasher.u32(pg_sys::DateStyle as u32);
        hasher.u32(pg_sys::DateOrder as u32);
        hasher.u32(pg_sys::IntervalStyle as u32);
        hasher.u32(pg_sys::extra_float_digits as u32);
        hasher.u32(compat::bytea_output as u32);
        hasher.u32(compat::xmlbinary as u32);
        hasher.u32(compat::xmloption as u32);
        hasher.u32(pg_sys::backslash_quote as u32);
        hasher.u32(pg_sys::GinFuzzySearchLimit as u32);
        hasher.u8(u8::from(pg_sys::Array_nulls));
        hasher.u8(u8::from(pg_sys::quote_all_identifiers));
        hasher.u8(u8::from(pg_sys::row_security));
        hasher.u8(u8::from(pg_sys::Transform_null_equals));
        hasher.u8(u8::from(pg_sys::standard_conforming_strings));
        hash_string(hasher, compat::locale_monetary);
        hash_string(hasher, compat::locale_numeric);
        hash_string(hasher, compat::locale_time);
        hash_string(hasher, pg_sys::namespace_search_path);
        hash_string(hasher, pg_sys::TSCurrentConfig);
        hash_string(hasher, pg_sys::pg_get_timezone_name(pg_sys::session_timezone));
        let abbreviations = pg_sys::GetConfigOption(c"timezone_abbreviations".as_ptr(), true, false);
        hash_string(hasher, abbreviations);
    }
}

/// The environment as one number, with the values of the custom `settings` that a query reads by name.
///
/// # Errors
/// `SessionFunction` when such a setting is hidden from some roles.
pub fn fingerprint(mut hasher: KeyHasher, settings: &[CString]) -> Result<CacheKey, Reason> {
    hash_environment(&mut hasher);
    for name in settings {
        hash_custom_setting(&mut hasher, name)?;
    }
    Ok(hasher.finish())
}

/// Hashes a setting as `current_setting` would show it. One that is not set is not the same as an empty one.
fn hash_custom_setting(hasher: &mut KeyHasher, name: &CStr) -> Result<(), Reason> {
    // SAFETY: look-ups that accept an unknown name; what is hidden is asked for first, since showing it may raise.
    unsafe {
        if pg_sys::GetConfigOptionFlags(name.as_ptr(), true) & pg_sys::GUC_SUPERUSER_ONLY as i32 != 0 {
            return Err(Reason::SessionFunction);
        }
        let value = pg_sys::GetConfigOptionByName(name.as_ptr(), std::ptr::null_mut(), true);
        hasher.u8(u8::from(value.is_null()));
        hash_string(hasher, value);
        if !value.is_null() {
            pg_sys::pfree(value.cast());
        }
    }
    Ok(())
}

/// # Safety
/// `text` must be null or NUL-terminated.
unsafe fn hash_string(hasher: &mut KeyHasher, text: *const c_char) {
    if text.is_null() {
        hasher.part(b"");
    } else {
        // SAFETY: as the caller promises.
        hasher.part(unsafe { CStr::from_ptr(text) }.to_bytes());
    }
}
