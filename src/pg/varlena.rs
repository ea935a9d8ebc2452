//! Values of variable length and the header in front of them (varatt.h). Plain values are read and written without a
//! call into the server, since a header is met once per value.

use std::marker::PhantomData;

use arrow_cache_core::{OutOfMemory, Reason};
use pgrx::pg_sys;

use super::row::Value;

#[cfg(not(target_endian = "little"))]
compile_error!("varlena headers are read in little-endian order");

/// Bytes of the long header.
pub const HEADER: usize = 4;

/// Values of more bytes are fetched only after asking whether there is memory for them.
const LARGE: usize = 64 * 1024;

/// The header of a plain value with `length` bytes of body.
pub fn header(length: usize) -> u32 {
    ((length + HEADER) as u32) << 2
}

/// A value of variable length, valid for `'v`.
#[derive(Clone, Copy)]
pub struct Varlena<'v> {
    start: *const u8,
    valid: PhantomData<&'v [u8]>,
}

impl<'v> Varlena<'v> {
    /// A value of a type of variable length.
    ///
    /// # Safety
    /// The type's length must be -1 (`pg_type.typlen`).
    #[inline]
    pub unsafe fn of(value: Value<'v>) -> Self {
        Self { start: value.datum().cast_mut_ptr::<u8>().cast_const(), valid: PhantomData }
    }

    /// The body, detoasted into the current memory context if necessary.
    ///
    /// # Errors
    /// `TooLarge` when the body is larger than `limit` bytes, without fetching it; `OutOfMemory` when there is no
    /// memory for fetching it.
    #[inline]
    pub fn body(self, limit: usize) -> Result<&'v [u8], Reason> {
        match self.plain_body() {
            Some(body) if body.len() > limit => Err(Reason::TooLarge),
            Some(body) => Ok(body),
            None => self.detoasted_body(limit),
        }
    }

    /// The body of a value that is neither compressed nor stored elsewhere.
    #[inline]
    pub fn plain_body(self) -> Option<&'v [u8]> {
        // SAFETY: the value is a valid varlena. The low bits of its first byte tell which kind of header it has.
        unsafe {
            let first = *self.start;
            let (data, length) = if first & 0x01 == 0x01 && first != 0x01 {
                (self.start.add(1), (first >> 1) as usize - 1)
            } else if first & 0x03 == 0 {
                let word = self.start.cast::<u32>().read_unaligned();
                (self.start.add(HEADER), (word >> 2) as usize - HEADER)
            } else {
                return None;
            };
            Some(std::slice::from_raw_parts(data, length))
        }
    }

    /// The body, whatever its size.
    ///
    /// # Errors
    /// There is no memory for fetching it.
    #[inline]
    pub fn whole_body(self) -> Result<&'v [u8], OutOfMemory> {
        // Without a limit, memory is all that can be missing.
        self.body(usize::MAX).map_err(|_| OutOfMemory)
    }

    /// The value with a long header, neither compressed nor stored elsewhere: itself, or a copy in the current memory
    /// context.
    #[inline]
    pub fn flat(self) -> *mut pg_sys::varlena {
        let value = self.start.cast_mut().cast::<pg_sys::varlena>();
        // SAFETY: the value is a valid varlena. The two low bits of a plain header are zero (varatt.h); asking the
        // server costs more than most values.
        unsafe { if *self.start & 0x03 == 0 { value } else { kept!(pg_sys::pg_detoast_datum(value)) } }
    }

    /// The body of a value that is compressed or stored elsewhere.
    #[cold]
    fn detoasted_body(self, limit: usize) -> Result<&'v [u8], Reason> {
        let datum = pg_sys::Datum::from(self.start.cast_mut().cast::<std::ffi::c_void>());
        // SAFETY: the value is a valid varlena.
        let size = unsafe { kept!(pg_sys::toast_raw_datum_size(datum)) };
        if size > limit.saturating_add(HEADER) {
            return Err(Reason::TooLarge);
        }
        if size > LARGE {
            // SAFETY: as above; the memory is given back at once.
            unsafe {
                // Detoasting raises without memory, which must not disturb the statement whose rows are captured. It
                // takes the value and, for a compressed one, what is stored of it. That much is asked for.
                let wanted = size + kept!(pg_sys::toast_datum_size(datum)) + LARGE;
                let flags = pg_sys::MCXT_ALLOC_HUGE | pg_sys::MCXT_ALLOC_NO_OOM;
                let room = kept!(pg_sys::palloc_extended(wanted, flags as i32));
                if room.is_null() {
                    return Err(Reason::OutOfMemory);
                }
                kept!(pg_sys::pfree(room));
            }
        }
        // Detoasting gives a plain value.
        Self { start: self.flat().cast_const().cast(), valid: PhantomData }.body(limit)
    }
}
