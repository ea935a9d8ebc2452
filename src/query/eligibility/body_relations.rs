//! The relations that the body of a function in SQL reads, when it is a query. The server plans such a query when the function is first called in a
//! statement, so there is no plan to look at: whatever a plan of it may read has to be harmless. What it may take from definitions is checked
//! with the plan of the statement (`planner_input`). Keeps nothing.

use std::ffi::c_void;

use arrow_cache_core::Reason;
use pgrx::pg_sys;

use crate::pg::backend;
use crate::pg::tree::{Tree, match_node};
use crate::query::relations;

/// Most relations of one body.
const MOST: usize = 64;

/// A search under way.
struct Search {
    found: Vec<u32>,
    refusal: Option<Reason>,
    /// Address of a local of the function that started the search.
    stack_base: usize,
}

/// The relations that a rewritten query names, views among them. All of them are locked.
///
/// # Errors
/// Why answers must not rest on what it reads.
pub(super) fn read_by(query: Tree<'_, pg_sys::Query>) -> Result<Vec<u32>, Reason> {
    let here = 0u8;
    let mut search = Search { found: Vec::new(), refusal: None, stack_base: (&raw const here) as usize };
    search.look_at(query.as_node());
    search.refusal.map_or(Ok(search.found), Err)
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
            return self.refuse(Reason::TooComplex);
        }
        let context = (&raw mut *self).cast();
        match_node! { node;
            Query(query) => {
                let flags = (pg_sys::QTW_EXAMINE_RTES_BEFORE | pg_sys::QTW_EXAMINE_SORTGROUP) as i32;
                // SAFETY: a valid query; what the walker calls gets this search back.
                unsafe { pg_sys::query_tree_walker(query.as_ptr(), Some(visit), context, flags) }
            },
            RangeTblEntry(entry) => {
                // From 16 on the entry of a view is a sub-query that keeps the view's OID.
                let may_name = matches!(entry.rtekind, pg_sys::RTEKind::RTE_RELATION | pg_sys::RTEKind::RTE_SUBQUERY);
                may_name && entry.relid != pg_sys::InvalidOid && self.note(&entry)
            },
            // SAFETY: a valid node of a query; what the walker calls gets this search back.
            _ => unsafe { pg_sys::expression_tree_walker(node.as_ptr(), Some(visit), context) },
        }
    }

    fn note(&mut self, entry: &pg_sys::RangeTblEntry) -> bool {
        let relation = entry.relid;
        if self.found.contains(&relation.to_u32()) && !entry.inh {
            return false;
        }
        if self.found.len() == MOST {
            return self.refuse(Reason::TooComplex);
        }
        if let Err(reason) = relations::check_without_plan(relation, entry.inh) {
            return self.refuse(reason);
        }
        self.found.push(relation.to_u32());
        false
    }

    fn refuse(&mut self, reason: Reason) -> bool {
        self.refusal = Some(reason);
        true
    }
}
