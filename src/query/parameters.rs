//! Values in the key: parameters of a statement, and constants of a query tree, byte for byte.

use arrow_cache_core::{KeyBuffer, Reason};
use pgrx::pg_sys;

/// How many parameters there are.
///
/// # Safety
/// `params` must be null or valid.
pub unsafe fn count(params: pg_sys::ParamListInfo) -> usize {
    // SAFETY: as the caller promises.
    unsafe { params.as_ref() }.map_or(0, |params| params.numParams as usize)
}

/// Adds the types and values of all parameters.
///
/// # Errors
/// `DynamicParameters` when a hook supplies values on demand (PL variables): they may change. `RecordType` for an
/// anonymous record.
///
/// # Safety
/// `params` must be null or valid.
pub unsafe fn add_parameters(key: &mut KeyBuffer, params: pg_sys::ParamListInfo) -> Result<(), Reason> {
    if params.is_null() {
        key.u32(0);
        return Ok(());
    }
    // SAFETY: as the caller promises; `params` is a flexible array of `numParams` values.
    unsafe {
        if (*params).paramFetch.is_some() {
            return Err(Reason::DynamicParameters);
        }
        let count = (*params).numParams as usize;
        key.u32(count as u32);
        let values = (&raw const (*params).params).cast::<pg_sys::ParamExternData>();
        for value in std::slice::from_raw_parts(values, count) {
            if matches!(value.ptype, pg_sys::RECORDOID | pg_sys::RECORDARRAYOID) {
                // Its bytes name a row type by a number of this session.
                return Err(Reason::RecordType);
            }
            key.u32(value.ptype.to_u32());
            key.u8(u8::from(value.isnull));
            if value.isnull || value.ptype == pg_sys::InvalidOid {
                continue;
            }
            let (mut length, mut by_value) = (0i16, false);
            pg_sys::get_typlenbyval(value.ptype, &mut length, &mut by_value);
            add_datum(key, value.value, by_value, length);
        }
    }
    Ok(())
}

/// Adds one value by its bytes, detoasted.
///
/// # Safety
/// `datum` must be a non-null value of the given passing and length (pg_type.typlen).
pub unsafe fn add_datum(key: &mut KeyBuffer, datum: pg_sys::Datum, by_value: bool, length: i16) {
    if by_value {
        key.u64(datum.value() as u64);
        return;
    }
    // SAFETY: a by-reference value points to `length` bytes, a NUL-terminated string (-2) or a
    // varlena (-1), which is detoasted before its bytes are read.
    unsafe {
        match length {
            -1 => {
                let flat = pg_sys::pg_detoast_datum_packed(datum.cast_mut_ptr());
                key.part(pgrx::varlena_to_byte_slice(flat));
                if !std::ptr::eq(flat, datum.cast_mut_ptr()) {
                    pg_sys::pfree(flat.cast());
                }
            }
            -2 => key.part(std::ffi::CStr::from_ptr(datum.cast_mut_ptr()).to_bytes()),
            _ => key.part(std::slice::from_raw_parts(datum.cast_mut_ptr::<u8>(), length as usize)),
        }
    }
}
