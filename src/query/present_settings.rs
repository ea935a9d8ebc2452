//! The settings that shape or decide what functions return, or what names mean, as one number. Each lookup asks for it.
//! State of this backend: the settings of the last time, as comparing them takes a quarter of hashing them. No lock.

use std::cell::RefCell;
use std::ffi::{CStr, c_char};

use arrow_cache_core::{Hash128, HashBuffer, RoomyVec};
use pgrx::pg_sys;

use super::hashes::SettingsHash;
use crate::pg::backend_local::Local;
use crate::pg::encoding;
use crate::pg::server;
use crate::pg::server_settings;

const NUMBERS: usize = 16;
const TEXTS: usize = 8;
/// Longest texts that are remembered, in bytes.
const MOST_BYTES: usize = 4096;

/// Settings, and their hash under a seed.
struct Known {
    seed: u64,
    numbers: [u32; NUMBERS],
    /// The texts, each with its NUL, and where each begins.
    texts: Vec<u8>,
    begins: [usize; TEXTS],
    /// `NONE` if nothing is known.
    hash: Hash128,
}

static KNOWN: Local<RefCell<Known>> = Local::new(RefCell::new(Known {
    seed: 0,
    numbers: [0; NUMBERS],
    texts: Vec::new(),
    begins: [0; TEXTS],
    hash: Hash128::NONE,
}));
static BUFFER: Local<RefCell<HashBuffer>> = Local::new(RefCell::new(HashBuffer::new()));

impl Known {
    /// Returns true if these are the settings.
    ///
    /// # Safety
    /// The texts must end in NUL.
    unsafe fn are(&self, seed: u64, numbers: &[u32; NUMBERS], texts: &[*const c_char; TEXTS]) -> bool {
        let is_same = |text: &*const c_char, begin: &usize| {
            // SAFETY: the caller's promise; a text that is remembered begins there, and ends in NUL.
            unsafe { server::strcmp(*text, self.texts.as_ptr().add(*begin).cast()) == 0 }
        };
        self.hash != Hash128::NONE
            && self.seed == seed
            && self.numbers == *numbers
            && texts.iter().zip(&self.begins).all(|(text, begin)| is_same(text, begin))
    }

    /// Remembers the settings, if they are not too long, and there is memory.
    ///
    /// # Safety
    /// As `are`.
    unsafe fn remember(&mut self, seed: u64, numbers: &[u32; NUMBERS], texts: &[*const c_char; TEXTS], hash: Hash128) {
        (self.seed, self.numbers, self.hash) = (seed, *numbers, Hash128::NONE);
        self.texts.clear();
        for (text, begin) in texts.iter().zip(&mut self.begins) {
            // SAFETY: the caller's promise.
            let text = unsafe { CStr::from_ptr(*text) }.to_bytes_with_nul();
            *begin = self.texts.len();
            if self.texts.len() + text.len() > MOST_BYTES || self.texts.add_all(text).is_err() {
                return;
            }
        }
        self.hash = hash;
    }
}

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
        (numbers, texts.map(|text| if text.is_null() { c"".as_ptr() } else { text }))
    };
    let mut known = KNOWN.borrow_mut();
    // SAFETY: string settings end in NUL and belong to the settings machinery, which does not run meanwhile.
    if unsafe { known.are(seed, &numbers, &texts) } {
        return SettingsHash(known.hash);
    }
    let mut key = BUFFER.borrow_mut();
    key.clear();
    key.seed(seed);
    key.words(numbers);
    for text in texts {
        // SAFETY: as above.
        key.part(unsafe { CStr::from_ptr(text) }.to_bytes());
    }
    let hash = key.finish();
    if key.is_complete() {
        // SAFETY: as above.
        unsafe { known.remember(seed, &numbers, &texts, hash) };
    }
    SettingsHash(hash)
}
