//! The server's shortest exact text of floats, which its output functions print while `extra_float_digits` is above 0
//! (common/shortest_dec.h). Pure functions.

use std::ffi::{c_char, c_int};

/// Bytes of the longest text of a float8, without a NUL (`DOUBLE_SHORTEST_DECIMAL_LEN` - 1); that of a float4 is
/// shorter.
pub const LONGEST_FLOAT: usize = 24;

unsafe extern "C" {
    /// common/shortest_dec.h; computes in its own frame and cannot raise, so it needs no guard.
    fn double_to_shortest_decimal_bufn(value: f64, result: *mut c_char) -> c_int;
    /// common/shortest_dec.h; as above.
    fn float_to_shortest_decimal_bufn(value: f32, result: *mut c_char) -> c_int;
}

/// Writes the text of a float8 to the start of `out`, and returns its length.
#[inline]
pub fn float8<const N: usize>(value: f64, out: &mut [u8; N]) -> usize {
    const { assert!(N >= LONGEST_FLOAT) };
    // SAFETY: the function writes no more than `LONGEST_FLOAT` bytes, for which there is room, and no NUL.
    unsafe { double_to_shortest_decimal_bufn(value, out.as_mut_ptr().cast()) as usize }
}

/// Writes the text of a float4 to the start of `out`, and returns its length.
#[inline]
pub fn float4<const N: usize>(value: f32, out: &mut [u8; N]) -> usize {
    const { assert!(N >= LONGEST_FLOAT) };
    // SAFETY: as in `float8`.
    unsafe { float_to_shortest_decimal_bufn(value, out.as_mut_ptr().cast()) as usize }
}
