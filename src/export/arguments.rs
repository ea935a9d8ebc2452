//! The arguments of `query(text, VARIADIC "any")` as parameters of the query inside.

use std::ffi::{CStr, CString};

use arrow_cache_core::RoomyVec;
use pgrx::pg_sys;

use crate::error::{CacheError, or_raise};
use crate::pg::encoding;
use crate::pg::error_passing::kept;
use crate::pg::server;

/// One argument after the query's text.
#[derive(Clone, Copy)]
pub struct Argument {
    type_oid: pg_sys::Oid,
    value: pg_sys::Datum,
    is_null: bool,
}

/// The query's text, in the first argument. `None` for NULL.
///
/// # Safety
/// `call` must be the call of a function whose first argument is a text.
pub unsafe fn text(call: pg_sys::FunctionCallInfo) -> Option<CString> {
    // SAFETY: as the caller promises.
    unsafe {
        let argument = raw_argument(call, 0);
        if argument.isnull {
            return None;
        }
        let flat = pg_sys::pg_detoast_datum_packed(argument.value.cast_mut_ptr());
        Some(super::c_string(pgrx::varlena_to_byte_slice(flat)))
    }
}

/// The text of argument number `index`, from 0, a `jsonb`. `None` for NULL.
///
/// # Safety
/// `call` must be the call of a function with such an argument.
pub unsafe fn json(call: pg_sys::FunctionCallInfo, index: usize) -> Option<String> {
    // SAFETY: as the caller promises; output functions give C strings.
    unsafe {
        let argument = raw_argument(call, index);
        (!argument.isnull).then(|| {
            let text = pg_sys::OidOutputFunctionCall(pg_sys::Oid::from(pg_sys::F_JSONB_OUT), argument.value);
            encoding::to_string(CStr::from_ptr(text))
        })
    }
}

/// # Safety
/// `call` must have more than `index` arguments.
unsafe fn raw_argument(call: pg_sys::FunctionCallInfo, index: usize) -> pg_sys::NullableDatum {
    // SAFETY: `args` is the flexible array at the end of the struct.
    unsafe { *(&raw const (*call).args).cast::<pg_sys::NullableDatum>().add(index) }
}

/// All arguments after the first. `VARIADIC array` gives the array's elements.
///
/// # Safety
/// `call` must be the call of `query`.
pub unsafe fn parameters(call: pg_sys::FunctionCallInfo) -> Vec<Argument> {
    // SAFETY: as the caller promises.
    unsafe {
        let count = (*call).nargs as usize;
        if count > 1 && pg_sys::get_fn_expr_variadic((*call).flinfo) {
            return elements(call);
        }
        or_raise(Vec::collected((1..count).map(|index| {
            let argument = raw_argument(call, index);
            Argument {
                type_oid: pg_sys::get_fn_expr_argtype((*call).flinfo, index as i32),
                value: argument.value,
                is_null: argument.isnull,
            }
        })))
    }
}

/// # Safety
/// `call` must be the call of `query`, with an array marked VARIADIC.
unsafe fn elements(call: pg_sys::FunctionCallInfo) -> Vec<Argument> {
    // SAFETY: the parser lets only arrays be marked VARIADIC.
    unsafe {
        let argument = raw_argument(call, 1);
        if argument.isnull {
            return Vec::new();
        }
        let array: *mut pg_sys::ArrayType = pg_sys::pg_detoast_datum(argument.value.cast_mut_ptr()).cast();
        let type_oid = (*array).elemtype;
        let (mut length, mut by_value, mut align) = (0i16, false, 0 as std::ffi::c_char);
        pg_sys::get_typlenbyvalalign(type_oid, &mut length, &mut by_value, &mut align);
        let (mut values, mut nulls, mut count) = (std::ptr::null_mut(), std::ptr::null_mut(), 0);
        pg_sys::deconstruct_array(
            array,
            type_oid,
            i32::from(length),
            by_value,
            align,
            &mut values,
            &mut nulls,
            &mut count,
        );
        let argument = |index| Argument { type_oid, value: *values.add(index), is_null: *nulls.add(index) };
        or_raise(Vec::collected((0..count as usize).map(argument)))
    }
}

/// Analyzes the query; parameters that are untyped literals get the type its context asks for.
/// Returns the types of all parameters.
///
/// # Safety
/// `raw` must be a fresh parse tree of `text`.
pub unsafe fn analyze(
    raw: *mut pg_sys::RawStmt,
    text: &CStr,
    arguments: &[Argument],
) -> (Vec<pg_sys::Oid>, *mut pg_sys::Query) {
    // SAFETY: as the caller promises. The parser may replace the type array by a longer one, so
    // it must be palloc'd.
    unsafe {
        let mut count = arguments.len() as i32;
        let size = std::mem::size_of::<pg_sys::Oid>() * arguments.len().max(1);
        let mut types: *mut pg_sys::Oid = pg_sys::palloc(size).cast();
        for (index, argument) in arguments.iter().enumerate() {
            *types.add(index) = argument.type_oid;
        }
        let (text, all_types, all) = (text.as_ptr(), &raw mut types, &raw mut count);
        let query = kept!(server::parse_analyze_varparams(raw, text, all_types, all, std::ptr::null_mut()));
        let given = arguments.len();
        if count as usize > given {
            CacheError::MissingParameter { number: given as i32 + 1, given }.raise();
        }
        (or_raise(Vec::copy_of(std::slice::from_raw_parts(types, count as usize))), query)
    }
}

/// The parameters in the form that the executor takes.
///
/// # Safety
/// `types` must be those that `analyze` returned.
pub unsafe fn bind(arguments: &[Argument], types: &[pg_sys::Oid]) -> pg_sys::ParamListInfo {
    if arguments.is_empty() {
        return std::ptr::null_mut();
    }
    // SAFETY: the list has room for as many parameters as it was made for.
    unsafe {
        let list = pg_sys::makeParamList(arguments.len() as i32);
        let params = (&raw mut (*list).params).cast::<pg_sys::ParamExternData>();
        for (index, argument) in arguments.iter().enumerate() {
            let param = &mut *params.add(index);
            param.ptype = types.get(index).copied().unwrap_or(argument.type_oid);
            param.isnull = argument.is_null;
            param.pflags = pg_sys::PARAM_FLAG_CONST as u16;
            param.value =
                if argument.type_oid == pg_sys::UNKNOWNOID && param.ptype != pg_sys::UNKNOWNOID && !argument.is_null {
                    let (mut input, mut io_param) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
                    pg_sys::getTypeInputInfo(param.ptype, &mut input, &mut io_param);
                    let text = argument.value.cast_mut_ptr();
                    kept!(server::OidInputFunctionCall(input, text, io_param, -1))
                } else {
                    argument.value
                };
        }
        list
    }
}
