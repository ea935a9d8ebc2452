//! Constants that conditions compare columns with: computed of other constants and of the time.
//!
//! Those that depend on the time zone are computed by the one that is set: what they give says for this moment alone
//! which leaves a statement reads.

use pgrx::pg_sys;

use crate::error::is_about_a_value;
use crate::pg::computing::{Unshown, compute, prepare};
use crate::pg::error_passing::{keeping, unless};
use crate::pg::object_ids::{DATETIME_FAMILY_OID, INTEGER_FAMILY_OID};
use crate::pg::server;
use crate::pg::tree::{Tree, child, match_node};
use crate::pg::tree_making::{call, copy, replaced};
use crate::query::clock::constant_now;
use crate::query::function_table::has;
use crate::query::function_table::properties::CONSTANT_ARITHMETIC;
use crate::query::parameters::as_constant;

/// Casts to timestamptz.
const DATE_TO_TIMESTAMPTZ: u32 = 1174;
const TIMESTAMP_TO_TIMESTAMPTZ: u32 = 2028;

/// Which values are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// Those of the present moment: of all parameters, of the clock and of the settings.
    Present,
    /// Those that hold as long as the query may be executed: the constants in it.
    Lasting,
}

/// What a column is compared with: its value, or null if that is known when the query is executed. `None` if it is no
/// constant, or NULL.
pub(super) fn operand_of(expression: Tree<'_, pg_sys::Node>, values: Values) -> Option<*mut pg_sys::Const> {
    // SAFETY: an expression of a valid query.
    let is_known =
        || unsafe { !kept!(pg_sys::contain_mutable_functions(expression.as_ptr())) } && is_computed(expression, false);
    match values {
        Values::Present => constant_of(expression),
        Values::Lasting if is_known() => constant_of(expression),
        Values::Lasting => is_computed(expression, true).then_some(std::ptr::null_mut()),
    }
}

/// Returns true if an expression is made of constants, by functions on the list, and, if they are known `later`, of
/// parameters and of the time.
fn is_computed(expression: Tree<'_, pg_sys::Node>, later: bool) -> bool {
    let are_computed = |list: Option<Tree<'_, pg_sys::List>>| {
        list.into_iter().flat_map(Tree::items).all(|one| one.is_some_and(|one| is_computed(one, later)))
    };
    let is_listed = |function, arguments| has(function, CONSTANT_ARITHMETIC) && are_computed(arguments);
    let is_made_so = match_node! { expression;
        Const(_constant) => true,
        Param(param) => later && param.paramkind == pg_sys::ParamKind::PARAM_EXTERN,
        RelabelType(relabelled) => child!(relabelled.arg).is_some_and(|below| is_computed(below.as_node(), later)),
        ArrayExpr(array) => are_computed(child!(array.elements)),
        FuncExpr(call) => is_listed(call.funcid, child!(call.args)),
        // SAFETY: reads a catalog about an operator of the query.
        OpExpr(call) => is_listed(unsafe { kept!(pg_sys::get_opcode(call.opno)) }, child!(call.args)),
        _ => false,
    };
    is_made_so || (later && constant_now(expression).is_some())
}

/// The constant that an expression is now; `None` if it is none, is NULL, or cannot be computed.
fn constant_of(expression: Tree<'_, pg_sys::Node>) -> Option<*mut pg_sys::Const> {
    if let Some(constant) = expression.as_a::<pg_sys::Const>() {
        return (!constant.constisnull).then_some(constant.as_ptr());
    }
    if !is_computed(expression, false) {
        return constant_now(expression);
    }
    // SAFETY: an expression of a valid query, without columns, of which a copy is made ready; the functions on the list
    // hold nothing but memory.
    unsafe {
        let own: *mut pg_sys::Node = copy(expression.as_ptr());
        kept!(pg_sys::fix_opfuncids(own));
        let _unshown = Unshown::new();
        let (value, is_null) = unless(is_about_a_value, || keeping(|| compute(prepare(own), std::ptr::null_mut())))?;
        let (type_oid, collation) = (server::exprType(own), server::exprCollation(own));
        let (mut length, mut by_value) = (0i16, false);
        kept!(pg_sys::get_typlenbyval(type_oid, &raw mut length, &raw mut by_value));
        (!is_null).then(|| kept!(pg_sys::makeConst(type_oid, -1, collation, length.into(), value, false, by_value)))
    }
}

/// Conditions with the present values of what is computed of constants in them: a list, as the planner's pruning can use
/// it. `params` are the values of parameters.
///
/// # Safety
/// A list of conditions that the planner has asked of a table of a valid query; null for none.
pub unsafe fn present(
    conditions: *mut pg_sys::List,
    params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
) -> *mut pg_sys::List {
    // SAFETY: the caller's promise. Copies are changed.
    unsafe {
        let known = replaced(conditions.cast(), &mut |node, _depth| as_constant(node.as_a::<pg_sys::Param>()?, params));
        replaced(known, &mut |node, _depth| {
            let is_operand = node.tag() != pg_sys::NodeTag::T_Const && is_computed(node, true);
            if is_operand { constant_of(node).map(|constant| constant.cast()) } else { None }
        })
        .cast()
    }
}

/// A comparison of a column with a constant as the planner's pruning can use it: its operator and constant. Null for a
/// value that is not known stays so.
///
/// The server compares a timestamptz with a date or a timestamp as one that begins there in the present time zone,
/// which the planner's pruning does not do. A value up to which whole numbers are asked for is the one before the next.
///
/// # Safety
/// A comparison of a valid query, with the column on the left, and a constant that is not NULL.
pub(super) unsafe fn comparable(
    column: pg_sys::Oid,
    operator: pg_sys::Oid,
    value: *mut pg_sys::Const,
    values: Values,
) -> (pg_sys::Oid, *mut pg_sys::Const) {
    if value.is_null() {
        return (operator, value);
    }
    // SAFETY: the caller's promise.
    unsafe {
        let now = if values == Values::Present { as_timestamptz(column, operator, value) } else { None };
        let (operator, value) = now.unwrap_or((operator, value));
        before_next(column, operator, value).unwrap_or((operator, value))
    }
}

/// # Safety
/// As `comparable`.
unsafe fn as_timestamptz(
    column: pg_sys::Oid,
    operator: pg_sys::Oid,
    value: *mut pg_sys::Const,
) -> Option<(pg_sys::Oid, *mut pg_sys::Const)> {
    // SAFETY: reads catalogs about an operator of the query; the caller's promise.
    unsafe {
        let cast = match (*value).consttype {
            pg_sys::DATEOID if column == pg_sys::TIMESTAMPTZOID => DATE_TO_TIMESTAMPTZ,
            pg_sys::TIMESTAMPOID if column == pg_sys::TIMESTAMPTZOID => TIMESTAMP_TO_TIMESTAMPTZ,
            _ => return None,
        };
        let operator = same_with(operator, DATETIME_FAMILY_OID, column, |strategy| strategy)?;
        let converted = Tree::enter(call(cast, column, [value.cast()])).and_then(constant_of)?;
        Some((operator, converted))
    }
}

/// `<= 5` as `< 6`, and `> 5` as `>= 6`: partitions begin with a value, and end before one.
///
/// # Safety
/// As `comparable`.
unsafe fn before_next(
    column: pg_sys::Oid,
    operator: pg_sys::Oid,
    value: *mut pg_sys::Const,
) -> Option<(pg_sys::Oid, *mut pg_sys::Const)> {
    // SAFETY: the caller's promise; a copy is changed.
    unsafe {
        let datum = (*value).constvalue.value();
        let (family, next) = match (*value).consttype {
            other if other != column => return None,
            pg_sys::INT2OID => (INTEGER_FAMILY_OID, i64::from((datum as i16).checked_add(1)?)),
            pg_sys::INT4OID => (INTEGER_FAMILY_OID, i64::from((datum as i32).checked_add(1)?)),
            pg_sys::INT8OID => (INTEGER_FAMILY_OID, (datum as i64).checked_add(1)?),
            pg_sys::DATEOID if datum as i32 != i32::MIN => {
                (DATETIME_FAMILY_OID, i64::from((datum as i32).checked_add(1)?))
            }
            pg_sys::TIMESTAMPOID | pg_sys::TIMESTAMPTZOID if datum as i64 != i64::MIN => {
                (DATETIME_FAMILY_OID, (datum as i64).checked_add(1)?)
            }
            _ => return None,
        };
        let operator = same_with(operator, family, column, |strategy| match strategy as u32 {
            pg_sys::BTLessEqualStrategyNumber => pg_sys::BTLessStrategyNumber as i32,
            pg_sys::BTGreaterStrategyNumber => pg_sys::BTGreaterEqualStrategyNumber as i32,
            _ => 0,
        })?;
        let following = copy(value);
        (*following).constvalue = pg_sys::Datum::from(next);
        Some((operator, following))
    }
}

/// The operator of a family that compares values of a type as the strategy says that is found for that of another.
fn same_with(
    operator: pg_sys::Oid,
    family: u32,
    type_oid: pg_sys::Oid,
    strategy: impl FnOnce(i32) -> i32,
) -> Option<pg_sys::Oid> {
    // SAFETY: reads catalogs about an operator of a query; 0 and InvalidOid for what is not there.
    unsafe {
        let own = kept!(pg_sys::get_op_opfamily_strategy(operator, family.into()));
        let wanted = if own == 0 { 0 } else { strategy(own) };
        let found = kept!(pg_sys::get_opfamily_member(family.into(), type_oid, type_oid, wanted as i16));
        (wanted != 0 && found != pg_sys::InvalidOid).then_some(found)
    }
}
