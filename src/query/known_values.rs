//! Values that a statement compares columns with, known before it runs: constants, parameters, and what is made of
//! these, of settings and of the role alone. All that such an expression reads is in the key of the answer, and stays
//! as it is while the answer is computed (R6). Its functions hold nothing but memory, so that what they raise is no
//! more than a value that is not known. Reads a finished plan; keeps nothing.

use pgrx::pg_sys::{self, NodeTag, SQLValueFunctionOp};

use super::identity::CURRENT_SETTING;
use crate::error::is_about_a_value;
use crate::pg::computing::{Unshown, compute, prepare};
use crate::pg::error_passing::{keeping, unless};
use crate::pg::given_values::given;
use crate::pg::server;
use crate::pg::tree::{Tree, child, match_node};

/// Casts between smallint, integer and bigint, and of a name to text.
const CASTS: [u32; 7] = [313, 314, 406, 480, 481, 714, 754];
/// The equality of texts.
const TEXT_EQ: u32 = 67;
/// How deep such an expression may be.
const DEEPEST: usize = 16;

/// The type and the value of a constant, of a parameter of the statement, or of an expression of settings, that is not
/// NULL. It lies in the current memory context, or lives as long as the plan and its parameters.
pub fn value_of<'t>(
    node: Tree<'t, pg_sys::Node>,
    params: Option<Tree<'t, pg_sys::ParamListInfoData>>,
) -> Option<(pg_sys::Oid, pg_sys::Datum)> {
    match_node! { node.without_relabelling();
        Const(constant) => (!constant.constisnull).then_some((constant.consttype, constant.constvalue)),
        Param(param) => {
            let given = given(&param, params).filter(|given| !given.isnull)?;
            Some((given.ptype, given.value))
        },
        _ => computed(node, params),
    }
}

/// The same of an expression that has to be computed for that.
fn computed(
    node: Tree<'_, pg_sys::Node>,
    params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
) -> Option<(pg_sys::Oid, pg_sys::Datum)> {
    if !is_known(node, params, 0) {
        return None;
    }
    let given = params.map_or(std::ptr::null_mut(), Tree::as_ptr);
    let _unshown = Unshown::new();
    // SAFETY: an expression of a finished plan, without columns and sub-queries; parameters that are there.
    unsafe {
        let (value, is_null) = unless(is_about_a_value, || keeping(|| compute(prepare(node.as_ptr()), given)))?;
        (!is_null).then(|| (server::exprType(node.as_ptr()), value))
    }
}

/// Returns true if an expression is made of what is known.
fn is_known(node: Tree<'_, pg_sys::Node>, params: Option<Tree<'_, pg_sys::ParamListInfoData>>, depth: usize) -> bool {
    let is_one =
        |one: Option<Tree<'_, pg_sys::Expr>>| one.is_some_and(|one| is_known(one.as_node(), params, depth + 1));
    let are_all = |list: Option<Tree<'_, pg_sys::List>>| {
        let mut all = list.into_iter().flat_map(Tree::items);
        all.all(|one| one.is_some_and(|one| is_known(one, params, depth + 1)))
    };
    depth < DEEPEST
        && match_node! { node;
            Const(_constant) => true,
            Param(param) => given(&param, params).is_some(),
            RelabelType(relabelled) => is_one(child!(relabelled.arg)),
            CoerceViaIO(coercion) => {
                let argument = child!(coercion.arg);
                // SAFETY: an expression of the plan.
                let is_text = |one: Tree<'_, pg_sys::Expr>| unsafe { server::exprType(one.as_node().as_ptr()) } == pg_sys::TEXTOID;
                let results = [pg_sys::INT2OID, pg_sys::INT4OID, pg_sys::INT8OID, pg_sys::UUIDOID, pg_sys::TEXTOID, pg_sys::VARCHAROID];
                results.contains(&coercion.resulttype) && argument.is_some_and(is_text) && is_one(argument)
            },
            FuncExpr(call) => {
                let function = call.funcid.to_u32();
                (CURRENT_SETTING.contains(&function) || CASTS.contains(&function)) && are_all(child!(call.args))
            },
            OpExpr | T_NullIfExpr (call) => {
                let is_of_texts = node.tag() == NodeTag::T_NullIfExpr && call.opfuncid.to_u32() == TEXT_EQ;
                is_of_texts && are_all(child!(call.args))
            },
            CoalesceExpr(call) => are_all(child!(call.args)),
            SQLValueFunction(call) => matches!(
                call.op,
                SQLValueFunctionOp::SVFOP_CURRENT_ROLE
                    | SQLValueFunctionOp::SVFOP_CURRENT_USER
                    | SQLValueFunctionOp::SVFOP_USER
                    | SQLValueFunctionOp::SVFOP_SESSION_USER
            ),
            _ => false,
        }
}
