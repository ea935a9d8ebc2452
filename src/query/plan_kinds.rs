//! The scan of the parts of an answer, for those who search a plan for tables and indexes.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::pg::tree::{Tree, child_text, children};

/// The name of the tuplestore that a query combined of parts reads: the rows of all parts.
pub const TUPLESTORE_NAME: &CStr = c"arrow_cache_fragments";

/// The name of the node that scans the parts of an answer (`fragments`).
pub const SCAN_NAME: &CStr = c"ArrowCacheFragments";

/// Is this the scan of the parts that an answer is combined of (`fragments`)?
pub fn is_scan_of_parts(scan: Tree<'_, pg_sys::CustomScan>) -> bool {
    // SAFETY: the methods of a custom scan are constants of the library that made it, with a name that ends in NUL.
    unsafe { CStr::from_ptr((*scan.methods).CustomName) == SCAN_NAME }
}

/// Does the plan combine parts of an answer? Asked of its range table, which is quicker than a walk: a transition table of the same name
/// would count as well.
pub fn is_combined(plan: Tree<'_, pg_sys::PlannedStmt>) -> bool {
    children!(plan.rtable as RangeTblEntry).any(|entry| {
        entry.rtekind == pg_sys::RTEKind::RTE_NAMEDTUPLESTORE && child_text!(entry.enrname) == Some(TUPLESTORE_NAME)
    })
}
