//! Values in the key: parameters of a statement, and constants of a query tree, byte for byte.

use arrow_cache_core::{HashBuffer, Reason};
use pgrx::pg_sys::{self, ParamKind};

use crate::pg::server;
use crate::pg::tree::Tree;
use crate::pg::tree_search::search;

/// The value that is given for a parameter of the statement, if it is known, and of the parameter's type.
pub fn given<'p>(
    param: &pg_sys::Param,
    params: Option<Tree<'p, pg_sys::ParamListInfoData>>,
) -> Option<&'p pg_sys::ParamExternData> {
    let params = params.filter(|params| params.paramFetch.is_none() && param.paramkind == ParamKind::PARAM_EXTERN)?;
    let place = usize::try_from(param.paramid - 1).ok().filter(|place| *place < params.numParams as usize)?;
    // SAFETY: the list ends with as many values as it says, and lives as long.
    let value = unsafe { &*(&raw const (*params.as_ptr()).params).cast::<pg_sys::ParamExternData>().add(place) };
    (value.ptype == param.paramtype).then_some(value)
}

/// The same as a constant, in the current memory context, as the planner takes it.
pub fn as_constant(
    param: Tree<'_, pg_sys::Param>,
    params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
) -> Option<*mut pg_sys::Node> {
    let value = given(&param, params)?;
    // SAFETY: the value has the type that stands beside it.
    unsafe {
        let (mut length, mut by_value) = (0i16, false);
        kept!(pg_sys::get_typlenbyval(param.paramtype, &mut length, &mut by_value));
        let datum = if value.isnull || by_value {
            value.value
        } else {
            kept!(server::datumCopy(value.value, by_value, length.into()))
        };
        let (kind, modifier, collation) = (param.paramtype, param.paramtypmod, param.paramcollid);
        Some(kept!(pg_sys::makeConst(kind, modifier, collation, length.into(), datum, value.isnull, by_value)).cast())
    }
}

/// Which parameters of the statement a query names: a bit for each of the first 32; all bits if it names others.
///
/// # Safety
/// A valid query.
pub unsafe fn named_by(query: *mut pg_sys::Query) -> u32 {
    let mut named = 0;
    let mut look = |node: Tree<'_, pg_sys::Node>| {
        if let Some(param) = node.as_a::<pg_sys::Param>().filter(|param| param.paramkind == ParamKind::PARAM_EXTERN) {
            named |=
                u32::try_from(param.paramid - 1).ok().and_then(|place| 1u32.checked_shl(place)).unwrap_or(u32::MAX);
        }
        false
    };
    // SAFETY: the caller's promise.
    let found = unsafe { search(query.cast(), 0, &mut look) };
    if found.is_none() { u32::MAX } else { named }
}

/// The parameters in which NULL stands for the values of those that are not `named`, in the current memory context; the
/// same ones if nothing is to be left out.
///
/// # Safety
/// Null, or valid parameters, which outlive what is made of them.
pub unsafe fn only_named(params: pg_sys::ParamListInfo, named: u32) -> pg_sys::ParamListInfo {
    // SAFETY: the caller's promise: the list ends with as many values as it says.
    unsafe {
        let Some(given) = params.as_ref() else { return params };
        let count = given.numParams as usize;
        let is_named = |place: usize| named & 1u32.checked_shl(place as u32).unwrap_or(u32::MAX) != 0;
        if given.paramFetch.is_some() || (0..count).all(is_named) {
            return params;
        }
        let size = size_of::<pg_sys::ParamListInfoData>() + count * size_of::<pg_sys::ParamExternData>();
        let copy: pg_sys::ParamListInfo = kept!(pg_sys::palloc(size)).cast();
        copy.cast::<u8>().copy_from_nonoverlapping(params.cast(), size);
        let values: *mut pg_sys::ParamExternData = (&raw mut (*copy).params).cast();
        for place in (0..count).filter(|place| !is_named(*place)) {
            values.add(place).write(pg_sys::ParamExternData { isnull: true, ..Default::default() });
        }
        copy
    }
}

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
        let (mut length, mut by_value) = (0i16, false);
        // SAFETY: reads a catalog about the type of a parameter; the value has that type.
        unsafe {
            kept!(pg_sys::get_typlenbyval(value.ptype, &mut length, &mut by_value));
            add_datum(key, value.value, by_value, length);
        }
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
