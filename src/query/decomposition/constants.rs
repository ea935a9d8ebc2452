//! Constants that conditions compare columns with: computed of other constants and of the time.
//!
//! Those that depend on the time zone are computed by the one that is set: what they give says for this moment alone
//! which leaves a statement reads.

use pgrx::pg_sys;

use crate::error::is_about_a_value;
use crate::pg::computing::{Unshown, compute, prepare};
use crate::pg::error_passing::{keeping, unless};
use crate::pg::object_ids::DATETIME_FAMILY_OID;
use crate::pg::server;
use crate::pg::tree::{Tree, child, match_node};
use crate::pg::tree_making::call;
use crate::pg::type_catalog::form_of;
use crate::query::clock;

/// Casts to timestamptz.
const DATE_TO_TIMESTAMPTZ: u32 = 1174;
const TIMESTAMP_TO_TIMESTAMPTZ: u32 = 2028;

/// Functions that add to a date or a time, subtract from it, or cast it; and casts between smallint, integer and
/// bigint.
const ARITHMETIC: [u32; 20] =
    [313, 314, 480, 481, 714, 754, 1141, 1142, 1174, 1178, 1189, 1190, 2024, 2027, 2028, 2029, 2032, 2033, 2071, 2072];

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
    // The server's walk knows whole expressions alone, and not each node of one.
    // SAFETY: an expression of a valid query.
    let is_known =
        || is_computed(expression, false) && unsafe { !kept!(pg_sys::contain_mutable_functions(expression.as_ptr())) };
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
    let is_listed =
        |function: pg_sys::Oid, arguments| ARITHMETIC.contains(&function.to_u32()) && are_computed(arguments);
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
    is_made_so || (later && is_clock(expression) && constant_of(expression).is_some())
}

/// Returns true if an expression asks for the time, and nobody else can tell more of its value than the clock.
fn is_clock(expression: Tree<'_, pg_sys::Node>) -> bool {
    clock::closed(expression).is_some_and(|found| found.asks && !found.asks_for_message && !found.has_params)
}

/// The constant that an expression is now; `None` if it is none, is NULL, or cannot be computed.
fn constant_of(expression: Tree<'_, pg_sys::Node>) -> Option<*mut pg_sys::Const> {
    if let Some(constant) = expression.as_a::<pg_sys::Const>() {
        return (!constant.constisnull).then_some(constant.as_ptr());
    }
    if !is_computed(expression, false) && !is_clock(expression) {
        return None;
    }
    // SAFETY: an expression of a valid query, without columns, of which a copy is made ready; the functions on the list
    // and those of clock expressions hold nothing but memory.
    unsafe {
        let own = clock::executable(expression.as_ptr());
        let _unshown = Unshown::new();
        let (value, is_null) = unless(is_about_a_value, || keeping(|| compute(prepare(own), std::ptr::null_mut())))?;
        let (type_oid, collation) = (server::exprType(own), server::exprCollation(own));
        let (length, by_value) = form_of(type_oid);
        let is_fit = !is_null && (by_value || !is_clock(expression));
        is_fit.then(|| kept!(pg_sys::makeConst(type_oid, -1, collation, length.into(), value, false, by_value)))
    }
}

/// A comparison of a column with a constant as the planner's pruning can use it: its operator and constant. Null for a
/// value that is not known stays so.
///
/// The server compares a timestamptz with a date or a timestamp as one that begins there in the present time zone,
/// which the planner's pruning does not do.
///
/// # Safety
/// A comparison of a valid query, with the column on the left, and a constant that is not NULL.
pub(super) unsafe fn comparable(
    column: pg_sys::Oid,
    operator: pg_sys::Oid,
    value: *mut pg_sys::Const,
    values: Values,
) -> (pg_sys::Oid, *mut pg_sys::Const) {
    let compared = || {
        // SAFETY: reads catalogs about an operator of the query; the caller's promise.
        unsafe {
            let cast = match value.as_ref()?.consttype {
                pg_sys::DATEOID => DATE_TO_TIMESTAMPTZ,
                pg_sys::TIMESTAMPOID => TIMESTAMP_TO_TIMESTAMPTZ,
                _ => return None,
            };
            let family = pg_sys::Oid::from(DATETIME_FAMILY_OID);
            let strategy = kept!(pg_sys::get_op_opfamily_strategy(operator, family)) as i16;
            let own = kept!(pg_sys::get_opfamily_member(family, column, column, strategy));
            let converted = Tree::enter(call(cast, column, [value.cast()])).and_then(constant_of)?;
            (own != pg_sys::InvalidOid).then_some((own, converted))
        }
    };
    let is_converted = column == pg_sys::TIMESTAMPTZOID && values == Values::Present;
    is_converted.then(compared).flatten().unwrap_or((operator, value))
}
