//! The arguments of the export functions, as they come from the server.

use std::ffi::{CStr, CString};

use arrow_cache_core::RoomyVec;
use pgrx::pg_sys;

use crate::error::{CacheError, or_raise};
use crate::pg::array::{Array, ElementType};
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
    // SAFETY: a catalog search, also below a domain; an unknown OID is no array.
    let is_array = |type_oid| unsafe { kept!(pg_sys::get_base_element_type(type_oid)) != pg_sys::InvalidOid };
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

/// The elements of an argument that was marked VARIADIC.
fn elements(value: Value<'_>) -> Vec<Argument<'_>> {
    // SAFETY: the caller has asked for its type, which is that of arrays.
    unsafe {
        let array = Array::of(value);
        let type_oid = array.element_type();
        let mut arguments = Vec::new();
        for value in array.elements(ElementType::of(type_oid)) {
            or_raise(arguments.add(Argument { type_oid, value }));
        }
        arguments
    }
}
