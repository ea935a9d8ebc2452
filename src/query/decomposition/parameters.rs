//! Values of parameters as constants.

use pgrx::pg_sys;

use super::obstacle::Obstacle;
use crate::pg::error_passing::guarded;
use crate::pg::server;
use crate::pg::tree::Tree;

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
    let params = params.filter(|params| params.paramFetch.is_none()).ok_or(Obstacle::Parameter)?;
    let place = usize::try_from(param.paramid - 1).ok().filter(|place| *place < params.numParams as usize);
    let place = place.ok_or(Obstacle::Parameter)?;
    // SAFETY: the list ends with as many values as it says; the value has the type that stands beside it.
    unsafe {
        let value = *(&raw const (*params.as_ptr()).params).cast::<pg_sys::ParamExternData>().add(place);
        if value.ptype != param.paramtype {
            return Err(Obstacle::Parameter);
        }
        let (mut length, mut by_value) = (0i16, false);
        pg_sys::get_typlenbyval(param.paramtype, &mut length, &mut by_value);
        let datum = if value.isnull || by_value {
            value.value
        } else {
            guarded!(server::datumCopy(value.value, by_value, length.into()))
        };
        let (kind, modifier, collation) = (param.paramtype, param.paramtypmod, param.paramcollid);
        Ok(pg_sys::makeConst(kind, modifier, collation, length.into(), datum, value.isnull, by_value).cast())
    }
}
