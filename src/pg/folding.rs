//! Expressions as the planner leaves them: constants computed, functions inlined, values in the place of parameters.
//! What computing raises unwinds as a panic. Makes nodes in the current memory context; keeps nothing.

use pgrx::pg_sys;

use super::tree_making::new_node;

/// An expression that was planned, and what a plan with it rests on.
#[derive(Clone, Copy)]
pub struct Planned {
    /// The expression, ready to be executed.
    pub expression: *mut pg_sys::Node,
    /// The relations that it rests on.
    pub relations: *mut pg_sys::List,
    /// The functions and types that it rests on.
    pub items: *mut pg_sys::List,
}

/// Computes what is constant in an expression, with these values of parameters, or null for none.
///
/// # Safety
/// A valid expression, and valid values.
pub unsafe fn fold(expression: *mut pg_sys::Node, params: pg_sys::ParamListInfo) -> Planned {
    let (global, root) = (new_node::<pg_sys::PlannerGlobal>(), new_node::<pg_sys::PlannerInfo>());
    // SAFETY: new nodes, which say as much as those of the server's own `expression_planner_with_deps`; the caller's
    // promise.
    unsafe {
        (*global).boundParams = params;
        (*root).glob = global;
        let expression = kept!(pg_sys::eval_const_expressions(root, expression));
        Planned { expression, relations: (*global).relationOids, items: (*global).invalItems }
    }
}

/// Plans an expression without sub-queries, with these values of parameters, or null for none.
///
/// # Safety
/// As `fold`.
pub unsafe fn plan(expression: *mut pg_sys::Node, params: pg_sys::ParamListInfo) -> Planned {
    // SAFETY: the caller's promise.
    unsafe {
        let folded = fold(expression, params);
        let (mut relations, mut items) = (std::ptr::null_mut(), std::ptr::null_mut());
        let (relations_place, items_place) = (&raw mut relations, &raw mut items);
        let folded_expression = folded.expression.cast();
        let planned = kept!(pg_sys::expression_planner_with_deps(folded_expression, relations_place, items_place));
        Planned {
            expression: planned.cast(),
            relations: kept!(pg_sys::list_concat_unique_oid(folded.relations, relations)),
            items: kept!(pg_sys::list_concat(folded.items, items)),
        }
    }
}
