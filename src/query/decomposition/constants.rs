//! Constants that conditions compare columns with: computed of other constants and of the time, and taken as values of the column's own type.
//!
//! A closed list of functions, for values that none of them can fail for: years 1 to 9999, intervals of up to a thousand years. Those that
//! depend on the time zone are computed by the one that is set: what they give says for this moment alone which leaves a
//! statement reads.

use pgrx::pg_sys;

use crate::pg::lists::nodes;
use crate::pg::object_ids::{DATETIME_FAMILY_OID, INTEGER_FAMILY_OID};
use crate::pg::server;
use crate::pg::tree::{Tree, child, match_node};
use crate::pg::tree_making::copy;
use crate::query::clock::constant_now;
use crate::query::function_table::has;
use crate::query::function_table::properties::{TIME_ARITHMETIC, WHOLE_NUMBER_CAST};

/// Casts between types of times.
const DATE_TO_TIMESTAMP: u32 = 2024;
const DATE_TO_TIMESTAMPTZ: u32 = 1174;
const TIMESTAMP_TO_DATE: u32 = 2029;
const TIMESTAMP_TO_TIMESTAMPTZ: u32 = 2028;

/// The years 1 to 9999, in days and in microseconds from the beginning of 2000.
const DAYS: std::ops::RangeInclusive<i64> = -730_119..=2_921_939;
const MICROSECONDS: std::ops::RangeInclusive<i64> = -63_082_281_600_000_000..=252_455_615_999_999_999;
/// A thousand years.
const MOST_MONTHS: u32 = 12_000;
const MOST_DAYS: u32 = 365_000;
const MOST_MICROSECONDS: u64 = 365_000 * 86_400_000_000;

/// Types of whole numbers and of times, those with more values last.
const WIDER: [[pg_sys::Oid; 3]; 2] = [
    [pg_sys::INT2OID, pg_sys::INT4OID, pg_sys::INT8OID],
    [pg_sys::DATEOID, pg_sys::TIMESTAMPOID, pg_sys::TIMESTAMPTZOID],
];

/// btree families of integers and of times: their operators compare values of different types.
const FAMILIES: [u32; 2] = [INTEGER_FAMILY_OID, DATETIME_FAMILY_OID];

/// Which values are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// Those of the present moment: of all parameters, of the clock and of the settings.
    Present,
    /// Those that hold as long as the query may be executed: the constants in it.
    Lasting,
}

/// What a column of this type is compared with: its value, or null if that is known when the query is executed. `None` if it
/// is no constant.
pub(super) fn operand_of(
    expression: Tree<'_, pg_sys::Node>,
    column: pg_sys::Oid,
    values: Values,
) -> Option<*mut pg_sys::Const> {
    if values == Values::Present {
        return constant_of(expression);
    }
    // SAFETY: an expression of a valid query.
    let is_comparable = || is_always_in(unsafe { server::exprType(expression.as_ptr()) }, column);
    let later = || (is_constant_later(expression) && is_comparable()).then_some(std::ptr::null_mut());
    // SAFETY: a constant that was found.
    literal(expression).filter(|constant| unsafe { is_fixed_in(column, &**constant) }).or_else(later)
}

/// Returns true if it does not depend on the time zone which value of a column's type a constant is.
fn is_fixed_in(column: pg_sys::Oid, constant: &pg_sys::Const) -> bool {
    column != pg_sys::TIMESTAMPTZOID || constant.consttype == column
}

/// Returns true if values of a type can be compared as values of a column's type, whichever they are, as far as they are
/// ordinary.
fn is_always_in(type_oid: pg_sys::Oid, column: pg_sys::Oid) -> bool {
    type_oid == column
        || WIDER.iter().any(|order| {
            let place = |oid: pg_sys::Oid| order.iter().position(|other| *other == oid);
            place(type_oid).zip(place(column)).is_some_and(|(own, wanted)| own < wanted)
        })
}

/// The constant that an expression is under all settings.
fn literal(expression: Tree<'_, pg_sys::Node>) -> Option<*mut pg_sys::Const> {
    // SAFETY: an expression of a valid query.
    let is_fixed = unsafe { !kept!(pg_sys::contain_mutable_functions(expression.as_ptr())) };
    constant_of(expression).filter(|_| is_fixed)
}

/// Returns true if `constant_of` may find a constant once all values are known.
fn is_constant_later(expression: Tree<'_, pg_sys::Node>) -> bool {
    constant_of(expression).is_some() || is_computed_of_parameters(expression) == Some(true)
}

/// Returns true if an expression is computed of parameters, by functions on the list, and false if it is a constant. `None` if
/// it is something else.
fn is_computed_of_parameters(expression: Tree<'_, pg_sys::Node>) -> Option<bool> {
    let of_arguments = |function: pg_sys::Oid, arguments: *mut pg_sys::List| {
        if !is_listed(function) {
            return None;
        }
        // SAFETY: the arguments of a valid call.
        unsafe {
            nodes::<pg_sys::Node>(arguments)
                .try_fold(false, |any, argument| Some(is_computed_of_parameters(Tree::enter(argument)?)? | any))
        }
    };
    let known = match_node! { expression;
        Param(param) => (param.paramkind == pg_sys::ParamKind::PARAM_EXTERN).then_some(true),
        RelabelType(relabelled) => is_computed_of_parameters(child!(relabelled.arg)?.as_node()),
        FuncExpr(call) => of_arguments(call.funcid, call.args),
        // SAFETY: reads a catalog about an operator of the query.
        OpExpr(call) => of_arguments(unsafe { kept!(pg_sys::get_opcode(call.opno)) }, call.args),
        _ => None,
    };
    known.filter(|is_computed| *is_computed).or_else(|| constant_of(expression).map(|_| false))
}

/// Returns true if `computed` knows the function.
fn is_listed(function: pg_sys::Oid) -> bool {
    has(function, WHOLE_NUMBER_CAST) || has(function, TIME_ARITHMETIC)
}

/// The constant that an expression is, or is computed of; `None` if it has a value that is null, or is none of these.
fn constant_of(expression: Tree<'_, pg_sys::Node>) -> Option<*mut pg_sys::Const> {
    match_node! { expression;
        Const(constant) => (!constant.constisnull).then_some(constant.as_ptr()),
        RelabelType(relabelled) => child!(relabelled.arg).and_then(|below| {
            // SAFETY: a copy, which is changed before anybody else knows of it, as the planner changes a constant that
            // it takes for another type.
            unsafe {
                let constant = copy(constant_of(below.as_node())?);
                (*constant).consttype = relabelled.resulttype;
                (*constant).consttypmod = relabelled.resulttypmod;
                (*constant).constcollid = relabelled.resultcollid;
                Some(constant)
            }
        }),
        FuncExpr(call) => computed(call.funcid, call.funcresulttype, call.args),
        // SAFETY: reads a catalog about an operator of the query.
        OpExpr(call) => computed(unsafe { kept!(pg_sys::get_opcode(call.opno)) }, call.opresulttype, call.args),
        _ => None,
    }
    .or_else(|| constant_now(expression))
}

/// What a function on the list gives for constants.
fn computed(function: pg_sys::Oid, result: pg_sys::Oid, arguments: *mut pg_sys::List) -> Option<*mut pg_sys::Const> {
    if has(function, WHOLE_NUMBER_CAST) {
        // SAFETY: the argument of a valid call.
        return unsafe {
            let value = constant_of(Tree::enter(nodes::<pg_sys::Node>(arguments).next()?)?)?;
            Some(constant(result, converted(result, &*value)?))
        };
    }
    if !has(function, TIME_ARITHMETIC) {
        return None;
    }
    // SAFETY: the arguments of a valid call, of which there are one or two, as its function takes them.
    unsafe {
        let mut values = Vec::new();
        for argument in nodes::<pg_sys::Node>(arguments) {
            let value = constant_of(Tree::enter(argument)?)?;
            if !is_ordinary(&*value) {
                return None;
            }
            values.push((*value).constvalue);
        }
        let value = match *values.as_slice() {
            [one] => called(function.to_u32(), one),
            [one, other] => kept!(pg_sys::OidFunctionCall2Coll(function, pg_sys::InvalidOid, one, other)),
            _ => return None,
        };
        Some(constant(result, value))
    }
}

/// Is this a value that no function on the list fails for?
///
/// # Safety
/// A constant that is not null.
unsafe fn is_ordinary(constant: &pg_sys::Const) -> bool {
    let value = constant.constvalue;
    match constant.consttype {
        pg_sys::DATEOID => DAYS.contains(&i64::from(value.value() as i32)),
        pg_sys::TIMESTAMPOID | pg_sys::TIMESTAMPTZOID => MICROSECONDS.contains(&(value.value() as i64)),
        pg_sys::INT4OID => (value.value() as i32).unsigned_abs() <= MOST_DAYS,
        pg_sys::INTERVALOID => {
            // SAFETY: a value of this type.
            let interval = unsafe { *value.cast_mut_ptr::<pg_sys::Interval>() };
            interval.month.unsigned_abs() <= MOST_MONTHS
                && interval.day.unsigned_abs() <= MOST_DAYS
                && interval.time.unsigned_abs() <= MOST_MICROSECONDS
        }
        _ => false,
    }
}

/// What a cast gives.
///
/// # Safety
/// A cast on the list, and an ordinary value of its type.
unsafe fn called(function: u32, value: pg_sys::Datum) -> pg_sys::Datum {
    // SAFETY: the caller's promise.
    unsafe { kept!(pg_sys::OidFunctionCall1Coll(function.into(), pg_sys::InvalidOid, value)) }
}

/// A constant of a type whose values are passed by value.
fn constant(type_oid: pg_sys::Oid, value: pg_sys::Datum) -> *mut pg_sys::Const {
    // SAFETY: a new node; the types of this module are of this kind.
    unsafe {
        let (mut length, mut by_value) = (0i16, false);
        kept!(pg_sys::get_typlenbyval(type_oid, &raw mut length, &raw mut by_value));
        kept!(pg_sys::makeConst(type_oid, -1, pg_sys::InvalidOid, length.into(), value, false, by_value))
    }
}

/// A comparison of a column with a constant of another type, as one with a constant of the column's type that is true for the same values:
/// its operator and constant. `None` if there is none.
///
/// # Safety
/// A comparison of a valid query, with the column on the left, and a constant that is not null.
pub(super) unsafe fn of_column_type(
    column: pg_sys::Oid,
    operator: pg_sys::Oid,
    value: *mut pg_sys::Const,
) -> Option<(pg_sys::Oid, *mut pg_sys::Const)> {
    // SAFETY: reads catalogs about an operator of the query; the caller's promise.
    unsafe {
        let (mut left, mut right) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
        kept!(pg_sys::op_input_types(operator, &raw mut left, &raw mut right));
        if left != column || right != (*value).consttype {
            return None;
        }
        let strategy = |family: &u32| kept!(pg_sys::get_op_opfamily_strategy(operator, (*family).into()));
        let family = FAMILIES.iter().find(|family| strategy(family) != 0)?;
        let own = kept!(pg_sys::get_opfamily_member((*family).into(), column, column, strategy(family) as i16));
        let converted = converted(column, &*value)?;
        (own != pg_sys::InvalidOid).then(|| (own, constant(column, converted)))
    }
}

/// The same value in another type.
///
/// A timestamp is not compared with a timestamptz, nor a date with one, in the order of the constant: the first are not in the order of
/// their moments where a clock is put back, and two dates may begin at one moment where a day is left out.
///
/// # Safety
/// A constant that is not null.
unsafe fn converted(to: pg_sys::Oid, value: &pg_sys::Const) -> Option<pg_sys::Datum> {
    // SAFETY: the casts are those of the types.
    unsafe {
        let datum = value.constvalue;
        if let Some(number) = whole_number(value) {
            return match to {
                pg_sys::INT2OID => i16::try_from(number).ok().map(pg_sys::Datum::from),
                pg_sys::INT4OID => i32::try_from(number).ok().map(pg_sys::Datum::from),
                pg_sys::INT8OID => Some(pg_sys::Datum::from(number)),
                _ => None,
            };
        }
        if !is_ordinary(value) {
            return None;
        }
        match (value.consttype, to) {
            (pg_sys::DATEOID, pg_sys::TIMESTAMPOID) => Some(called(DATE_TO_TIMESTAMP, datum)),
            (pg_sys::DATEOID, pg_sys::TIMESTAMPTZOID) => Some(called(DATE_TO_TIMESTAMPTZ, datum)),
            (pg_sys::TIMESTAMPOID, pg_sys::TIMESTAMPTZOID) => Some(called(TIMESTAMP_TO_TIMESTAMPTZ, datum)),
            (pg_sys::TIMESTAMPOID, pg_sys::DATEOID) => {
                let date = called(TIMESTAMP_TO_DATE, datum);
                let is_midnight = called(DATE_TO_TIMESTAMP, date).value() == datum.value();
                is_midnight.then_some(date)
            }
            _ => None,
        }
    }
}

/// The number that a constant is, if its type is one of whole numbers.
fn whole_number(value: &pg_sys::Const) -> Option<i64> {
    let datum = value.constvalue.value();
    match value.consttype {
        pg_sys::INT2OID => Some(i64::from(datum as i16)),
        pg_sys::INT4OID => Some(i64::from(datum as i32)),
        pg_sys::INT8OID => Some(datum as i64),
        _ => None,
    }
}
