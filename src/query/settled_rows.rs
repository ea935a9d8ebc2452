//! Which rows of a plan are *settled*: they are what they are, whatever settings and definitions change in the session from now on. A
//! stored answer has all rows as of its first one, so it may be read in parts only where executing would give the same rows then. Keeps
//! nothing.
//!
//! Two facts decide. Some nodes compute all of their rows before they give the first: a sort, an aggregate without GROUP BY, the hashed
//! side of a join, the keys by which a B-tree is searched. What lies below them is settled, whatever it reads of the session. Above them,
//! and in nodes that compute row by row, every expression must give the same under all settings (`computes_alike`). One with the value of
//! a sub-query does not count as such, since the server computes a sub-query when its value is first asked for.

use std::ffi::c_void;

use pgrx::pg_sys::{self, NodeTag};

use super::eligibility;
use super::unique_scan::is_btree;
use crate::pg::tree::{Tree, child, match_node};

/// Are all further rows settled once the first one is out, if the plan is run forward, without workers? No for a node that is not known
/// here.
pub fn later_rows_are_settled(plan: Tree<'_, pg_sys::PlannedStmt>) -> bool {
    Walk::of(plan).is_settled(child!(plan.planTree))
}

/// Are rows that are read again what they were? `all_read` says that the first run of the plan, forward, computes all of its rows;
/// otherwise the further rows must be settled, too. No for a node that is not known here.
pub fn keeps_rows(plan: Tree<'_, pg_sys::PlannedStmt>, all_read: bool) -> bool {
    Walk::of(plan).keeps(child!(plan.planTree), all_read)
}

/// Once the last row is out, is nothing computed any more that could become another one? Not so for a node that gives a row before it
/// has looked for the next. No for a node that is not known here.
pub fn ends_with_last_row(plan: Tree<'_, pg_sys::PlannedStmt>) -> bool {
    ends_with_last(child!(plan.planTree))
}

fn ends_with_last(plan: Option<Tree<'_, pg_sys::Plan>>) -> bool {
    let Some(plan) = plan.filter(|plan| plan.qual.is_null()) else { return false };
    let node = plan.as_node();
    match_node! { node;
        // A group is given when a row of another one is met, or the end; a group of a hash table, after all of its input.
        Agg(aggregate) => has_one_grouping(aggregate) && aggregate.aggstrategy != pg_sys::AggStrategy::AGG_MIXED,
        Limit(limit) => counts_only(limit) && ends_with_last(child!(plan.lefttree)),
        SubqueryScan(scan) => ends_with_last(child!(scan.subplan)),
        _ => match node.tag() {
            NodeTag::T_Sort => true,
            NodeTag::T_Result | NodeTag::T_Material => ends_with_last(child!(plan.lefttree)),
            _ => false,
        },
    }
}

/// One look at a plan.
struct Walk {
    /// The plan has sub-queries in expressions. Without them, its only inner parameters are those that a nested loop hands to its inner
    /// side, and these are columns.
    has_subplans: bool,
}

impl Walk {
    fn of(plan: Tree<'_, pg_sys::PlannedStmt>) -> Self {
        Self { has_subplans: !plan.subplans.is_null() }
    }

    /// `later_rows_are_settled`, for a node that is asked for its first row before the plan gives one, and is never started again.
    fn is_settled(&self, plan: Option<Tree<'_, pg_sys::Plan>>) -> bool {
        let Some(plan) = plan else { return false };
        let node = plan.as_node();
        match_node! { node;
            Agg(aggregate) => has_one_grouping(aggregate) && self.is_settled_aggregate(plan, aggregate.aggstrategy),
            Limit(limit) => is_fixed_limit(limit) && self.passes_settled(plan),
            SubqueryScan(scan) => self.computes_alike(plan, &[]) && self.is_settled(child!(scan.subplan)),
            WindowAgg(window) => {
                window.startOffset.is_null()
                    && window.endOffset.is_null()
                    && self.computes_alike(plan, &[window.runCondition])
                    && self.is_settled(child!(plan.lefttree))
            },
            // The keys of a search are computed when it begins. An index of another kind may have rows checked by them again.
            IndexScan(scan) => {
                scan.indexorderby.is_null() && is_btree(scan.indexid) && self.computes_alike(plan, &[])
            },
            IndexOnlyScan(scan) => {
                scan.indexorderby.is_null() && is_btree(scan.indexid) && self.computes_alike(plan, &[])
            },
            BitmapHeapScan(scan) => self.computes_alike(plan, &[scan.bitmapqualorig]),
            // The hash table is made before the first row is given.
            HashJoin(join) => {
                self.computes_alike(plan, &[join.join.joinqual, join.hashclauses, join.hashkeys])
                    && self.is_settled(child!(plan.lefttree))
            },
            // Other kinds may give a row of one side before the other side has begun.
            MergeJoin(join) => {
                matches!(join.join.jointype, pg_sys::JoinType::JOIN_INNER | pg_sys::JoinType::JOIN_SEMI)
                    && self.computes_alike(plan, &[join.join.joinqual, join.mergeclauses])
                    && self.is_settled(child!(plan.lefttree))
                    && self.is_settled(child!(plan.righttree))
            },
            NestLoop(join) => {
                self.computes_alike(plan, &[join.join.joinqual])
                    && self.is_settled(child!(plan.lefttree))
                    && self.is_alike(child!(plan.righttree))
            },
            _ => match node.tag() {
                NodeTag::T_Sort => true,
                NodeTag::T_SeqScan => self.computes_alike(plan, &[]),
                // One row, computed at once.
                NodeTag::T_Result if plan.lefttree.is_null() => true,
                NodeTag::T_Result
                | NodeTag::T_Material
                | NodeTag::T_Unique
                | NodeTag::T_Group
                | NodeTag::T_IncrementalSort
                // Without workers, they pass on what the plan below gives.
                | NodeTag::T_Gather
                | NodeTag::T_GatherMerge => self.passes_settled(plan),
                _ => false,
            },
        }
    }

    /// Is the node settled because what it gets is, and it computes nothing else?
    fn passes_settled(&self, plan: Tree<'_, pg_sys::Plan>) -> bool {
        self.computes_alike(plan, &[]) && self.is_settled(child!(plan.lefttree))
    }

    /// `is_settled` of an aggregate that groups once. A hash table has read all of its input before the first row, but may take up what was
    /// written to disk after it.
    fn is_settled_aggregate(&self, plan: Tree<'_, pg_sys::Plan>, strategy: pg_sys::AggStrategy::Type) -> bool {
        match strategy {
            pg_sys::AggStrategy::AGG_PLAIN => true,
            pg_sys::AggStrategy::AGG_HASHED => self.computes_alike(plan, &[]),
            pg_sys::AggStrategy::AGG_SORTED => self.passes_settled(plan),
            _ => false,
        }
    }

    /// Does a node give the same rows whenever it is started?
    fn is_alike(&self, plan: Option<Tree<'_, pg_sys::Plan>>) -> bool {
        let Some(plan) = plan else { return false };
        let node = plan.as_node();
        match_node! { node;
            IndexScan(scan) => {
                scan.indexorderby.is_null() && self.computes_alike(plan, &[scan.indexqual, scan.indexqualorig])
            },
            IndexOnlyScan(scan) => {
                scan.indexorderby.is_null() && self.computes_alike(plan, &[scan.indexqual, scan.recheckqual])
            },
            // Its index scans search by these conditions, or by those that it checks for each row.
            BitmapHeapScan(scan) => self.computes_alike(plan, &[scan.bitmapqualorig]),
            Memoize(memoize) => {
                self.computes_alike(plan, &[memoize.param_exprs]) && self.is_alike(child!(plan.lefttree))
            },
            _ => match node.tag() {
                NodeTag::T_SeqScan => self.computes_alike(plan, &[]),
                NodeTag::T_Material => self.computes_alike(plan, &[]) && self.is_alike(child!(plan.lefttree)),
                _ => false,
            },
        }
    }

    /// `keeps_rows` for a node that is at the top of its plan.
    fn keeps(&self, plan: Option<Tree<'_, pg_sys::Plan>>, all_read: bool) -> bool {
        let Some(plan) = plan else { return false };
        let node = plan.as_node();
        match_node! { node;
            Limit(limit) => {
                is_fixed_limit(limit) && self.computes_alike(plan, &[]) && self.keeps(child!(plan.lefttree), all_read)
            },
            SubqueryScan(scan) => self.computes_alike(plan, &[]) && self.keeps(child!(scan.subplan), all_read),
            _ => match node.tag() {
                NodeTag::T_Sort => true,
                NodeTag::T_Material => all_read || self.is_settled(child!(plan.lefttree)),
                _ => false,
            },
        }
    }

    /// Do the expressions of a node, its `further` ones among them, give the same under all settings and definitions?
    fn computes_alike(&self, plan: Tree<'_, pg_sys::Plan>, further: &[*mut pg_sys::List]) -> bool {
        let lists = [plan.targetlist, plan.qual];
        lists.iter().chain(further).all(|list| {
            // SAFETY: null, or a list of expressions of a node in a valid plan.
            let expressions = unsafe { Tree::enter(list.cast::<pg_sys::Node>().cast_const()) };
            eligibility::check_expression(expressions) == Ok(false)
                && !(self.has_subplans && expressions.is_some_and(has_inner_parameter))
        })
    }
}

/// Is there a parameter of the executor's own in an expression, such as the value of a sub-query? The expression must have been checked, and
/// so be of known nodes.
fn has_inner_parameter(expression: Tree<'_, pg_sys::Node>) -> bool {
    // SAFETY: a valid expression; the visitor needs no context.
    unsafe { is_inner_parameter(expression.as_ptr(), std::ptr::null_mut()) }
}

/// Called by the server's walker for each part of an expression; true stops the walk.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn is_inner_parameter(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    // SAFETY: null, or a node of the expression that is searched.
    unsafe {
        Tree::enter(node).is_some_and(|node| {
            node.as_a::<pg_sys::Param>().is_some_and(|param| param.paramkind == pg_sys::ParamKind::PARAM_EXEC)
                || pg_sys::expression_tree_walker(node.as_ptr(), Some(is_inner_parameter), context)
        })
    }
}

/// Does an aggregate group its input once? Grouping sets do so several times.
fn has_one_grouping(aggregate: Tree<'_, pg_sys::Agg>) -> bool {
    aggregate.groupingSets.is_null() && aggregate.chain.is_null()
}

/// Does it stop at a number of rows, whatever these are? WITH TIES does not.
fn counts_only(limit: Tree<'_, pg_sys::Limit>) -> bool {
    limit.limitOption == pg_sys::LimitOption::LIMIT_OPTION_COUNT
}

/// Does it let a fixed number of rows through?
fn is_fixed_limit(limit: Tree<'_, pg_sys::Limit>) -> bool {
    counts_only(limit) && [child!(limit.limitCount), child!(limit.limitOffset)].into_iter().flatten().all(is_fixed)
}

/// Has an expression one value for the whole statement?
fn is_fixed(expression: Tree<'_, pg_sys::Node>) -> bool {
    expression.tag() == NodeTag::T_Const
        || expression.as_a::<pg_sys::Param>().is_some_and(|param| param.paramkind == pg_sys::ParamKind::PARAM_EXTERN)
}
