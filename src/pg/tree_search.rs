//! Searching trees of nodes. Reads them; keeps nothing.

use std::ffi::c_void;

use pgrx::pg_sys;

use super::backend::WalkDepth;
use super::tree::{Tree, child, children, match_node};
use crate::pg::compat::tree::walkers;
use crate::pg::error_passing::edge;

/// Returns true for what is sought.
pub type Look<'l> = dyn FnMut(Tree<'_, pg_sys::Node>) -> bool + 'l;

struct Search<'l> {
    look: &'l mut Look<'l>,
    flags: i32,
    depth: WalkDepth,
    is_too_deep: bool,
}

/// Looks at a node, and at all below it in the order of the server's walkers, until one is found. Returns whether one
/// was; `None` if the tree nests too deeply. `flags` are those of `query_tree_walker`; entries of range tables are
/// looked at before what they are made of.
///
/// # Safety
/// Null, or a node of a query that nobody has planned, or an expression of a plan.
pub unsafe fn search<'l>(node: *mut pg_sys::Node, flags: u32, look: &'l mut Look<'l>) -> Option<bool> {
    let here = 0u8;
    let flags = (flags | pg_sys::QTW_EXAMINE_RTES_BEFORE) as i32;
    let mut search = Search { look, flags, depth: WalkDepth::from(&here), is_too_deep: false };
    // SAFETY: the caller's promise; the search is lent to the walkers alone.
    let found = unsafe { visit(node, (&raw mut search).cast()) };
    (!search.is_too_deep).then_some(found)
}

/// Called by the server's walkers for each part of a node; true stops the walk.
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    let body = || {
        let here = 0u8;
        // SAFETY: the node is null or part of the tree that is searched. The context is the search that `search`
        // passed, which nobody else uses while the walkers call.
        let (tree, search) = unsafe { (Tree::enter(node), &mut *context.cast::<Search<'_>>()) };
        let Some(tree) = tree else { return false };
        if search.depth.is_passed(&here) {
            search.is_too_deep = true;
            return true;
        }
        let flags = search.flags;
        (search.look)(tree)
            || match_node! { tree;
                // SAFETY: a valid query; what the walker calls gets this search back.
                Query(query) => unsafe { kept!(walkers::query_tree_walker(query.as_ptr(), Some(visit), context, flags)) },
                // SAFETY: parts of a valid node. The server's walker looks into a branch from the CASE around it alone.
                CaseWhen(branch) => unsafe {
                    visit(branch.expr.cast(), context) || visit(branch.result.cast(), context)
                },
                // The walker of queries descends into it by itself.
                RangeTblEntry(_entry) => false,
                // SAFETY: a valid node; what the walker calls gets this search back.
                _ => unsafe { kept!(walkers::expression_tree_walker(node, Some(visit), context)) },
            }
    };
    // SAFETY: the server calls this; no frame between has destructors.
    unsafe { edge(body) }
}

/// The entry of a query's or a plan's range table with this number, from 1.
pub fn entry_at<'t>(
    range_table: Option<Tree<'t, pg_sys::List>>,
    number: impl TryInto<usize>,
) -> Option<Tree<'t, pg_sys::RangeTblEntry>> {
    range_table?.items().nth(number.try_into().ok()?.checked_sub(1)?)??.as_a()
}

/// The column of a query with this number; `None` if it has none.
pub fn column_at<'t>(query: Tree<'t, pg_sys::Query>, number: i16) -> Option<Tree<'t, pg_sys::Node>> {
    let target = children!(query.targetList as TargetEntry).find(|target| target.resno == number)?;
    child!(target.expr).map(Tree::as_node)
}

/// The entry of the target list that a clause sorts or groups by; `None` if the query has no such entry.
pub fn sorted_target<'t>(
    query: Tree<'t, pg_sys::Query>,
    clause: Tree<'t, pg_sys::SortGroupClause>,
) -> Option<Tree<'t, pg_sys::TargetEntry>> {
    // SAFETY: a clause of a valid query, whose target list has an entry for it: it lives as long as the query.
    unsafe { Tree::enter(kept!(pg_sys::get_sortgroupclause_tle(clause.as_ptr(), query.targetList))) }
}
