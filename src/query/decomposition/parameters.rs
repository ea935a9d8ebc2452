//! Values of parameters as constants.

use pgrx::pg_sys;

use super::obstacle::Obstacle;
use crate::pg::tree::Tree;
use crate::query::parameters::as_constant;

/// The value of a parameter as a constant; the parameter itself, if it is not one of the statement.
///
/// # Errors
/// `Parameter` if its value is not known, or not of its type.
pub(super) fn constant_of(
    param: Tree<'_, pg_sys::Param>,
    params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
) -> Result<*mut pg_sys::Node, Obstacle> {
    if param.paramkind != pg_sys::ParamKind::PARAM_EXTERN {
        return Ok(param.as_node().as_ptr());
    }
    as_constant(param, params).ok_or(Obstacle::Parameter)
}
