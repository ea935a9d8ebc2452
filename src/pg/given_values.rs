//! Values that are given for a statement's parameters. Reads them; keeps nothing.

use pgrx::pg_sys::{self, ParamKind};

use super::tree::Tree;

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
