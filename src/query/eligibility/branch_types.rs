//! Does the type of a column, with its modifier (the 5 of `varchar(5)`) and its collation, show for which values the planner has planned? The parser gives
//! an expression whose branches differ no modifier, and the collation that outranks the others, or none. Where values decide on the branch, the planner
//! puts that branch in the place of the expression, with what it has: for these values, not in a plan for all of them. In the same way it drops a side of
//! UNION ALL, and leaves the columns to the other, and of NULLIF the first argument if a value is NULL. What it puts in the place of a call of a function in SQL brings modifiers that the query does not show.

use std::ffi::c_void;

use pgrx::pg_sys::{self, NodeTag};

use crate::pg::tree::{Tree, child, children, match_node};

/// What belongs to a type beside its OID.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Refinement {
    /// -1 stands for none.
    pub(super) modifier: i32,
    /// InvalidOid for none.
    pub(super) collation: pg_sys::Oid,
}

impl Refinement {
    /// That of an expression.
    pub(super) fn of(expression: Tree<'_, pg_sys::Node>) -> Self {
        // SAFETY: a valid expression.
        let (modifier, collation) =
            unsafe { (pg_sys::exprTypmod(expression.as_ptr()), pg_sys::exprCollation(expression.as_ptr())) };
        Self { modifier, collation }
    }
}

/// The types met where there are branches.
#[derive(Clone, Copy, Default)]
pub(super) struct BranchTypes {
    /// A branch has another modifier or collation than the whole, or may have when it is simplified.
    pub(super) differ: bool,
    /// Something without a modifier has branches without any, whose type may have one.
    pub(super) open: bool,
}

/// A branch of something.
pub(super) struct Branch {
    refinement: Refinement,
    /// Simplifying it leaves its refinement as it is, unless it calls a function in SQL.
    is_plain: bool,
}

impl Branch {
    /// An expression of this query.
    pub(super) fn of(expression: Tree<'_, pg_sys::Node>, query: Option<Tree<'_, pg_sys::Query>>) -> Self {
        let is_plain = match expression.tag() {
            NodeTag::T_Const
            | NodeTag::T_Param
            | NodeTag::T_FuncExpr
            | NodeTag::T_OpExpr
            | NodeTag::T_Aggref
            | NodeTag::T_WindowFunc
            | NodeTag::T_RelabelType
            | NodeTag::T_CoerceViaIO
            | NodeTag::T_ArrayCoerceExpr
            | NodeTag::T_CoerceToDomain
            | NodeTag::T_SQLValueFunction => true,
            _ => expression.as_a().zip(query).is_some_and(|(var, query)| is_of_table(&var, query)),
        };
        Self { refinement: Refinement::of(expression), is_plain }
    }

    /// What has been looked at as a whole.
    pub(super) fn seen(refinement: Refinement) -> Self {
        Self { refinement, is_plain: true }
    }
}

impl BranchTypes {
    /// Notes a branch of something of this type.
    pub(super) fn note(&mut self, of_type: pg_sys::Oid, whole: Refinement, branch: &Branch) {
        // SAFETY: reads a catalog about a type of the tree.
        let (has_modifiers, has_collations) =
            unsafe { (pg_sys::get_typmodin(of_type) != pg_sys::InvalidOid, pg_sys::type_is_collatable(of_type)) };
        self.differ |= branch.refinement != whole || (!branch.is_plain && (has_modifiers || has_collations));
        self.open |= whole.modifier == -1 && has_modifiers;
    }

    /// Notes an expression of the innermost of these queries, if the planner may leave one branch of it by the values of parameters.
    pub(super) fn note_branches(&mut self, node: Tree<'_, pg_sys::Node>, around: &[*mut pg_sys::Query]) {
        let has_branches = matches!(node.tag(), NodeTag::T_CaseExpr | NodeTag::T_CoalesceExpr | NodeTag::T_NullIfExpr);
        if !has_branches || !may_contain_parameter(node, around) {
            return;
        }
        // SAFETY: the queries around a node that is walked are valid.
        let query = around.last().and_then(|query| unsafe { Tree::enter(*query) });
        let whole = Refinement::of(node);
        let mut note = |of_type, branch| self.note(of_type, whole, &Branch::of(branch, query));
        match_node! { node;
            CaseExpr(case) => {
                let results = children!(case.args as CaseWhen).filter_map(|when| child!(when.result));
                results.chain(child!(case.defresult)).for_each(|result| note(case.casetype, result.as_node()));
            },
            CoalesceExpr(coalesce) => {
                children!(coalesce.args as Node).for_each(|argument| note(coalesce.coalescetype, argument));
            },
            // Of a comparison with NULL its first argument is left.
            OpExpr | T_NullIfExpr (comparison) => {
                children!(comparison.args as Node).take(1).for_each(|first| note(comparison.opresulttype, first));
            },
            _ => {}
        }
    }
}

/// Is there a parameter in an expression, or something for which the planner may put one in its place: a column that is none of a table?
fn may_contain_parameter(node: Tree<'_, pg_sys::Node>, around: &[*mut pg_sys::Query]) -> bool {
    #[pgrx::pg_guard]
    unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, query: *mut c_void) -> bool {
        // SAFETY: the node is null or part of the tree that is walked; the query is null or the one around it.
        unsafe {
            let Some(node) = Tree::enter(node) else { return false };
            match node.tag() {
                NodeTag::T_Param | NodeTag::T_SubLink | NodeTag::T_Query => true,
                NodeTag::T_Var => {
                    let var = &*node.as_ptr().cast::<pg_sys::Var>();
                    !Tree::enter(query.cast()).is_some_and(|query| is_of_table(var, query))
                }
                _ => pg_sys::expression_tree_walker(node.as_ptr(), Some(visit), query),
            }
        }
    }
    let query = around.last().copied().unwrap_or(std::ptr::null_mut());
    // SAFETY: a valid expression, and the query that it is part of.
    unsafe { visit(node.as_ptr(), query.cast()) }
}

/// Is the column one of a table of this query?
fn is_of_table(var: &pg_sys::Var, query: Tree<'_, pg_sys::Query>) -> bool {
    let entry = children!(query.rtable as RangeTblEntry).nth((var.varno as usize).wrapping_sub(1));
    var.varlevelsup == 0 && entry.is_some_and(|entry| entry.rtekind == pg_sys::RTEKind::RTE_RELATION)
}
