//! float4 and float8 as the server prints them while `extra_float_digits` is above 0: the shortest text that reads back
//! as the same value. Pure functions.
//!
//! The crate zmij prints the values with decimals that are shown without an exponent, the server all others (d2s.c,
//! f2s.c): each where it is quicker. Measured on hits of 20,000 rows with one float8 column (release profile; CPU time
//! of the session's process from `/proc/PID/schedstat`, median of 61, both variants alternating):
//!
//! | values | zmij | the server |
//! |---|---|---|
//! | `random() * 1000` | 0.88 ms | 1.05 ms |
//! | numeric(12,2) | 1.05 ms | 1.29 ms |
//! | eighths up to 12 | 0.91 ms | 1.36 ms |
//! | float4, `random() * 1000` | 0.79 ms | 1.05 ms |
//! | whole numbers up to 100 | 1.10 ms | 0.51 ms |
//! | `random() * 1e20` | 2.56 ms | 1.35 ms |
//!
//! Both find the same digits, except where the shortest text lies exactly in the middle between two floats: the server
//! never takes such a text. A float with decimals has none, because it has itself fewer digits than the middle between
//! it and a neighbour.

use super::format::LONGEST;
use super::server::Server;

/// Shortest texts from here on have an exponent.
const FLOAT8_FIXED_END: f64 = 1e15;
const FLOAT4_FIXED_END: f32 = 1e6;
/// So have those below.
const FLOAT8_FIXED_START: f64 = 1e-4;
const FLOAT4_FIXED_START: f32 = 1e-4;

/// Writes a float8.
#[inline]
pub fn float8(value: f64, server: &impl Server, out: &mut [u8; LONGEST]) -> usize {
    let is_whole = (value as i64) as f64 == value;
    if !is_whole && (FLOAT8_FIXED_START..FLOAT8_FIXED_END).contains(&value.abs()) {
        copy(zmij::Buffer::new().format_finite(value), out)
    } else {
        server.float8(value, out)
    }
}

/// Writes a float4.
#[inline]
pub fn float4(value: f32, server: &impl Server, out: &mut [u8; LONGEST]) -> usize {
    let is_whole = (value as i32) as f32 == value;
    if !is_whole && (FLOAT4_FIXED_START..FLOAT4_FIXED_END).contains(&value.abs()) {
        copy(zmij::Buffer::new().format_finite(value), out)
    } else {
        server.float4(value, out)
    }
}

#[inline]
fn copy(text: &str, out: &mut [u8; LONGEST]) -> usize {
    out[..text.len()].copy_from_slice(text.as_bytes());
    text.len()
}
