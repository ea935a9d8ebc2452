//! Does the type of a column, with its modifier (the 5 of `varchar(5)`) and its collation, show for which values the planner has planned? The parser gives
//! an expression whose branches differ no modifier, and the collation that outranks the others, or none. Where values decide on the branch, the planner
//! puts that branch in the place of the expression, with what it has: for these values, not in a plan for all of them. In the same way it drops a side of
//! UNION ALL, and leaves the columns to the other. What it puts in the place of a call of a function in SQL brings modifiers that the query does not show.

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
    /// A branch has another modifier, or another collation, than the whole.
    pub(super) mixed: bool,
    /// Something without a modifier has branches without any, whose type may have one.
    pub(super) open: bool,
}

impl BranchTypes {
    /// Notes a branch of something of this type.
    pub(super) fn note(&mut self, of_type: pg_sys::Oid, whole: Refinement, branch: Refinement) {
        self.mixed |= branch != whole;
        // SAFETY: reads a catalog about a type of the tree.
        self.open |= whole.modifier == -1 && unsafe { pg_sys::get_typmodin(of_type) } != pg_sys::InvalidOid;
    }

    /// Notes an expression of the innermost of these queries, if the planner may leave one branch of it by the values of parameters.
    pub(super) fn note_branches(&mut self, node: Tree<'_, pg_sys::Node>, around: &[*mut pg_sys::Query]) {
        let has_branches = matches!(node.tag(), NodeTag::T_CaseExpr | NodeTag::T_CoalesceExpr);
        if has_branches && may_contain_parameter(node, around) {
            self.note_each_branch(node);
        }
    }

    fn note_each_branch(&mut self, node: Tree<'_, pg_sys::Node>) {
        match_node! { node;
            CaseExpr(case) => {
                for when in children!(case.args as CaseWhen) {
                    self.note_branch(case.casetype, node, child!(when.result));
                }
                self.note_branch(case.casetype, node, child!(case.defresult));
            },
            CoalesceExpr(coalesce) => {
                for argument in children!(coalesce.args as Node) {
                    self.note(coalesce.coalescetype, Refinement::of(node), Refinement::of(argument));
                }
            },
            _ => {}
        }
    }

    fn note_branch(
        &mut self,
        of_type: pg_sys::Oid,
        whole: Tree<'_, pg_sys::Node>,
        branch: Option<Tree<'_, pg_sys::Expr>>,
    ) {
        if let Some(branch) = branch {
            self.note(of_type, Refinement::of(whole), Refinement::of(branch.as_node()));
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
