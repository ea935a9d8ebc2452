//! Values that are given for a statement's parameters, or NULL where none are. Keeps nothing.

use pgrx::pg_sys::{self, ParamKind};

use super::tree::Tree;
use super::tree_making::replaced_in_query;

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

/// A copy of a query that has NULL in the place of all parameters, in the current memory context.
pub fn with_nulls(query: Tree<'_, pg_sys::Query>) -> *mut pg_sys::Query {
    let nulls = |node: Tree<'_, pg_sys::Node>, _depth: u32| {
        let param = node.as_a::<pg_sys::Param>().filter(|param| param.paramkind == ParamKind::PARAM_EXTERN)?;
        // SAFETY: a node of the type of the parameter.
        Some(unsafe { kept!(pg_sys::makeNullConst(param.paramtype, param.paramtypmod, param.paramcollid)).cast() })
    };
    // SAFETY: a valid query.
    unsafe { replaced_in_query(query.as_ptr(), &mut { nulls }) }
}
