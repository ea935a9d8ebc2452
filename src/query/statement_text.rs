//! The text of a statement, its own part of what the client sent, and the hint in a comment before it.

use std::ffi::{CStr, c_char};

use arrow_cache_core::{Hint, Reason, hint};
use pgrx::pg_sys;

use super::statement_terms::StatementTerms;

/// Where the text of a statement is.
#[derive(Clone, Copy)]
pub struct Text {
    source: *const c_char,
    location: i32,
    length: i32,
}

impl Text {
    /// The text that begins at `location` of what the client sent, in bytes, where -1 and 0 also stand for "unknown";
    /// `length` is in bytes too, and 0 stands for "to the end".
    ///
    /// # Safety
    /// The source must be NUL-terminated, and stay as it is for as long as a copy of the result is used.
    pub const unsafe fn of(source: *const c_char, location: i32, length: i32) -> Self {
        Self { source, location, length }
    }
}

/// Returns true if all that the client sent begins with the word SELECT, and the statement with it. Then no comment
/// stands before the statement. Reads no further than these letters.
#[inline(always)]
pub fn begins_with_select(text: &Text) -> bool {
    // SAFETY: `Text::of` was promised a source that ends with NUL, which is none of the letters, so that nothing behind
    // it is read.
    let is = |at: usize, letter: u8| unsafe { *text.source.add(at) as u8 | 0x20 } == letter;
    text.location <= 0 && is(0, b's') && is(1, b'e') && is(2, b'l') && is(3, b'e') && is(4, b'c') && is(5, b't')
}

/// All that the client sent as far as the statement's end, and where the statement begins in it.
fn up_to_end(text: &Text) -> (&[u8], usize) {
    let start = usize::try_from(text.location).unwrap_or(0);
    let end = usize::try_from(text.length).ok().filter(|length| *length > 0).map(|length| start + length);
    if let Some(end) = end.filter(|_| text.location >= 0 && is_message(text)) {
        // SAFETY: the server's parser has found this end in this message (analyze.c and parser.c set it), as
        // pg_stat_statements relies on. A message may have many statements: to look for its end for each would take
        // time that grows with the square of their number.
        return unsafe { (std::slice::from_raw_parts(text.source.cast(), end), start) };
    }
    // SAFETY: `Text::of` was promised a source that ends with NUL and stays.
    let whole = unsafe { CStr::from_ptr(text.source) }.to_bytes();
    let end = end.map_or(whole.len(), |end| end.min(whole.len()));
    (&whole[..end], start.min(end))
}

/// Returns true if it is part of the message under way.
fn is_message(text: &Text) -> bool {
    // SAFETY: a plain global of the backend.
    std::ptr::eq(text.source, unsafe { pg_sys::debug_query_string })
}

/// The text of a statement as the client sent it.
pub fn raw(text: &Text) -> &[u8] {
    let (sent, start) = up_to_end(text);
    &sent[start..]
}

/// As `raw`, with all that stands before it as far as the last semicolon: comments, and a statement around it. From 18
/// on the server does not count these as parts of the text. A semicolon in them hides what stands before it.
pub fn with_what_is_before(text: &Text) -> &[u8] {
    let (sent, word) = up_to_end(text);
    let start = sent[..word].iter().rposition(|byte| *byte == b';').map_or(0, |end| end + 1);
    &sent[start..]
}

impl StatementTerms {
    /// The terms of the statement with this text.
    ///
    /// # Errors
    /// `NoCacheHint` when the statement asks to be left alone.
    pub fn of(text: Text) -> Result<Self, Reason> {
        if begins_with_select(&text) {
            return Ok(Self::USUAL);
        }
        match hint(with_what_is_before(&text)) {
            None => Ok(Self::USUAL),
            Some(Hint::Always { ttl, fragments, max_stale }) => Ok(Self { insisted: true, ttl, max_stale, fragments }),
            Some(Hint::Never) => Err(Reason::NoCacheHint),
        }
    }
}
