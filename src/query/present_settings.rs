//! The settings that shape or decide what functions return, or what names mean, as one number. Each lookup asks for it,
//! and they hardly ever change. So they are compared with those that were hashed last, which takes less time than to
//! gather and hash them. State of this backend; no lock.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

use arrow_cache_core::HashBuffer;
use pgrx::pg_sys;

use super::hashes::SettingsHash;
use crate::pg::backend_local::Local;
use crate::pg::encoding;
use crate::pg::server;
use crate::pg::server_settings;

const NUMBERS: usize = 16;
const TEXTS: usize = 8;

/// The server's variables at one moment.
struct Present {
    numbers: [u32; NUMBERS],
    /// NUL-terminated. One that is not set counts as an empty one.
    texts: [*const c_char; TEXTS],
}

/// What was hashed last.
struct Hashed {
    seed: u64,
    numbers: [u32; NUMBERS],
    texts: [CString; TEXTS],
    hash: SettingsHash,
}

static LAST: Local<RefCell<Option<Hashed>>> = Local::new(RefCell::new(None));

/// The present settings as one number.
pub fn settings(seed: u64) -> SettingsHash {
    let present = Present::read();
    let mut last = LAST.borrow_mut();
    if let Some(hashed) = &*last
        && hashed.seed == seed
        && present.is(hashed)
    {
        return hashed.hash;
    }
    last.insert(present.hashed(seed)).hash
}

impl Present {
    #[inline(always)]
    fn read() -> Self {
        // SAFETY: plain globals of this backend, read on its only thread.
        unsafe {
            Self {
                numbers: [
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
                ],
                texts: [
                    pg_sys::namespace_search_path,
                    server::locale_monetary,
                    server::locale_numeric,
                    server::locale_time,
                    pg_sys::TSCurrentConfig,
                    server_settings::timezone_name(),
                    server_settings::timezone_abbreviations(),
                    server_settings::forbidden_relations(),
                ]
                .map(|text| if text.is_null() { c"".as_ptr() } else { text }),
            }
        }
    }

    /// Returns true if these are the settings that were hashed last.
    #[inline(always)]
    fn is(&self, hashed: &Hashed) -> bool {
        self.numbers == hashed.numbers
            && self.texts.iter().zip(&hashed.texts).all(|(text, known)| {
                // SAFETY: string settings end in NUL and belong to the settings machinery, which does not run
                // meanwhile.
                unsafe { server::strcmp(*text, known.as_ptr()) == 0 }
            })
    }

    /// The number, and what to compare the next settings with. The few texts are copied without asking for memory.
    #[cold]
    #[inline(never)]
    fn hashed(&self, seed: u64) -> Hashed {
        // SAFETY: as in `is`.
        let texts = self.texts.map(|text| unsafe { CStr::from_ptr(text) }.to_owned());
        let mut key = HashBuffer::new();
        key.seed(seed);
        key.words(self.numbers);
        texts.iter().for_each(|text| key.part(text.to_bytes()));
        Hashed { seed, numbers: self.numbers, texts, hash: SettingsHash(key.finish()) }
    }
}
