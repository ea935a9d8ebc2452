//! Does it show whether the planner has planned for the values of the parameters, or for all values, in the rows or in the types of the columns? With a
//! value the planner simplifies an expression to a part of it, and leaves out a side of UNION ALL. That shows if what is left has another type modifier
//! (the 5 of `varchar(5)`) or another collation. Everything counts as something that shows the kind of the plan, but for a short list: nodes whose
//! refinement (below) follows from themselves, or from their parts, whatever is left of these.
//!
//! Whether computing may fail, which shows the kind, too, is the matter of `failures`.

use std::ffi::c_void;

use pgrx::pg_sys::{self, NodeTag};

use crate::pg::compat::tree::{is_grouping_entry, walkers};
use crate::pg::error_passing::{direct, guarded};
use crate::pg::object_ids::FIRST_UNPINNED_OID;
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

/// One of the expressions that may be left of something, or one of its sides.
pub(super) struct Branch {
    refinement: Refinement,
    /// It keeps its refinement when it is simplified.
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
            | NodeTag::T_SQLValueFunction => true,
            _ => expression.as_a().zip(query).is_some_and(|(var, query)| is_of_table(&var, query)),
        };
        Self { refinement: Refinement::of(expression), is_plain }
    }

    /// A side whose own sides have been looked at.
    pub(super) fn seen(refinement: Refinement) -> Self {
        Self { refinement, is_plain: true }
    }

    /// Does it show whether this alone is left of something of this type and refinement?
    pub(super) fn shows(&self, of_type: pg_sys::Oid, whole: Refinement) -> bool {
        if self.refinement != whole {
            return true;
        }
        // SAFETY: reads a catalog about a type of the tree.
        let is_ever_refined =
            || unsafe { pg_sys::get_typmodin(of_type) != pg_sys::InvalidOid || pg_sys::type_is_collatable(of_type) };
        !self.is_plain && is_ever_refined()
    }
}

/// May this node show the kind of the plan by itself? `around` are the queries around it, the outermost first. The sides of set operations are asked for where
/// their conversions are checked (`set_operations`).
pub(super) fn may_show(node: Tree<'_, pg_sys::Node>, around: &[*mut pg_sys::Query]) -> bool {
    let has_branches = matches!(node.tag(), NodeTag::T_CaseExpr | NodeTag::T_CoalesceExpr | NodeTag::T_NullIfExpr);
    if has_branches {
        return may_contain_parameter(node, around) && branch_shows(node, around);
    }
    match_node! { node;
        // In a plan for all values the server takes a parameter for the column of the grouping that it equals, which is NULL in some rows.
        Query(query) => !query.groupingSets.is_null(),
        RangeTblEntry(entry) => !is_plain_entry(entry, around),
        // Another function may be written in SQL, and the planner puts what it consists of in the place of the call.
        FuncExpr(call) => call.funcid.to_u32() >= FIRST_UNPINNED_OID,
        SubLink(link) => !matches!(
            link.subLinkType,
            pg_sys::SubLinkType::EXISTS_SUBLINK
                | pg_sys::SubLinkType::ANY_SUBLINK
                | pg_sys::SubLinkType::ALL_SUBLINK
                | pg_sys::SubLinkType::EXPR_SUBLINK
        ),
        _ => !never_shows(node.tag()),
    }
}

/// Does a node of this kind keep its refinement, or have none, however the planner simplifies its parts?
fn never_shows(tag: NodeTag) -> bool {
    matches!(
        tag,
        NodeTag::T_List
            | NodeTag::T_Const
            | NodeTag::T_Param
            | NodeTag::T_Var
            | NodeTag::T_TargetEntry
            | NodeTag::T_FromExpr
            | NodeTag::T_JoinExpr
            | NodeTag::T_RangeTblRef
            | NodeTag::T_CommonTableExpr
            | NodeTag::T_SortGroupClause
            | NodeTag::T_WindowClause
            | NodeTag::T_SetOperationStmt
            | NodeTag::T_OpExpr
            | NodeTag::T_DistinctExpr
            | NodeTag::T_ScalarArrayOpExpr
            | NodeTag::T_BoolExpr
            | NodeTag::T_NullTest
            | NodeTag::T_BooleanTest
            | NodeTag::T_Aggref
            | NodeTag::T_WindowFunc
            // A part of CASE, of which the whole has been asked for.
            | NodeTag::T_CaseWhen
            | NodeTag::T_CaseTestExpr
            | NodeTag::T_ArrayExpr
            | NodeTag::T_SubscriptingRef
            | NodeTag::T_FieldSelect
            | NodeTag::T_RelabelType
            | NodeTag::T_CollateExpr
            | NodeTag::T_CoerceViaIO
            | NodeTag::T_SQLValueFunction
    )
}

/// Do the columns of a part of FROM have refinements of their own? Rows of VALUES count if no parameter is in them.
fn is_plain_entry(entry: Tree<'_, pg_sys::RangeTblEntry>, around: &[*mut pg_sys::Query]) -> bool {
    match entry.rtekind {
        pg_sys::RTEKind::RTE_RELATION
        | pg_sys::RTEKind::RTE_SUBQUERY
        | pg_sys::RTEKind::RTE_JOIN
        | pg_sys::RTEKind::RTE_CTE
        | pg_sys::RTEKind::RTE_RESULT => true,
        pg_sys::RTEKind::RTE_VALUES => {
            !child!(entry.values_lists).is_some_and(|rows| may_contain_parameter(rows.as_node(), around))
        }
        kind => is_grouping_entry(kind),
    }
}

/// Does a branch of this node of the innermost query show whether it alone is left?
fn branch_shows(node: Tree<'_, pg_sys::Node>, around: &[*mut pg_sys::Query]) -> bool {
    // SAFETY: the queries around a node that is walked are valid.
    let query = around.last().and_then(|query| unsafe { Tree::enter(*query) });
    let whole = Refinement::of(node);
    let shows = |of_type, branch| Branch::of(branch, query).shows(of_type, whole);
    match_node! { node;
        CaseExpr(case) => children!(case.args as CaseWhen)
            .filter_map(|when| child!(when.result))
            .chain(child!(case.defresult))
            .any(|result| shows(case.casetype, result.as_node())),
        CoalesceExpr(coalesce) => {
            children!(coalesce.args as Node).any(|argument| shows(coalesce.coalescetype, argument))
        },
        // Of a comparison with NULL its first argument is left.
        OpExpr | T_NullIfExpr (comparison) => {
            children!(comparison.args as Node).take(1).any(|first| shows(comparison.opresulttype, first))
        },
        _ => true,
    }
}

/// How many levels of an expression are searched for parameters. Each node with branches begins a search of its own, wherever the check of the whole has come
/// to: it must take little of the stack, and little time.
const LEVELS: u32 = 100;

/// A search for parameters.
struct Search {
    /// Null, or the query that the expression is part of.
    query: *mut pg_sys::Query,
    level: u32,
}

/// Is there a parameter in an expression, or something for which the planner may put one in its place: a column that is none of a table? So it is taken for one
/// that has more levels than are searched.
fn may_contain_parameter(node: Tree<'_, pg_sys::Node>, around: &[*mut pg_sys::Query]) -> bool {
    let mut search = Search { query: around.last().copied().unwrap_or(std::ptr::null_mut()), level: 0 };
    let context = (&raw mut search).cast::<c_void>();
    // SAFETY: a valid expression; the search outlives the walk, in which no frame has a destructor pending.
    unsafe {
        is_parameter(node, search.query)
            .unwrap_or_else(|| guarded!(walkers::expression_tree_walker(node.as_ptr(), Some(visit), context)))
    }
}

/// Called by the server's walker for each node. What the walker raises jumps over this frame.
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    // SAFETY: the node is null or part of the tree that is walked; the context is the search that `may_contain_parameter` passed.
    unsafe {
        let Some(node) = Tree::enter(node) else { return false };
        let search = context.cast::<Search>();
        if let Some(found) = is_parameter(node, (*search).query) {
            return found;
        }
        if (*search).level == LEVELS {
            return true;
        }
        (*search).level += 1;
        let found = direct!(walkers::expression_tree_walker(node.as_ptr(), Some(visit), context));
        (*search).level -= 1;
        found
    }
}

/// Is this node of an expression a parameter, or may the planner put one in its place? `None` if its parts tell.
///
/// # Safety
/// `query` must be null or the one that the expression is part of.
unsafe fn is_parameter(node: Tree<'_, pg_sys::Node>, query: *mut pg_sys::Query) -> Option<bool> {
    match node.tag() {
        NodeTag::T_Param | NodeTag::T_SubLink | NodeTag::T_Query => Some(true),
        // SAFETY: the tag tells the type; the caller's promise.
        NodeTag::T_Var => unsafe {
            let var = &*node.as_ptr().cast::<pg_sys::Var>();
            Some(!Tree::enter(query).is_some_and(|query| is_of_table(var, query)))
        },
        _ => None,
    }
}

/// Is the column one of a table of this query?
fn is_of_table(var: &pg_sys::Var, query: Tree<'_, pg_sys::Query>) -> bool {
    let entry = children!(query.rtable as RangeTblEntry).nth((var.varno as usize).wrapping_sub(1));
    var.varlevelsup == 0 && entry.is_some_and(|entry| entry.rtekind == pg_sys::RTEKind::RTE_RELATION)
}
