//! Does the type modifier of a column (the 5 of `varchar(5)`) show for which values the planner has planned? The parser gives an expression whose branches
//! differ none. Where values decide on the branch, the planner puts that branch in the place of the expression, with its modifier: for these values, not
//! in a plan for all of them. In the same way it drops a side of UNION ALL, and leaves the columns to the other. What it puts in the place of a call of a
//! function in SQL brings modifiers that the query does not show.

use pgrx::pg_sys;

use crate::pg::tree::{Tree, child, children, match_node};

/// Stands for no modifier.
pub(super) const NONE: i32 = -1;

/// The modifiers met in a query.
#[derive(Clone, Copy, Default)]
pub(super) struct ModifiersMet {
    /// Something without a modifier has a branch with one.
    pub(super) mixed: bool,
    /// Something without a modifier has branches without any, whose type may have one.
    pub(super) open: bool,
}

impl ModifiersMet {
    /// Notes a branch, of this type and modifier, of something that has this modifier.
    pub(super) fn note(&mut self, whole: i32, of_type: pg_sys::Oid, branch: i32) {
        if whole == NONE {
            self.mixed |= branch != NONE;
            // SAFETY: reads a catalog about a type of the tree.
            self.open = self.open || unsafe { pg_sys::get_typmodin(of_type) } != pg_sys::InvalidOid;
        }
    }

    /// Notes an expression of which the planner may leave one branch.
    pub(super) fn note_branches(&mut self, node: Tree<'_, pg_sys::Node>) {
        match_node! { node;
            CaseExpr(case) => {
                let whole = modifier_of(node);
                for when in children!(case.args as CaseWhen) {
                    self.note_branch(whole, case.casetype, child!(when.result));
                }
                self.note_branch(whole, case.casetype, child!(case.defresult));
            },
            CoalesceExpr(coalesce) => {
                let whole = modifier_of(node);
                for argument in children!(coalesce.args as Node) {
                    self.note(whole, coalesce.coalescetype, modifier_of(argument));
                }
            },
            _ => {}
        }
    }

    fn note_branch(&mut self, whole: i32, of_type: pg_sys::Oid, branch: Option<Tree<'_, pg_sys::Expr>>) {
        if let Some(branch) = branch {
            self.note(whole, of_type, modifier_of(branch.as_node()));
        }
    }
}

/// The modifier of an expression.
pub(super) fn modifier_of(expression: Tree<'_, pg_sys::Node>) -> i32 {
    // SAFETY: a valid expression.
    unsafe { pg_sys::exprTypmod(expression.as_ptr()) }
}
