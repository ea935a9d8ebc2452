//! The header in front of a variable-length value (varatt.h), read and written without a call
//! into PostgreSQL for the plain forms, since it is met once per value.

use pgrx::pg_sys;

#[cfg(not(target_endian = "little"))]
compile_error!("varlena headers are read in their little-endian form");

/// Bytes of the long header.
pub const HEADER: usize = 4;

/// The header of a plain value with `length` bytes of body.
pub fn header(length: usize) -> u32 {
    ((length + HEADER) as u32) << 2
}

/// The body of a varlena, detoasted if need be into the current memory context. `None` when the
/// body is larger than `limit`, without fetching it.
///
/// # Safety
/// `datum` must be a varlena that lives as long as the result is used; the current memory context
/// must too.
pub unsafe fn body<'a>(datum: pg_sys::Datum, limit: usize) -> Option<&'a [u8]> {
    // SAFETY: as the caller promises; the low bits of the first byte say which form it has.
    unsafe {
        let start = datum.cast_mut_ptr::<u8>();
        let first = *start;
        let (data, length) = if first & 0x03 == 0 {
            let word = start.cast::<u32>().read_unaligned();
            (start.add(HEADER), (word >> 2) as usize - HEADER)
        } else if first & 0x01 == 0x01 && first != 0x01 {
            (start.add(1), (first >> 1) as usize - 1)
        } else {
            if pg_sys::toast_raw_datum_size(datum) > limit.saturating_add(HEADER) {
                return None;
            }
            let flat = pg_sys::pg_detoast_datum(start.cast()).cast::<u8>();
            let word = flat.cast::<u32>().read_unaligned();
            (flat.add(HEADER), (word >> 2) as usize - HEADER)
        };
        (length <= limit).then(|| std::slice::from_raw_parts(data, length))
    }
}
