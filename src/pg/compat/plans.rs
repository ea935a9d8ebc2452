//! Fields of plans that were added, moved or changed.

use pgrx::pg_sys;

#[cfg(feature = "pg15")]
use crate::pg::lists::nodes;
use crate::pg::tree::Tree;
#[cfg(not(feature = "pg18"))]
use crate::pg::tree::child;
use crate::pg::tree::children;

/// Clears the fields of a plan that name parts of its old tree. `stub` keeps its range table.
pub fn strip_plan(stub: &mut pg_sys::PlannedStmt) {
    #[cfg(feature = "pg18")]
    {
        stub.partPruneInfos = std::ptr::null_mut();
    }
    let _ = stub;
}

/// The query id of a plan, 0 when none was computed. It is a signed number here, as the server shows it, which it was
/// not before 18.
pub fn query_id(plan: &pg_sys::PlannedStmt) -> i64 {
    #[cfg(not(feature = "pg18"))]
    {
        plan.queryId.cast_signed()
    }
    #[cfg(feature = "pg18")]
    {
        plan.queryId
    }
}

/// Adds the relations that a query names to the range table of a plan, and the rights that it asks for. The plan then
/// shares parts with the query.
pub fn add_relations(plan: &mut pg_sys::PlannedStmt, query: Tree<'_, pg_sys::Query>) {
    #[cfg(feature = "pg15")]
    for entry in children!(query.rtable as RangeTblEntry) {
        if entry.rtekind == pg_sys::RTEKind::RTE_RELATION {
            // SAFETY: a list of entries that was made here.
            plan.rtable = unsafe { kept!(pg_sys::lappend(plan.rtable, entry.as_ptr().cast())) };
        }
    }
    #[cfg(not(feature = "pg15"))]
    {
        // SAFETY: a list, or null.
        let before = unsafe { pg_sys::list_length(plan.permInfos) }.cast_unsigned();
        for entry in children!(query.rtable as RangeTblEntry).filter(|entry| entry.perminfoindex > 0) {
            // SAFETY: as many bytes as are written; a list that was made here.
            unsafe {
                let own: *mut pg_sys::RangeTblEntry = kept!(pg_sys::palloc(size_of::<pg_sys::RangeTblEntry>())).cast();
                own.copy_from_nonoverlapping(entry.as_ptr(), 1);
                // The sub-query that a view has become is no part of a plan.
                ((*own).subquery, (*own).perminfoindex) = (std::ptr::null_mut(), before + entry.perminfoindex);
                plan.rtable = kept!(pg_sys::lappend(plan.rtable, own.cast()));
            }
        }
        // SAFETY: two lists, or null. The query keeps its own.
        plan.permInfos = unsafe { kept!(pg_sys::list_concat_copy(plan.permInfos, query.rteperminfos)) };
    }
}

/// A copy of a plan, in the current memory context, whose start checks no rights to tables. It shares all other parts
/// with the plan.
///
/// # Safety
/// The plan must be valid, and outlive the copy.
pub unsafe fn unchecked_plan(plan: *const pg_sys::PlannedStmt) -> *mut pg_sys::PlannedStmt {
    // SAFETY: as many bytes as are written; the caller vouches for the plan, whose range table is a list of entries.
    unsafe {
        let copy: *mut pg_sys::PlannedStmt = kept!(pg_sys::palloc(size_of::<pg_sys::PlannedStmt>())).cast();
        copy.copy_from_nonoverlapping(plan, 1);
        #[cfg(feature = "pg15")]
        {
            (*copy).rtable =
                nodes::<pg_sys::RangeTblEntry>((*plan).rtable).fold(std::ptr::null_mut(), |list, entry| {
                    let unchecked: *mut pg_sys::RangeTblEntry =
                        kept!(pg_sys::palloc(size_of::<pg_sys::RangeTblEntry>())).cast();
                    unchecked.copy_from_nonoverlapping(entry, 1);
                    (*unchecked).requiredPerms = 0;
                    kept!(pg_sys::lappend(list, unchecked.cast()))
                });
        }
        #[cfg(not(feature = "pg15"))]
        {
            (*copy).permInfos = std::ptr::null_mut();
        }
        copy
    }
}

/// Defines a function that tells how children of a node may be left out. That moved from the node to the plan in 18.
macro_rules! pruning_of {
    ($name:ident, $node:ty) => {
        /// How children of this node may be left out; `None` if they may not. `plan` is the plan of the node.
        pub fn $name<'t>(
            plan: Tree<'t, pg_sys::PlannedStmt>,
            node: Tree<'t, $node>,
        ) -> Option<Tree<'t, pg_sys::PartitionPruneInfo>> {
            #[cfg(not(feature = "pg18"))]
            {
                let _ = plan;
                child!(node.part_prune_info)
            }
            #[cfg(feature = "pg18")]
            {
                let number = usize::try_from(node.part_prune_index).ok()?;
                children!(plan.partPruneInfos as PartitionPruneInfo).nth(number)
            }
        }
    };
}
pruning_of!(pruning_of_append, pg_sys::Append);
pruning_of!(pruning_of_merge_append, pg_sys::MergeAppend);
