//! The parameters of a query that a SQL function runs, in the layout that the executor takes.

use std::marker::PhantomData;

use pgrx::pg_sys;

use super::arguments::Argument;
use crate::pg::type_catalog::input_function;

/// A list of parameters in the current memory context, valid for `'p`.
#[derive(Clone, Copy)]
pub struct Parameters<'p> {
    list: pg_sys::ParamListInfo,
    valid: PhantomData<&'p pg_sys::ParamListInfoData>,
}

impl<'p> Parameters<'p> {
    /// No parameters.
    pub const NONE: Self = Self { list: std::ptr::null_mut(), valid: PhantomData };

    /// The arguments as parameters of these types. Untyped literals are read as the type of their parameter.
    pub fn bind(arguments: &[Argument<'p>], types: &[pg_sys::Oid]) -> Self {
        if arguments.is_empty() {
            return Self::NONE;
        }
        Self::list(arguments.len(), |index| {
            let argument = &arguments[index];
            let ptype = types.get(index).copied().unwrap_or(argument.type_oid);
            let is_literal = argument.type_oid == pg_sys::UNKNOWNOID && ptype != pg_sys::UNKNOWNOID;
            let value = match argument.value {
                Some(value) if is_literal => read_as(ptype, value.datum()),
                Some(value) => value.datum(),
                None => pg_sys::Datum::null(),
            };
            pg_sys::ParamExternData {
                value,
                isnull: argument.value.is_none(),
                pflags: pg_sys::PARAM_FLAG_CONST as u16,
                ptype,
            }
        })
    }

    /// NULL for each parameter of these types.
    pub fn nulls(types: &[pg_sys::Oid]) -> Self {
        let value = pg_sys::Datum::null();
        Self::list(types.len(), |index| pg_sys::ParamExternData { value, isnull: true, pflags: 0, ptype: types[index] })
    }

    fn list(count: usize, parameter: impl Fn(usize) -> pg_sys::ParamExternData) -> Self {
        // SAFETY: the list has room for as many parameters as it is made for.
        unsafe {
            let list = kept!(pg_sys::makeParamList(count as i32));
            let places = (&raw mut (*list).params).cast::<pg_sys::ParamExternData>();
            for index in 0..count {
                places.add(index).write(parameter(index));
            }
            Self { list, valid: PhantomData }
        }
    }

    /// As the server knows them; null for none.
    pub fn as_ptr(self) -> pg_sys::ParamListInfo {
        self.list
    }
}

/// An untyped literal as a value of a type.
fn read_as(type_oid: pg_sys::Oid, literal: pg_sys::Datum) -> pg_sys::Datum {
    let (text, (input, parameter)) = (literal.cast_mut_ptr(), input_function(type_oid));
    // SAFETY: an untyped literal is a C string, which the type's input function reads.
    unsafe { kept!(pg_sys::OidInputFunctionCall(input, text, parameter, -1)) }
}
