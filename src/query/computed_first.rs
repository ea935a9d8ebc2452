//! Does a plan compute all of its rows before it gives the first? Then what changes in the session afterwards does not show in the rows
//! that are read later, nor in those that are read again. So it is with a sort at the top, which keeps what it has sorted. Above it
//! there may be nodes that only pass on what they get. Keeps nothing.

use pgrx::pg_sys::{self, NodeTag};

use crate::pg::tree::{Tree, child, children, match_node};

/// Does the plan compute all rows before the first one is out? No for a node that is not known here.
pub fn computes_all_first(plan: Tree<'_, pg_sys::PlannedStmt>) -> bool {
    ends_in_sort(child!(plan.planTree))
}

fn ends_in_sort(plan: Option<Tree<'_, pg_sys::Plan>>) -> bool {
    let Some(plan) = plan.filter(|plan| plan.qual.is_null()) else { return false };
    let node = plan.as_node();
    match_node! { node;
        Limit(limit) => {
            limit.limitOption == pg_sys::LimitOption::LIMIT_OPTION_COUNT
                && [child!(limit.limitCount), child!(limit.limitOffset)].into_iter().flatten().all(is_fixed)
                && ends_in_sort(child!(limit.plan.lefttree))
        },
        SubqueryScan(scan) => only_passes_on(plan) && ends_in_sort(child!(scan.subplan)),
        _ => match node.tag() {
            NodeTag::T_Sort => true,
            NodeTag::T_Material | NodeTag::T_Unique => ends_in_sort(child!(plan.lefttree)),
            _ => false,
        },
    }
}

/// Are all columns of the node columns of the node below it, or constants?
fn only_passes_on(plan: Tree<'_, pg_sys::Plan>) -> bool {
    children!(plan.targetlist as TargetEntry)
        .all(|target| child!(target.expr).is_some_and(|expr| matches!(expr.tag(), NodeTag::T_Var | NodeTag::T_Const)))
}

/// Has an expression one value for the whole statement?
fn is_fixed(expression: Tree<'_, pg_sys::Node>) -> bool {
    expression.tag() == NodeTag::T_Const
        || expression.as_a::<pg_sys::Param>().is_some_and(|param| param.paramkind == pg_sys::ParamKind::PARAM_EXTERN)
}
