//! The relations that a query names, sub-queries and views included. Keeps nothing.

use std::ffi::c_void;

use pgrx::pg_sys;

use crate::pg::backend;
use crate::pg::compat::tree::walkers;
use crate::pg::error_passing::edge;
use crate::pg::tree::{Tree, match_node};

/// A search under way.
struct Search<'v> {
    visit: &'v mut dyn FnMut(&pg_sys::RangeTblEntry) -> bool,
    /// Address of a local of the function that started the search.
    stack_base: usize,
    is_too_deep: bool,
}

/// The query nests too deeply to be searched.
pub(super) struct TooDeep;

/// Calls `visit` for each entry of a range table that names a relation, until it returns true. Returns whether it has.
pub(super) fn any(
    query: Tree<'_, pg_sys::Query>,
    visit: &mut dyn FnMut(&pg_sys::RangeTblEntry) -> bool,
) -> Result<bool, TooDeep> {
    let here = 0u8;
    let mut search = Search { visit, stack_base: (&raw const here) as usize, is_too_deep: false };
    let found = search.look_at(query.as_node());
    if search.is_too_deep { Err(TooDeep) } else { Ok(found) }
}

/// Called by the server's walkers for each part of a node; true stops the walk.
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    let body = || {
        // SAFETY: the context is the search that `look_at` passed, lent to nobody else while the walker calls; the node is null or part of
        // the tree that is searched.
        unsafe { Tree::enter(node).is_some_and(|node| (*context.cast::<Search<'_>>()).look_at(node)) }
    };
    // SAFETY: the server calls this; no frame between has destructors.
    unsafe { edge(body) }
}

impl Search<'_> {
    /// Looks at a node and all below it. True stops the search.
    fn look_at(&mut self, node: Tree<'_, pg_sys::Node>) -> bool {
        let here = 0u8;
        if self.stack_base.abs_diff((&raw const here) as usize) > backend::stack_of_walks() {
            self.is_too_deep = true;
            return true;
        }
        let context = (&raw mut *self).cast();
        match_node! { node;
            Query(query) => {
                let flags = pg_sys::QTW_EXAMINE_RTES_BEFORE as i32;
                // SAFETY: a valid query; what the walker calls gets this search back.
                unsafe { kept!(walkers::query_tree_walker(query.as_ptr(), Some(visit), context, flags)) }
            },
            RangeTblEntry(entry) => {
                // From 16 on the entry of a view is a sub-query that keeps the view's OID.
                let may_name = matches!(entry.rtekind, pg_sys::RTEKind::RTE_RELATION | pg_sys::RTEKind::RTE_SUBQUERY);
                may_name && entry.relid != pg_sys::InvalidOid && (self.visit)(&entry)
            },
            // SAFETY: a valid node of a query; what the walker calls gets this search back.
            _ => unsafe { kept!(walkers::expression_tree_walker(node.as_ptr(), Some(visit), context)) },
        }
    }
}
