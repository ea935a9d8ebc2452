//! The values of a Bind in the place of parameters, as the planner puts them there when it plans for these values. Makes a query in the current
//! memory context.

use pgrx::pg_sys::{self, ParamKind};

use crate::pg::tree::Tree;
use crate::pg::tree_making::replaced_in_query;
use crate::query::parameters::as_constant;

/// A copy of a query in which constants stand for its parameters; it may share parts with the query. `None` if a value is not known.
pub fn with_values(
    query: Tree<'_, pg_sys::Query>,
    params: Tree<'_, pg_sys::ParamListInfoData>,
) -> Option<*mut pg_sys::Query> {
    let mut is_complete = true;
    // SAFETY: a valid query.
    let copied = unsafe {
        replaced_in_query(query.as_ptr(), &mut |node, _depth| {
            let param = node.as_a::<pg_sys::Param>().filter(|param| param.paramkind == ParamKind::PARAM_EXTERN)?;
            let constant = as_constant(param, Some(params));
            is_complete &= constant.is_some();
            Some(constant.unwrap_or(node.as_ptr()))
        })
    };
    is_complete.then_some(copied)
}
