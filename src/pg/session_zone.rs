//! The offsets of the session's time zone, as the server knows them. Reads the server's tables; keeps nothing.

use std::ffi::CStr;

use arrow_cache_core::formats::wire::{self, Span};
use pgrx::pg_sys;

use super::server;

/// What tells the session's time zone from others: the server keeps each one in its place.
pub fn identity() -> usize {
    // SAFETY: a plain global of the backend.
    unsafe { pg_sys::session_timezone as usize }
}

/// The name of the session's time zone, which tells it from all others.
pub fn name<'a>() -> &'a [u8] {
    // SAFETY: a plain global of the backend; the server keeps each zone that was ever set, with its name, for the life
    // of the backend.
    unsafe {
        let name = server::pg_get_timezone_name(pg_sys::session_timezone);
        if name.is_null() { b"" } else { CStr::from_ptr(name).to_bytes() }
    }
}

/// Returns true if all offsets of the session's time zone are such as places have, up to 16 hours. Those of a zone that
/// is read from a file are, and of one whose offset never changes. A name with digits may be a rule of the user's own,
/// whose offsets may be up to a week.
pub fn has_sane_offsets() -> bool {
    let mut offset = 0;
    // SAFETY: a plain global of the backend, and a read of the zone's tables.
    let is_fixed = unsafe { kept!(pg_sys::pg_get_timezone_offset(pg_sys::session_timezone, &raw mut offset)) };
    is_fixed || !name().iter().any(u8::is_ascii_digit)
}

/// The offset of a time zone of the server at a second since 1970, and how long it stays so. `zone` is one that
/// `identity` has given.
pub fn offset_at(zone: usize, second: i64) -> Span {
    let zone = zone as *const pg_sys::pg_tz;
    let mut start = wire::stretch(second);
    loop {
        let (mut before, mut after) = (0, 0);
        let (mut before_is_dst, mut after_is_dst) = (0, 0);
        let mut end = 0;
        // SAFETY: the server keeps each zone that was ever set for the life of the backend. Plain reads of its tables;
        // the result of pg_localtime is read before the next call.
        unsafe {
            let found = server::pg_next_dst_boundary(
                &raw const start,
                &raw mut before,
                &raw mut before_is_dst,
                &raw mut end,
                &raw mut after,
                &raw mut after_is_dst,
                zone,
            );
            match found {
                1 if end <= second && end > start => start = end,
                _ => {
                    let local = server::pg_localtime(&raw const second, zone);
                    let offset = if local.is_null() { 0 } else { (*local).tm_gmtoff as i32 };
                    return match found {
                        0 => Span { start, end: i64::MAX, offset },
                        1 if end > second => Span { start, end, offset },
                        _ => Span { start: second, end: second + 1, offset },
                    };
                }
            }
        }
    }
}
