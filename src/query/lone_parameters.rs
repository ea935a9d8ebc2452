//! Can planning for the values of parameters raise what planning for all values does not? The planner computes expressions of values alone, and
//! drops what their results decide. It finds nothing to compute if each parameter stands beside a column. Reads trees; keeps nothing.

use std::ffi::c_void;

use pgrx::pg_sys;

use crate::pg::compat::tree::walkers;
use crate::pg::error_passing::{direct, guarded};
use crate::pg::lists::nodes;
use crate::pg::server;
use crate::pg::tree::{Tree, match_node};

/// Does each parameter of a query stand beside an expression with a column, as an argument of an operator, and has a value that is not NULL?
pub fn stand_beside_columns(
    query: Tree<'_, pg_sys::Query>,
    params: Option<Tree<'_, pg_sys::ParamListInfoData>>,
) -> bool {
    let Some(params) = params else { return true };
    // SAFETY: parameters have as many values as they say; those that are fetched when they are asked for have none here.
    let known = unsafe {
        params.paramFetch.is_none()
            && params.params.as_slice(params.numParams as usize).iter().all(|value| !value.isnull)
    };
    // SAFETY: a valid query; no frame of the walk has a destructor pending.
    known && !unsafe { guarded!(walkers::query_tree_walker(query.as_ptr(), Some(visit), std::ptr::null_mut(), 0)) }
}

/// Is there a parameter that stands elsewhere, here or below?
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    // SAFETY: the walker gives null or nodes of the tree.
    let Some(node) = (unsafe { Tree::enter(node) }) else { return false };
    match_node! { node;
        Param(_param) => true,
        OpExpr | T_DistinctExpr | T_NullIfExpr (operator) => {
            // SAFETY: a valid list of expressions.
            let has_column = unsafe { direct!(server::contain_vars_of_level(operator.args.cast(), 0)) };
            // SAFETY: as above; the arguments are walked one by one.
            unsafe {
                nodes::<pg_sys::Node>(operator.args).any(|argument| {
                    let is_parameter = (*argument).type_ == pg_sys::NodeTag::T_Param;
                    !(is_parameter && has_column) && visit(argument, context)
                })
            }
        },
        Query(query) => {
            // SAFETY: a valid query.
            unsafe { direct!(walkers::query_tree_walker(query.as_ptr(), Some(visit), context, 0)) }
        },
        _ => {
            // SAFETY: a valid node that the server's walker knows.
            unsafe { direct!(walkers::expression_tree_walker(node.as_ptr(), Some(visit), context)) }
        },
    }
}
