//! Does a query name a system catalog, or a view over some, such as those of information_schema? Asked once a query is refused, to tell
//! its author the reason that lies deepest.

use pgrx::pg_sys;

use crate::pg::object_ids::FIRST_USER_OID;
use crate::pg::tree::Tree;
use crate::pg::tree_search::search;

/// The first catalog that the query names, sub-queries included, as far as they do not nest too deeply.
pub(super) fn named_in(query: Tree<'_, pg_sys::Query>) -> Option<pg_sys::Oid> {
    let mut found = None;
    let mut look = |node: Tree<'_, pg_sys::Node>| {
        // From 16 on the entry of a view is a sub-query that keeps the view's OID.
        found = node.as_a::<pg_sys::RangeTblEntry>().map(|entry| (entry.rtekind, entry.relid)).and_then(
            |(kind, relation)| {
                let may_name = matches!(kind, pg_sys::RTEKind::RTE_RELATION | pg_sys::RTEKind::RTE_SUBQUERY);
                (may_name && (1..FIRST_USER_OID).contains(&relation.to_u32())).then_some(relation)
            },
        );
        found.is_some()
    };
    // One that nests too deeply has been refused for that.
    // SAFETY: a valid query.
    let _ = unsafe { search(query.as_node().as_ptr(), 0, &mut look) };
    found
}
