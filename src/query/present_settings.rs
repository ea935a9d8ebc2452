//! The settings that shape or decide what functions return, or what names mean, as one number. Each lookup asks for it,
//! and they hardly ever change. So they are compared with those that were hashed last, which takes less time than to
//! gather and hash them. State of this backend; no lock.

use std::cell::RefCell;
use std::ffi::c_char;

use arrow_cache_core::{HashBuffer, RoomyVec};
use pgrx::pg_sys;

use super::hashes::SettingsHash;
use crate::pg::backend_local::Local;
use crate::pg::encoding;
use crate::pg::server;
use crate::pg::server_settings::{self, text_of};

const NUMBERS: usize = 16;
const TEXTS: usize = 8;

/// The server's variables at one moment.
struct Present {
    numbers: [u32; NUMBERS],
    /// Null or NUL-terminated.
    texts: [*const c_char; TEXTS],
}

/// What was hashed last.
struct Hashed {
    seed: u64,
    numbers: [u32; NUMBERS],
    /// All texts, each with a NUL behind it.
    texts: Vec<u8>,
    /// Where each of them begins.
    starts: [usize; TEXTS],
    hash: SettingsHash,
}

/// It is complete.
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
    let (hash, hashed) = present.hash(seed);
    *last = hashed;
    hash
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
                ],
            }
        }
    }

    /// Are these the settings that were hashed last? A text that is not set counts as an empty one.
    #[inline(always)]
    fn is(&self, hashed: &Hashed) -> bool {
        self.numbers == hashed.numbers
            && self.texts.iter().zip(&hashed.starts).all(|(text, start)| {
                let text = if text.is_null() { c"".as_ptr() } else { *text };
                // SAFETY: string settings end in NUL and belong to the settings machinery, which does not run meanwhile; a text with its NUL was put at
                // this place.
                unsafe { server::strcmp(text, hashed.texts.as_ptr().add(*start).cast()) == 0 }
            })
    }

    /// The number, and what to compare the next settings with. `None` if there is no memory for that: then no other number is the same.
    #[cold]
    #[inline(never)]
    fn hash(&self, seed: u64) -> (SettingsHash, Option<Hashed>) {
        let mut key = HashBuffer::new();
        key.seed(seed);
        key.words(self.numbers);
        let mut texts = Vec::new();
        let mut starts = [0; TEXTS];
        let mut is_kept = true;
        for (text, start) in self.texts.iter().zip(&mut starts) {
            // SAFETY: as in `is`.
            let text = unsafe { text_of(*text) };
            key.part(text);
            *start = texts.len();
            is_kept = is_kept && texts.add_all(text).is_ok() && texts.add(0).is_ok();
        }
        let hash = SettingsHash(key.finish());
        let is_kept = is_kept && key.is_complete();
        (hash, is_kept.then_some(Hashed { seed, numbers: self.numbers, texts, starts, hash }))
    }
}
