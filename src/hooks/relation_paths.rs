//! The hook for the paths of a relation. Keeps nothing.

use pgrx::pg_sys;

use super::previous::PREVIOUS;
use crate::fragments;
use crate::pg::error_passing::edge;

/// `set_rel_pathlist_hook`: the planner has found the paths of a relation.
///
/// # Safety
/// Called by the server.
pub unsafe extern "C-unwind" fn add(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    number: pg_sys::Index,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: PostgreSQL's own arguments, passed on unchanged.
    unsafe {
        if let Some(next) = PREVIOUS.paths {
            direct!(next(root, rel, number, entry));
        }
        if fragments::attends_paths() {
            edge(|| fragments::attend_paths(rel, entry));
        }
    }
}
