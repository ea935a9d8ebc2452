//! Values in the key: parameters of a statement, and constants of a query tree, byte for byte.

use arrow_cache_core::{HashBuffer, Reason};
use pgrx::pg_sys;

use crate::pg::tree::Tree;
use crate::pg::type_catalog::form_of;

/// Adds the types and values of all parameters.
///
/// # Errors
/// `DynamicParameters` when a hook supplies values on demand (PL variables): they may change. `RecordType` for an
/// anonymous record.
pub fn add_parameters(key: &mut HashBuffer, params: Option<Tree<'_, pg_sys::ParamListInfoData>>) -> Result<(), Reason> {
    let Some(params) = params else {
        key.u32(0);
        return Ok(());
    };
    if params.paramFetch.is_some() {
        return Err(Reason::DynamicParameters);
    }
    let count = params.numParams as usize;
    key.u32(count as u32);
    // SAFETY: the list ends with as many values as it says.
    let values = unsafe { std::slice::from_raw_parts((&raw const (*params.as_ptr()).params).cast(), count) };
    for value in values {
        let value: &pg_sys::ParamExternData = value;
        if matches!(value.ptype, pg_sys::RECORDOID | pg_sys::RECORDARRAYOID) {
            // Its bytes name a row type by a number of this session.
            return Err(Reason::RecordType);
        }
        key.u32(value.ptype.to_u32());
        key.u8(u8::from(value.isnull));
        if value.isnull || value.ptype == pg_sys::InvalidOid {
            continue;
        }
        let (length, by_value) = form_of(value.ptype);
        // SAFETY: the value has that type.
        unsafe { add_datum(key, value.value, by_value, length) };
    }
    Ok(())
}

/// Adds one value by its bytes, detoasted.
///
/// # Safety
/// `datum` must be a non-null value of the given passing and length (pg_type.typlen).
pub unsafe fn add_datum(key: &mut HashBuffer, datum: pg_sys::Datum, by_value: bool, length: i16) {
    if by_value {
        key.u64(datum.value() as u64);
        return;
    }
    // SAFETY: a by-reference value points to `length` bytes, a NUL-terminated string (-2) or a
    // varlena (-1), which is detoasted before its bytes are read.
    unsafe {
        match length {
            -1 => {
                let flat = kept!(pg_sys::pg_detoast_datum_packed(datum.cast_mut_ptr()));
                key.part(pgrx::varlena_to_byte_slice(flat));
                if !std::ptr::eq(flat, datum.cast_mut_ptr()) {
                    kept!(pg_sys::pfree(flat.cast()));
                }
            }
            -2 => key.part(std::ffi::CStr::from_ptr(datum.cast_mut_ptr()).to_bytes()),
            _ => key.part(std::slice::from_raw_parts(datum.cast_mut_ptr::<u8>(), length as usize)),
        }
    }
}
