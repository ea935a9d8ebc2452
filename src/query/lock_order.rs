//! Does planning lock the children of several tables? The planner locks the partitions, and other children, of each table when it comes to the query level that
//! reads it: those of sub-queries in expressions and in WITH before those of the query around them, those of sub-queries in FROM afterwards. Whoever
//! locks children himself, before he has a query planned, would lock them in another order, and could meet a deadlock with a session that locks them in
//! that of all others. Reads trees and catalogs; keeps nothing.

use std::ffi::c_void;

use pgrx::pg_sys;

use crate::pg::compat::tree::walkers;
use crate::pg::error_passing::{direct, guarded};
use crate::pg::server;
use crate::pg::tree::{Tree, match_node};

/// The walker shows entries of range tables, too.
const BEFORE: i32 = pg_sys::QTW_EXAMINE_RTES_BEFORE as i32;

/// Does a query, whose relations are locked, name more than one table with children, or one of them more than once?
pub fn is_of_several_parents(query: Tree<'_, pg_sys::Query>) -> bool {
    let mut parents = 0u32;
    let context = (&raw mut parents).cast();
    // SAFETY: a valid query; no frame of the walk has a destructor pending.
    unsafe { guarded!(walkers::query_tree_walker(query.as_ptr(), Some(visit), context, BEFORE)) }
}

/// Counts tables with children, here and below; true from the second one on.
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    // SAFETY: the walker gives null or nodes of the tree.
    let Some(node) = (unsafe { Tree::enter(node) }) else { return false };
    match_node! { node;
        Query(query) => {
            // SAFETY: a valid query.
            unsafe { direct!(walkers::query_tree_walker(query.as_ptr(), Some(visit), context, BEFORE)) }
        },
        RangeTblEntry(entry) => {
            // SAFETY: a catalog search by the OID of a relation that is locked; the context is the count of the caller above.
            unsafe {
                if entry.rtekind == pg_sys::RTEKind::RTE_RELATION && entry.inh && direct!(server::has_subclass(entry.relid)) {
                    *context.cast::<u32>() += 1;
                }
                *context.cast::<u32>() > 1
            }
        },
        _ => {
            // SAFETY: a valid node that the server's walker knows.
            unsafe { direct!(walkers::expression_tree_walker(node.as_ptr(), Some(visit), context)) }
        },
    }
}
