//! Which parameters a query names. Others have no part in its answer: the clock-free part of a statement need not have
//! those that only its columns with the clock have.

use pgrx::pg_sys::{self, ParamKind};

use crate::pg::tree::Tree;
use crate::pg::tree_search::search;

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
