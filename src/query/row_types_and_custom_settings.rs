//! What some answers rest on besides the relations of their plan: row types (as the relations that define them), relations that bodies of
//! functions read, and custom settings that the query reads by name. Found in the query tree, carried inside the plan.
//!
//! Kept as a list of words in server memory, because it crosses calls that an ERROR may jump over: nothing in it may have a
//! destructor. Most queries have none and carry a null pointer.

use std::ffi::CString;

use pgrx::pg_sys;

use crate::pg::lists::integers;

/// Longest name of a setting that is kept; names are words of a configuration file.
pub const LONGEST_NAME: usize = 255;
/// Most settings of one query that are kept. Nobody is known to read more. These few names are copied without asking for memory.
pub const MOST_SETTINGS: usize = 32;
/// Most relations that define row types of one query, which are copied without asking for memory, too.
pub const MOST_ROW_TYPES: usize = 256;

/// Relations that define row types, and names of settings.
#[derive(Clone, Copy, Debug)]
pub struct Extras {
    /// NIL, or: number of relations, their OIDs, then of each name its length in bytes and its bytes, four to a word.
    words: *mut pg_sys::List,
}

impl Extras {
    /// Nothing.
    pub const NONE: Self = Self { words: std::ptr::null_mut() };

    /// Are there none?
    pub fn is_none(&self) -> bool {
        self.words.is_null()
    }

    /// Keeps relations and names, in the current memory context.
    pub fn keep(relations: &[u32], names: &[CString]) -> Self {
        if relations.is_empty() && names.is_empty() {
            return Self::NONE;
        }
        let mut words = vec![relations.len() as u32];
        words.extend(relations);
        for name in names {
            let bytes = name.to_bytes();
            words.push(bytes.len() as u32);
            for part in bytes.chunks(4) {
                let mut word = [0; 4];
                word[..part.len()].copy_from_slice(part);
                words.push(u32::from_le_bytes(word));
            }
        }
        Self::from_words(words)
    }

    /// Keeps words that `words` has returned.
    pub fn from_words(words: impl IntoIterator<Item = u32>) -> Self {
        let mut list = std::ptr::null_mut();
        for word in words {
            // SAFETY: appends to a list of integers, in the current memory context.
            list = unsafe { kept!(pg_sys::lappend_int(list, word.cast_signed())) };
        }
        Self { words: list }
    }

    /// The words to be carried; none if there are no extras.
    ///
    /// # Safety
    /// The memory context in which the extras were kept must still be there.
    pub unsafe fn words(&self) -> impl Iterator<Item = u32> {
        // SAFETY: a list of integers, in a context that is still there.
        unsafe { integers(self.words) }.map(i32::cast_unsigned)
    }

    /// The relations that define row types of the query.
    ///
    /// # Safety
    /// As `words`.
    pub unsafe fn relations(&self) -> Vec<u32> {
        // SAFETY: the context of the words is still there.
        let mut words = unsafe { self.words() };
        let count = words.next().unwrap_or(0);
        words.take(count as usize).collect()
    }

    /// The names of the custom settings that the query reads.
    ///
    /// # Safety
    /// As `words`.
    pub unsafe fn settings(&self) -> Vec<CString> {
        // SAFETY: the context of the words is still there.
        let mut words = unsafe { self.words() };
        let relations = words.next().unwrap_or(0);
        let mut words = words.skip(relations as usize);
        let mut names = Vec::new();
        while let Some(length) = words.next() {
            let length = length as usize;
            let mut bytes: Vec<u8> = words.by_ref().take(length.div_ceil(4)).flat_map(u32::to_le_bytes).collect();
            bytes.truncate(length);
            names.push(CString::new(bytes).unwrap_or_default());
        }
        names
    }
}
