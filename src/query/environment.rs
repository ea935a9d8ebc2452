//! The part of the key that the text does not show: who asks, where, and under which settings.
//!
//! Every setting that can change a result is hashed, whether this query would look at it or not:
//! sessions with other settings keep their own results. All are read from the server's variables
//! each time, because SET LOCAL, function SET clauses and aborts change them without any hook.

use std::ffi::{CStr, c_char};

use arrow_cache_core::{CacheKey, KeyHasher};
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

/// The environment as one number, to see whether it has changed.
pub fn fingerprint(mut hasher: KeyHasher) -> CacheKey {
    hash_environment(&mut hasher);
    hasher.finish()
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
