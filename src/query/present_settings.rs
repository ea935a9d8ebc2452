//! The settings that shape or decide what functions return, or what names mean, as one number. Each lookup asks for it.
//! State of this backend, which keeps memory alone; no lock.

use std::cell::RefCell;
use std::ffi::CStr;

use arrow_cache_core::HashBuffer;
use pgrx::pg_sys;

use super::hashes::SettingsHash;
use crate::pg::backend_local::Local;
use crate::pg::encoding;
use crate::pg::server;
use crate::pg::server_settings;

static BUFFER: Local<RefCell<HashBuffer>> = Local::new(RefCell::new(HashBuffer::new()));

/// The present settings as one number.
pub fn settings(seed: u64) -> SettingsHash {
    // SAFETY: plain globals of this backend, read on its only thread.
    let (numbers, texts) = unsafe {
        let numbers = [
            pg_sys::DateStyle as u32,
            pg_sys::DateOrder as u32,
            pg_sys::IntervalStyle as u32,
            pg_sys::extra_float_digits as u32,
            server::bytea_output as u32,
            server::xmlbinary as u32,
            server::xmloption as u32,
            pg_sys::backslash_quote as u32,
            pg_sys::GinFuzzySearchLimit as u32,
            u32::from(pg_sys::Array_nulls),
            u32::from(pg_sys::quote_all_identifiers),
            u32::from(pg_sys::row_security),
            u32::from(pg_sys::Transform_null_equals),
            u32::from(pg_sys::standard_conforming_strings),
            server_settings::changed_row_types() as u32,
            encoding::of_client() as u32,
        ];
        let texts = [
            pg_sys::namespace_search_path,
            server::locale_monetary,
            server::locale_numeric,
            server::locale_time,
            pg_sys::TSCurrentConfig,
            server_settings::timezone_name(),
            server_settings::timezone_abbreviations(),
            server_settings::forbidden_relations(),
        ];
        (numbers, texts)
    };
    let mut key = BUFFER.borrow_mut();
    key.clear();
    key.seed(seed);
    key.words(numbers);
    for text in texts {
        let text = if text.is_null() { c"".as_ptr() } else { text };
        // SAFETY: string settings end in NUL and belong to the settings machinery, which does not run meanwhile.
        key.part(unsafe { CStr::from_ptr(text) }.to_bytes());
    }
    SettingsHash(key.finish())
}
