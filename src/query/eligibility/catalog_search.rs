//! Does a query name a system catalog, or a view over some, such as those of information_schema? Asked once a query is refused, to tell
//! its author the reason that lies deepest.

use std::ffi::c_void;

use pgrx::pg_sys;

use crate::pg::backend;
use crate::pg::object_ids::FIRST_USER_OID;
use crate::pg::tree::{Tree, match_node};

/// A search under way.
struct Search {
    /// The catalog that was found.
    found: Option<pg_sys::Oid>,
    /// Address of a local of the function that started the search.
    stack_base: usize,
}

/// The first catalog that the query names, sub-queries included, as far as they do not nest too deeply.
pub(super) fn named_in(query: Tree<'_, pg_sys::Query>) -> Option<pg_sys::Oid> {
    let here = 0u8;
    let mut search = Search { found: None, stack_base: (&raw const here) as usize };
    search.look_at(query.as_node());
    search.found
}

/// Called by the server's walkers for each part of a node; true stops the walk.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    // SAFETY: the context is the search that `look_at` passed, lent to nobody else while the walker calls; the node is null or part of
    // the tree that is searched.
    unsafe { Tree::enter(node).is_some_and(|node| (*context.cast::<Search>()).look_at(node)) }
}

impl Search {
    /// Looks at a node and all below it. True stops the search.
    fn look_at(&mut self, node: Tree<'_, pg_sys::Node>) -> bool {
        let here = 0u8;
        if self.stack_base.abs_diff((&raw const here) as usize) > backend::stack_of_walks() {
            return true;
        }
        let context = (&raw mut *self).cast();
        match_node! { node;
            Query(query) => {
                let flags = (pg_sys::QTW_EXAMINE_RTES_BEFORE | pg_sys::QTW_IGNORE_JOINALIASES) as i32;
                // SAFETY: a valid query; what the walker calls gets this search back.
                unsafe { pg_sys::query_tree_walker(query.as_ptr(), Some(visit), context, flags) }
            },
            RangeTblEntry(entry) => {
                // From 16 on the entry of a view is a sub-query that keeps the view's OID.
                let may_name = matches!(entry.rtekind, pg_sys::RTEKind::RTE_RELATION | pg_sys::RTEKind::RTE_SUBQUERY);
                let number = entry.relid.to_u32();
                let names = may_name && number != 0 && number < FIRST_USER_OID;
                self.found = names.then_some(entry.relid);
                names
            },
            // SAFETY: a valid node of a query; what the walker calls gets this search back.
            _ => unsafe { pg_sys::expression_tree_walker(node.as_ptr(), Some(visit), context) },
        }
    }
}
