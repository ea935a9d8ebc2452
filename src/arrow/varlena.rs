//! The header in front of a variable-length value (varatt.h), read and written without a call
//! into PostgreSQL for the plain forms, since it is met once per value.

use arrow_cache_core::Reason;
use pgrx::pg_sys;

#[cfg(not(target_endian = "little"))]
compile_error!("varlena headers are read in their little-endian form");

/// Bytes of the long header.
pub const HEADER: usize = 4;

/// The header of a plain value with `length` bytes of body.
pub fn header(length: usize) -> u32 {
    ((length + HEADER) as u32) << 2
}

/// The body of a varlena, detoasted if need be into the current memory context.
///
/// # Errors
/// `TooLarge` when the body is larger than `limit`, without fetching it; `OutOfMemory` when there is no memory for fetching it.
///
/// # Safety
/// `datum` must be a varlena that lives as long as the result is used; the current memory context
/// must too.
#[inline]
pub unsafe fn body<'a>(datum: pg_sys::Datum, limit: usize) -> Result<&'a [u8], Reason> {
    // SAFETY: as the caller promises; the low bits of the first byte say which form it has.
    unsafe {
        let start = datum.cast_mut_ptr::<u8>();
        let first = *start;
        let (data, length) = if first & 0x01 == 0x01 && first != 0x01 {
            (start.add(1).cast_const(), (first >> 1) as usize - 1)
        } else if first & 0x03 == 0 {
            plain(start)
        } else {
            detoasted(datum, limit)?
        };
        if length > limit {
            return Err(Reason::TooLarge);
        }
        Ok(std::slice::from_raw_parts(data, length))
    }
}

/// The body of a value with a long header, neither compressed nor stored elsewhere.
///
/// # Safety
/// `start` must be the header of such a value.
unsafe fn plain(start: *const u8) -> (*const u8, usize) {
    // SAFETY: as the caller promises.
    unsafe {
        let word = start.cast::<u32>().read_unaligned();
        (start.add(HEADER), (word >> 2) as usize - HEADER)
    }
}

/// # Safety
/// As `body`.
#[cold]
unsafe fn detoasted(datum: pg_sys::Datum, limit: usize) -> Result<(*const u8, usize), Reason> {
    // SAFETY: as the caller promises; detoasting gives a plain value.
    unsafe {
        let size = pg_sys::toast_raw_datum_size(datum);
        if size > limit.saturating_add(HEADER) {
            return Err(Reason::TooLarge);
        }
        if size > LARGE {
            // Detoasting raises without memory, which is no business of the statement whose rows are captured. It takes the
            // value and, for a compressed one, what is stored of it. So much is asked for, and given back at once.
            let wanted = size + pg_sys::toast_datum_size(datum) + LARGE;
            let flags = pg_sys::MCXT_ALLOC_HUGE | pg_sys::MCXT_ALLOC_NO_OOM;
            let room = pg_sys::palloc_extended(wanted, flags as i32);
            if room.is_null() {
                return Err(Reason::OutOfMemory);
            }
            pg_sys::pfree(room);
        }
        let flat = pg_sys::pg_detoast_datum(datum.cast_mut_ptr());
        Ok(plain(flat.cast()))
    }
}

/// Values up to this size are fetched without asking for memory first.
const LARGE: usize = 64 * 1024;
