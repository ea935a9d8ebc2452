//! Does a query name a system catalog, or a view over some, such as those of information_schema? Asked once a query is refused, to tell
//! its author the reason that lies deepest.

use pgrx::pg_sys;

use super::named_relations;
use crate::pg::object_ids::FIRST_USER_OID;
use crate::pg::tree::Tree;

/// The first catalog that the query names, sub-queries included, as far as they do not nest too deeply.
pub(super) fn named_in(query: Tree<'_, pg_sys::Query>) -> Option<pg_sys::Oid> {
    let mut found = None;
    // One that nests too deeply has been refused for that.
    let _ = named_relations::any(query, &mut |entry| {
        found = Some(entry.relid).filter(|relation| relation.to_u32() < FIRST_USER_OID);
        found.is_some()
    });
    found
}
