//! The arguments of the export functions, as they come from the server.

use std::ffi::{CStr, CString};

use arrow_cache_core::RoomyVec;
use pgrx::pg_sys;

use crate::error::{CacheError, or_raise};
use crate::pg::encoding;
use crate::pg::function_call::FunctionCall;
use crate::pg::row::Value;

/// One argument after the query's text.
#[derive(Clone, Copy)]
pub struct Argument<'c> {
    /// Its type.
    pub type_oid: pg_sys::Oid,
    /// Its value; `None` for NULL.
    pub value: Option<Value<'c>>,
}

/// The query's text, in the first argument. `None` for NULL. Raises if there is no memory for it.
pub fn text(call: FunctionCall<'_>) -> Option<CString> {
    call.argument(0).map(|value| {
        // SAFETY: the first argument of each of these functions is a text.
        let bytes = unsafe {
            let flat = kept!(pg_sys::pg_detoast_datum_packed(value.datum().cast_mut_ptr()));
            pgrx::varlena_to_byte_slice(flat)
        };
        let mut text = or_raise(Vec::with_room(bytes.len() + 1));
        text.extend_from_slice(bytes);
        CString::new(text).unwrap_or_default()
    })
}

/// The text of an argument that is a `jsonb`, by its number from 0. `None` for NULL.
pub fn json(call: FunctionCall<'_>, index: usize) -> Option<String> {
    call.argument(index).map(|value| {
        // SAFETY: the functions that have such an argument declare it as jsonb; output functions give C strings.
        let text = unsafe {
            CStr::from_ptr(kept!(pg_sys::OidOutputFunctionCall(pg_sys::Oid::from(pg_sys::F_JSONB_OUT), value.datum())))
        };
        encoding::to_string(text)
    })
}

/// All arguments of `query(text, VARIADIC "any")` after the first. `VARIADIC array` gives the array's elements.
pub fn parameters<'c>(call: FunctionCall<'c>) -> Vec<Argument<'c>> {
    let count = call.count();
    if count > 1 && call.is_variadic() && is_array(call.argument_type(1)) {
        return call.argument(1).map(elements).unwrap_or_default();
    }
    let argument = |index| {
        let type_oid = call.argument_type(index);
        if type_oid == pg_sys::InvalidOid {
            CacheError::untyped_parameter(index).raise();
        }
        Argument { type_oid, value: call.argument(index) }
    };
    or_raise(Vec::collected((1..count).map(argument)))
}

/// Is it a type of arrays, or a domain over one?
fn is_array(type_oid: pg_sys::Oid) -> bool {
    // SAFETY: a catalog search; an unknown OID is no array.
    unsafe { kept!(pg_sys::get_base_element_type(type_oid)) != pg_sys::InvalidOid }
}

/// The elements of an argument that was marked VARIADIC.
fn elements(array: Value<'_>) -> Vec<Argument<'_>> {
    // SAFETY: the caller has asked for its type, which is that of arrays. The server returns as many values and flags as it counts, which live
    // as long as the array and the memory context.
    unsafe {
        let array: *mut pg_sys::ArrayType = kept!(pg_sys::pg_detoast_datum(array.datum().cast_mut_ptr())).cast();
        let type_oid = (*array).elemtype;
        let (mut length, mut by_value, mut align) = (0i16, false, 0 as std::ffi::c_char);
        kept!(pg_sys::get_typlenbyvalalign(type_oid, &mut length, &mut by_value, &mut align));
        let (mut values, mut nulls, mut count) = (std::ptr::null_mut(), std::ptr::null_mut(), 0);
        kept!(pg_sys::deconstruct_array(
            array,
            type_oid,
            i32::from(length),
            by_value,
            align,
            &mut values,
            &mut nulls,
            &mut count,
        ));
        let value = |index| (!*nulls.add(index)).then(|| Value::of(*values.add(index)));
        or_raise(Vec::collected((0..count as usize).map(|index| Argument { type_oid, value: value(index) })))
    }
}
