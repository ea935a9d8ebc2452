//! The relations that a query names, sub-queries and views included. Keeps nothing.

use pgrx::pg_sys;

use crate::pg::tree::Tree;
use crate::pg::tree_search::search;

/// Calls `visit` for each entry of a range table that names a relation, until it returns true. Returns whether it has;
/// `None` if the query nests too deeply to be searched.
pub(super) fn any(
    query: Tree<'_, pg_sys::Query>,
    visit: &mut dyn FnMut(&pg_sys::RangeTblEntry) -> bool,
) -> Option<bool> {
    let mut look = |node: Tree<'_, pg_sys::Node>| {
        // From 16 on the entry of a view is a sub-query that keeps the view's OID.
        let named = node.as_a::<pg_sys::RangeTblEntry>().filter(|entry| {
            let may_name = matches!(entry.rtekind, pg_sys::RTEKind::RTE_RELATION | pg_sys::RTEKind::RTE_SUBQUERY);
            may_name && entry.relid != pg_sys::InvalidOid
        });
        named.is_some_and(|entry| visit(&entry))
    };
    // SAFETY: a valid query.
    unsafe { search(query.as_node().as_ptr(), 0, &mut look) }
}
