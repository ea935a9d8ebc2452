//! The hook for the statistics of a column. Keeps nothing.

use pgrx::pg_sys;

use super::previous::PREVIOUS;
use crate::fragments;
use crate::pg::error_passing::edge;

/// `get_relation_stats_hook`: the planner asks for what is known of a column.
///
/// # Safety
/// Called by the server.
pub unsafe extern "C-unwind" fn tell(
    root: *mut pg_sys::PlannerInfo,
    entry: *mut pg_sys::RangeTblEntry,
    column: pg_sys::AttrNumber,
    known: *mut pg_sys::VariableStatData,
) -> bool {
    // SAFETY: PostgreSQL's own arguments, passed on unchanged.
    unsafe {
        if fragments::tells_of(entry) && edge(|| fragments::tell_of_zones(column, known)) {
            return true;
        }
        match PREVIOUS.stats {
            Some(next) => direct!(next(root, entry, column, known)),
            None => false,
        }
    }
}
