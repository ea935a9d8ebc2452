//! What a column of FROM stands for. The planner puts the expressions of a simple sub-query, view or WITH query in the
//! place of its columns. So such a column is computed only where it is reached: not in `CASE WHEN now() < '2000-01-01'
//! THEN s.quotient END`. Reads trees; keeps nothing.

use std::ffi::{CStr, c_void};

use pgrx::pg_sys::{self, RTEKind};

use crate::pg::compat::{self, tree::walkers};
use crate::pg::lists::{node_at, nodes};
use crate::pg::tree::{Tree, match_node};
use crate::query::failures::expression_may_fail;

/// Returns true if an expression of the query reads a column that may stand for another expression, which may fail.
/// Aggregates and window functions compute what they read for each row.
///
/// # Safety
/// A valid query, and an expression of it.
pub(super) unsafe fn may_be_left_out(query: *mut pg_sys::Query, expression: *mut pg_sys::Node) -> bool {
    /// Stops at such a column.
    unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, query: *mut c_void) -> bool {
        // SAFETY: the node is null or part of the tree that is walked.
        let Some(tree) = (unsafe { Tree::enter(node) }) else { return false };
        let known = match_node! { tree;
            // SAFETY: the context is the query, whose column this is.
            Var(var) => Some(unsafe { may_fail(query.cast(), &var) }),
            // Its columns are those of another query. The part must not fail because of it anyhow.
            SubLink(_link) => Some(true),
            Aggref(_call) => Some(false),
            WindowFunc(_call) => Some(false),
            GroupingFunc(_call) => Some(false),
            _ => None,
        };
        // SAFETY: as above.
        known.unwrap_or_else(|| unsafe { direct!(walkers::expression_tree_walker(node, Some(visit), query)) })
    }
    // SAFETY: the caller's promise.
    unsafe { visit(expression, query.cast()) }
}

/// May a column of FROM stand for an expression that may fail, and is computed only where it is reached?
///
/// # Safety
/// A valid query, and a column of it.
unsafe fn may_fail(query: *mut pg_sys::Query, var: &pg_sys::Var) -> bool {
    // SAFETY: the caller's promise. The server checks the depth of sub-queries when it parses them.
    unsafe {
        let entry = usize::try_from(var.varno).ok().and_then(|number| number.checked_sub(1));
        let entry = entry.and_then(|place| node_at::<pg_sys::RangeTblEntry>((*query).rtable, place));
        let Some(entry) = entry.filter(|_| var.varlevelsup == 0) else { return true };
        let below = match (*entry).rtekind {
            // The planner puts the expressions of virtual columns in their places, too.
            RTEKind::RTE_RELATION => return compat::has_virtual_columns((*entry).relid),
            RTEKind::RTE_SUBQUERY => (*entry).subquery,
            RTEKind::RTE_CTE if (*entry).ctelevelsup == 0 => query_of_with(query, (*entry).ctename),
            _ => return true,
        };
        if below.is_null() || !(*below).setOperations.is_null() {
            return true;
        }
        if is_computed_as_a_whole(below) {
            return false;
        }
        let column = usize::try_from(var.varattno).ok().and_then(|number| number.checked_sub(1));
        let target = column.and_then(|place| node_at::<pg_sys::TargetEntry>((*below).targetList, place));
        let Some(target) = target else { return true };
        let expression: *mut pg_sys::Node = (*target).expr.cast();
        expression_may_fail(expression) || may_be_left_out(below, expression)
    }
}

/// Does the planner never put the columns of such a sub-query into the query around it?
///
/// # Safety
/// A valid query.
unsafe fn is_computed_as_a_whole(query: *mut pg_sys::Query) -> bool {
    // SAFETY: the caller's promise.
    let query = unsafe { &*query };
    query.hasAggs || query.hasWindowFuncs || !query.groupClause.is_null() || !query.distinctClause.is_null()
}

/// The query of that name in WITH; null if there is none.
///
/// # Safety
/// A valid query, and a text.
unsafe fn query_of_with(query: *mut pg_sys::Query, name: *const std::ffi::c_char) -> *mut pg_sys::Query {
    // SAFETY: the caller's promise; names in trees are texts.
    unsafe {
        nodes::<pg_sys::CommonTableExpr>((*query).cteList)
            .find(|with| CStr::from_ptr((**with).ctename) == CStr::from_ptr(name))
            .map_or(std::ptr::null_mut(), |with| (*with).ctequery.cast())
    }
}
