//! What is in an expression? Walks of the server over valid trees. Keeps nothing.

use std::ffi::c_void;

use pgrx::pg_sys::{self, NodeTag};

use crate::pg::compat::tree::walkers;
use crate::pg::tree::{Tree, match_node};
use crate::pg::tree_search::search;
use crate::query::clock;
use crate::query::node_table::{OF_ROWS, in_query};

/// Returns true if an expression, or a sub-query in it, asks for the time.
pub(super) fn asks_for_time(node: *mut pg_sys::Node) -> bool {
    any(node, is_clock)
}

/// Returns true if a node asks for the time itself.
fn is_clock(node: Tree<'_, pg_sys::Node>) -> bool {
    match_node! { node;
        FuncExpr(call) => clock::asks_for_time(call.funcid),
        SQLValueFunction(value) => clock::is_time(&value),
        _ => false,
    }
}

/// Returns true if something in an expression depends on rows: columns, aggregates, sub-queries.
pub(super) fn depends_on_rows(node: *mut pg_sys::Node) -> bool {
    any(node, |node| in_query(node.tag()).has(OF_ROWS))
}

/// The number of columns, and of calls of aggregates and window functions, in an expression.
pub(super) fn count_columns(node: *mut pg_sys::Node) -> usize {
    /// Counts on, and finds nothing.
    unsafe extern "C-unwind" fn count(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
        // SAFETY: the node is null or part of the tree that is walked; the context is the number below.
        unsafe {
            let Some(tree) = Tree::enter(node) else { return false };
            if matches!(tree.tag(), NodeTag::T_Var | NodeTag::T_Aggref | NodeTag::T_WindowFunc) {
                *context.cast::<usize>() += 1;
            }
            direct!(walkers::expression_tree_walker(node, Some(count), context))
        }
    }
    let mut columns = 0usize;
    // SAFETY: null, or a valid expression; the number outlives the walk.
    unsafe { count(node, (&raw mut columns).cast()) };
    columns
}

/// Returns true if there is such a node in an expression, or it nests too deeply to tell.
fn any(node: *mut pg_sys::Node, found: fn(Tree<'_, pg_sys::Node>) -> bool) -> bool {
    // SAFETY: null, or an expression of a valid query.
    unsafe { search(node, 0, &mut { found }) }.unwrap_or(true)
}
